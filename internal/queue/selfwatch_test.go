package queue

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/session"
)

// Whoever waits for the watch of a node that is given up learns that there will be none, though stop came while it was set.
func TestAWatchThatWasLeftWhileItWasSetIsEnded(t *testing.T) {
	g := &selfWatch{left: true}
	require.True(t, g.stand(new(session.NodeWatch)))
	_, ended, _ := g.state()
	require.True(t, ended)
}
