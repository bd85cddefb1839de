// SPDX-License-Identifier: Apache-2.0

package lockprofile_test

import (
	"context"
	"net/http"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/adapters/lockprofile"
)

// A program whose lock profile can be read with
//
//	go tool pprof -top http://localhost:6060/debug/pprof/zklock
func Example() {
	profile := &lockprofile.Profile{}
	http.Handle("/debug/pprof/zklock", profile)
	client, err := zklock.Connect(context.Background(), []string{"zk1:2181"}, &zklock.Options{Observer: profile})
	if err != nil {
		panic(err)
	}
	defer client.Close()
}
