// SPDX-License-Identifier: Apache-2.0

package readiness_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/adapters/readiness"
	"github.com/zklock-go/zklock/zktest"
)

// A process is ready for as long as it leads.
func ExampleHandler() {
	server, err := zktest.New(zktest.Options{}) // in production: your ensemble
	if err != nil {
		panic(err)
	}
	defer server.Close()
	client, err := zklock.Connect(context.Background(), server.Addrs(), &zklock.Options{Dialer: server.Dial})
	if err != nil {
		panic(err)
	}
	defer client.Close()

	var ready readiness.Handler
	mux := http.NewServeMux()
	mux.Handle("/readyz", &ready)
	get := func() string { // in production: http.ListenAndServe, and the prober of your platform
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
		return w.Result().Status
	}

	fmt.Println("before:", get())
	ctx, stop := context.WithCancel(context.Background())
	client.Election("/leader").Run(ctx, []byte("10.0.0.7:8080"), func(ctx context.Context) error {
		ready.Set(zklock.HoldOf(ctx))
		defer ready.Set(nil)
		fmt.Println("leading:", get())
		stop() // in production: serve until ctx is done
		return nil
	})
	fmt.Println("after:", get())
	// Output:
	// before: 503 Service Unavailable
	// leading: 200 OK
	// after: 503 Service Unavailable
}
