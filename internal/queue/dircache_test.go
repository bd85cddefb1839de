// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
)

// TestRecentEntriesAreForgotten has it be known for just as long as it says, to one attempt each time.
func TestRecentEntriesAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r recent[int]
		r.put("/a", 1)
		time.Sleep(recentLife - time.Nanosecond)
		require.True(t, r.has("/a", recentLife))
		require.False(t, r.has("/b", recentLife))
		what, known := r.take("/a")
		require.True(t, known)
		require.Equal(t, 1, what)
		_, known = r.take("/a")
		require.False(t, known, "another attempt has it")

		r.put("/a", 2)
		time.Sleep(recentLife)
		require.False(t, r.has("/a", recentLife))
		stale, known := r.get("/a", recentLife)
		require.False(t, known)
		require.Zero(t, stale)
		_, known = r.take("/a")
		require.False(t, known)
		_, known = new(recent[int]).take("/a")
		require.False(t, known)
	})
}

// TestRecentEntriesAreBounded learns of more directories than are remembered.
func TestRecentEntriesAreBounded(t *testing.T) {
	var r recent[struct{}]
	for i := range maxRecent {
		r.put(fmt.Sprint("/", i), struct{}{})
	}
	require.Len(t, r.of, maxRecent)
	r.put("/more", struct{}{})
	require.Len(t, r.of, 1)
}

// TestADirectoryThatRefusesNotesIsNotTriedAgain takes the answers of transactions with a note in the second place.
func TestADirectoryThatRefusesNotesIsNotTriedAgain(t *testing.T) {
	refused, passed := zk.MultiResponse{Error: zk.ErrNoAuth}, zk.MultiResponse{}
	m := NewUnnoted(false)
	require.True(t, m.MayNote("/a", nil))
	require.True(t, m.MayNote("/a", []zk.MultiResponse{refused}), "it was the first that was refused")
	require.True(t, m.MayNote("/a", []zk.MultiResponse{passed, passed}))
	require.False(t, m.MayNote("/a", []zk.MultiResponse{passed, refused}))
	require.False(t, m.MayNote("/a", nil))
	require.True(t, m.MayNote("/b", nil))
	require.False(t, NewUnnoted(true).MayNote("/b", nil))
}
