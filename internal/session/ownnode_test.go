// SPDX-License-Identifier: Apache-2.0

package session

import (
	"regexp"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// Another goroutine of the client may be granted the lock as soon as our node is known to be deleted.
func TestANodeIsGoneAfterItsHolderWasNotified(t *testing.T) {
	n := new(OwnNode)
	told := 0
	n.WhenGone(func() {
		told++
		require.False(t, n.IsGone())
	})
	n.MarkGone(ErrForged)
	require.True(t, n.IsGone())
	n.MarkGone(nil)
	require.Equal(t, 1, told)
	require.ErrorIs(t, n.Loss(), ErrForged)
	n.WhenGone(func() { told++ })
	require.Equal(t, 2, told, "a later listener is called at once")
}

// A request arrives while the hold's callback is being registered: the callback is registered before Forward checks.
//
//zklock:promise P19.5
func TestARequestToReleaseThatArrivesDuringForwardingIsNotLost(t *testing.T) {
	from, to, done := new(Revocation), new(Revocation), make(chan struct{})
	from.mu.Lock()
	go func() { // ends when the mutex is released below
		defer close(done)
		from.Forward(to)
	}()
	for stacks := make([]byte, 1<<20); ; runtime.Gosched() {
		text := string(stacks[:runtime.Stack(stacks, true)])
		if regexp.MustCompile(`\[sync\.Mutex\.Lock[^\n]*\n(?:[^\n]+\n)*?[^\n]*\(\*Revocation\)\.Forward`).MatchString(text) {
			break
		}
	}
	from.Requested.Set() // as request does, which then finds no registered callback
	from.mu.Unlock()
	<-done
	require.True(t, to.Requested.IsSet())
}
