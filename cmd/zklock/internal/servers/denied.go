// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/bridge"
)

// patienceWithRefusals is how long servers may refuse a client. The library tries again for as long as its caller waits, because
// the next server may accept the client.
const patienceWithRefusals = time.Second

// UntilDenied returns a context that ends when servers have refused the client for a while, for example because it has not logged
// in: see OrDenial.
func UntilDenied(ctx context.Context, client *zklock.Client) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	// Owned by the caller, whose cancel ends it.
	go func() {
		tick := time.NewTicker(patienceWithRefusals / 5)
		defer tick.Stop()
		for refused := 0; ; {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			err := denial(client)
			if err == nil {
				refused = 0
			} else if refused++; refused == 5 {
				cancel(err)
			}
		}
	}()
	return ctx, func() { cancel(nil) }
}

// denial returns the error of a client that the last server has refused, or nil if it has not.
func denial(client *zklock.Client) error {
	link := bridge.ClientOf(client).Requests.Link
	if err := link.LastError(); link.IsDenied() && errors.Is(err, zk.ErrAuthFailed) {
		return outcome.NoPermission.Errorf("the servers refuse this client: %w", err)
	}
	return nil
}

// OrDenial returns err, the error of a call of the client. If servers refuse the client, that is the error.
func OrDenial(client *zklock.Client, err error) error {
	if err == nil {
		return nil
	}
	return cmp.Or(denial(client), err)
}
