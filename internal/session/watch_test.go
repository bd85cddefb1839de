package session

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A client's waiter can wait for the end of a node of the same client, whose holder is told by the same watch.
func TestTheOwnerOfANodeIsToldOfItsEndBeforeThoseThatWaitForIt(t *testing.T) {
	w, _ := aWatch(t, standing)
	watches := &Watches{requests: &Requests{Calls: NewTasks()}, live: map[watchKey]*NodeWatch{w.key: w}}
	told := false
	require.True(t, w.WhenFired(func() {
		told = true
		require.False(t, w.Fired.IsSet())
	}))
	watches.fire(w, NodeGone)
	<-w.Fired.Done()
	require.True(t, told)
	require.Equal(t, NodeGone, w.Saw)
	<-watches.requests.Calls.Close()
}
