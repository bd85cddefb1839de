package zklock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/zktest"
)

func TestAWaitThatEndsTellsWhomItWasFor(t *testing.T) {
	t.Parallel()
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		_, err := connect(t, srv, "worker-1", term).Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		waits := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err := connect(t, srv, "worker-2", term).Mutex(path).Lock(ctx)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			return err
		}
		require.EqualError(t, waits(), "zklock: lock "+path+": context deadline exceeded (waited for worker-1)")

		lockLater(t.Context(), connect(t, srv, "between", term).Mutex(path).Lock)
		time.Sleep(time.Second)
		require.EqualError(t, waits(), "zklock: lock "+path+": context deadline exceeded (waited for worker-1 and 1 more)")
	})
}
