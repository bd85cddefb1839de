package frames

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// A request for a new session says nothing of an earlier one: neither its number and password nor the last transaction that
// it has seen, because of which a restored ensemble would refuse it.
func TestARequestForANewSessionTellsNothingOfTheLast(t *testing.T) {
	earlier := bytes.Repeat([]byte{7}, 48)
	p := NewSessionRequest(earlier)
	require.Equal(t, bytes.Repeat([]byte{7}, 48), earlier, "it is the caller's")
	want := slices.Concat(bytes.Repeat([]byte{7}, 8), make([]byte, 8), bytes.Repeat([]byte{7}, 4), make([]byte, 8), bytes.Repeat([]byte{7}, 4), make([]byte, 16))
	require.Equal(t, want, p)
}

func TestAPieceThatIsTooShortIsNoRequest(t *testing.T) {
	whole := []byte{0, 0, 0, 8, 0, 0, 0, 5, 0, 0, 0, 3}
	xid, op, ok := Request(whole)
	require.True(t, ok)
	require.Equal(t, []int32{5, 3}, []int32{xid, op})
	for n := range whole {
		_, _, ok := Request(whole[:n])
		require.False(t, ok, n)
	}
}
