// SPDX-License-Identifier: Apache-2.0

package zkprometheus_test

import (
	"context"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/zklock-go/zklock"
	zkprometheus "github.com/zklock-go/zklock/adapters/prometheus"
	"github.com/zklock-go/zklock/zktest"
)

func ExampleNewCollector() {
	server, err := zktest.New(zktest.Options{}) // in production: your ensemble
	if err != nil {
		panic(err)
	}
	defer server.Close()
	ctx := context.Background()
	collector, err := zkprometheus.NewCollector(nil)
	if err != nil {
		panic(err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collector)
	client, err := zklock.Connect(ctx, server.Addrs(), &zklock.Options{Dialer: server.Dial, Observer: collector})
	if err != nil {
		panic(err)
	}
	defer client.Close()
	for range 3 {
		if err := client.Mutex("/locks/orders").Do(ctx, func(context.Context) error { return nil }); err != nil {
			panic(err)
		}
	}

	page := httptest.NewRecorder() // what http.Handle("/metrics", promhttp.HandlerFor(...)) answers
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(page, httptest.NewRequest("GET", "/metrics", nil))
	body, _ := io.ReadAll(page.Body)
	for line := range strings.Lines(string(body)) {
		if strings.Contains(line, "_count") || strings.Contains(line, "_total{") {
			fmt.Print(line)
		}
	}
	// Output:
	// zklock_acquire_ahead_count{recipe="mutex"} 3
	// zklock_acquire_duration_seconds_count{outcome="acquired",recipe="mutex"} 3
	// zklock_hold_duration_seconds_count{outcome="released",recipe="mutex"} 3
	// zklock_lost_total{recipe="mutex"} 0
}
