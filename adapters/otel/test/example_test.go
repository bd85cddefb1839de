// SPDX-License-Identifier: Apache-2.0

package zkotel_test

import (
	"context"
	"fmt"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/zklock-go/zklock"
	zkotel "github.com/zklock-go/zklock/adapters/otel"
	"github.com/zklock-go/zklock/zktest"
)

func ExampleNewObserver() {
	server, err := zktest.New(zktest.Options{}) // in production: your ensemble
	if err != nil {
		panic(err)
	}
	defer server.Close()
	ctx := context.Background()
	reader := sdkmetric.NewManualReader() // in production: your exporter's
	observer, err := zkotel.NewObserver(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)), nil)
	if err != nil {
		panic(err)
	}
	client, err := zklock.Connect(ctx, server.Addrs(), &zklock.Options{Dialer: server.Dial, Observer: observer})
	if err != nil {
		panic(err)
	}
	defer client.Close()
	for range 3 {
		if err := client.Mutex("/locks/orders").Do(ctx, func(context.Context) error { return nil }); err != nil {
			panic(err)
		}
	}

	var metrics metricdata.ResourceMetrics
	reader.Collect(ctx, &metrics)
	for _, m := range metrics.ScopeMetrics[0].Metrics {
		if h, ok := m.Data.(metricdata.Histogram[float64]); ok {
			fmt.Println(m.Name, h.DataPoints[0].Count)
		}
	}
	// Unordered output:
	// zklock.acquire.duration 3
	// zklock.hold.duration 3
}
