// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zkcontainer"
)

// TestRestoredEnsemble wipes a server's data while a client holds a lock. The new server counts its transactions from one, and
// refuses clients that have seen a higher number. The hold is lost, and afterwards the client works like a new one.
//
//zklock:promise P7.6
func TestRestoredEnsemble(t *testing.T) {
	t.Parallel()
	part(t)
	ensemble := start(t, zkcontainer.Options{})
	server, ctx := ensemble.Members[0], soon(t)
	client := connect(t, &zklock.Options{SessionTimeout: 3 * time.Second}, server.Addr)
	mutex := client.Mutex(root(t))
	for range 50 { // so that the client has seen a number far above the first ones of the new server
		hold, err := mutex.Lock(ctx)
		require.NoError(t, err)
		require.NoError(t, hold.Unlock(ctx))
	}
	hold, err := mutex.Lock(ctx)
	require.NoError(t, err)

	require.NoError(t, server.Wipe(ctx))
	await(t, hold.Context().Done(), "the loss")
	assert.ErrorIs(t, hold.Check(), zklock.ErrLost)
	again, err := mutex.Lock(ctx)
	require.NoError(t, err, "the client reconnects")
	assert.Less(t, again.Token(), hold.Token(), "tokens start again")
	require.NoError(t, again.Confirm(ctx))
	require.NoError(t, again.Unlock(ctx))
}
