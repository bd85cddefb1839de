// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheLongestSilenceOfAClientIsKnown(t *testing.T) {
	h := newContacts(time.Second)
	for _, at := range []time.Duration{100, 300, 900, 5000, 5200, 5400, 9000} {
		h.note("a", at*time.Millisecond)
	}
	for _, c := range []struct{ since, now, want time.Duration }{
		{0, 9000, 4100}, {950, 9100, 4050}, {5000, 9000, 3600}, {6000, 9500, 3000}, {9000, 12000, 3000}, {9100, 12000, 2900},
	} {
		require.Equal(t, c.want*time.Millisecond, h.longest("a", c.since*time.Millisecond, c.now*time.Millisecond), c)
	}
	require.Equal(t, time.Minute, h.longest("b", 0, time.Minute))
}
