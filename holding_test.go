package zklock

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/session"
)

// TestAnEndedHoldingIsNotLookedAfterAgain has a holding end before the last of its nodes is looked after.
func TestAnEndedHoldingIsNotLookedAfterAgain(t *testing.T) {
	var s holdings
	g, sess := new(holding), new(session.Session)
	s.add(g)
	s.remove(g)
	require.True(t, s.oversee(g, sess))
	require.Empty(t, s.by)
	require.Empty(t, s.live)
}
