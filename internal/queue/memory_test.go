package queue

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestADirectoryThatANodeOfOursIsLeavingIsNotExpectedEmpty has several nodes leave it, one after the other.
func TestADirectoryThatANodeOfOursIsLeavingIsNotExpectedEmpty(t *testing.T) {
	c := new(Engine)
	require.False(t, c.mayBeAlone("/a"), "nothing is known of it")
	c.alone.put("/a", solitude{})
	require.True(t, c.mayBeAlone("/a"))
	c.leaving.add("/a", 1)
	c.leaving.add("/a", 1)
	c.leaving.add("/b", 1)
	require.False(t, c.mayBeAlone("/a"))
	c.leaving.add("/a", -1)
	require.False(t, c.mayBeAlone("/a"))
	c.leaving.add("/a", -1)
	require.True(t, c.mayBeAlone("/a"))
	c.crowded.put("/a", struct{}{})
	require.False(t, c.mayBeAlone("/a"), "others were there")
}
