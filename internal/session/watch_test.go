// SPDX-License-Identifier: Apache-2.0

package session

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A waiter can wait for a node of the same client, whose holder uses the same watch.
func TestTheOwnerOfANodeLearnsOfItsEndBeforeItsWaiters(t *testing.T) {
	w, _ := aWatch(t, Set)
	watches := &watchTable{requests: &Requests{Calls: NewTasks()}, live: map[watchKey]*watch{w.key: w}}
	told := false
	v := w.latest()
	v.Notify(ownerOf(func(saw State) {
		told = true
		require.Equal(t, Gone, saw)
		require.False(t, IsClosed(v.Newer()))
		require.False(t, v.IsCurrent())
	}))
	watches.fire(w, Gone)
	<-v.Newer()
	require.True(t, told)
	require.Equal(t, Gone, v.Latest().State)
	<-watches.requests.Calls.Close()
}
