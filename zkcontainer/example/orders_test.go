// SPDX-License-Identifier: Apache-2.0

package orders_test

import (
	"testing"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zkcontainer"
)

func TestTheLockOutlivesTheLeader(t *testing.T) {
	z := zkcontainer.RunEnsemble(t.Context(), t, 3)
	client, err := zklock.Connect(t.Context(), z.Addrs(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	hold, err := client.Mutex("/locks/orders/42").Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	leader, err := z.Leader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := leader.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := hold.Confirm(t.Context()); err != nil {
		t.Fatal(err)
	}
}
