package integration

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zkcontainer"
)

// TestRestoredEnsemble wipes a server's data while a client holds a lock on it. The new one counts its transactions from one:
// it refuses everybody who has seen a higher number. The hold is lost, and then the client works as a new one would.
func TestRestoredEnsemble(t *testing.T) {
	t.Parallel()
	part(t)
	ensemble := start(t, zkcontainer.Options{})
	server, ctx := ensemble.Members[0], soon(t)
	client := connect(t, &zklock.Options{SessionTimeout: 3 * time.Second}, server.Addr)
	mutex := client.Mutex(root(t))
	for range 50 { // so that the number is far above what the new server begins with
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
	require.NoError(t, err, "the client comes back")
	assert.Less(t, again.Token(), hold.Token(), "tokens start anew")
	require.NoError(t, again.Confirm(ctx))
	require.NoError(t, again.Unlock(ctx))
}
