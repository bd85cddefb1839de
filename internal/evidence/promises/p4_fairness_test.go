package promises_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zktest"
)

// P4: first come, first served.

//zklock:promise P4.1
func TestGrantsFollowTheOrderOfArrival(t *testing.T) {
	virtual(t, three, func(t *testing.T, srv *zktest.Server) {
		var clients []*zklock.Client
		for i := range 5 {
			clients = append(clients, connect(t, srv, fmt.Sprint("c", i), term))
		}
		first, err := clients[0].Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		var mu sync.Mutex
		var order []int
		var wg sync.WaitGroup
		for i := range 50 {
			time.Sleep(10 * time.Millisecond)
			wg.Go(func() {
				hold, err := clients[i%5].Mutex(path).Lock(t.Context())
				if !assert.NoError(t, err) {
					return
				}
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				assert.NoError(t, hold.Unlock(t.Context()))
			})
		}
		time.Sleep(time.Second)
		unlock(t, first)
		wg.Wait()
		for i := range order {
			require.Equal(t, i, order[i])
		}
	})
}

//zklock:promise P4.4
func TestANoteOfAnEarlierHolderGrantsNothing(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		m := connect(t, srv, "a", term).Mutex(path)
		line := func(ctxs ...context.Context) (all []*attempt) {
			for _, ctx := range ctxs {
				all = append(all, lockLater(ctx, m.Lock))
				time.Sleep(time.Second)
			}
			return all
		}
		for _, a := range line(t.Context(), t.Context(), t.Context(), t.Context()) {
			<-a.done
			unlock(t, a.hold)
		}
		dir, _ := srv.Node(path)
		require.Contains(t, string(dir.Data), "last held by")

		ctx, giveUp := context.WithCancel(t.Context())
		all := line(t.Context(), ctx, t.Context())
		giveUp()
		time.Sleep(time.Second)
		require.False(t, all[2].returned(), "the first still holds")
		unlock(t, all[0].hold)
		<-all[2].done
		unlock(t, all[2].hold)
	})
}

// A directory may contain a user's data.
//
//zklock:promise P9.2
func TestANoteIsNeverWrittenOverForeignData(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.PutNode(path, []byte("mine")))
		m := connect(t, srv, "a", term).Mutex(path)
		var all []*attempt
		for range 5 {
			all = append(all, lockLater(t.Context(), m.Lock))
			time.Sleep(time.Second)
		}
		for _, a := range all {
			<-a.done
			unlock(t, a.hold)
		}
		dir, _ := srv.Node(path)
		require.Equal(t, "mine", string(dir.Data))
	})
}
