package session

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Another goroutine of the client may be granted what our node has stood for as soon as it is known to be gone.
func TestANodeIsGoneWhenItsHolderWasTold(t *testing.T) {
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
	require.Equal(t, 2, told, "whoever comes later is told at once")
}
