// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/zktest"
)

// P4: no note grants a lock out of turn.

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
