// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/observe"
)

// An early expiry needs a reason, unless the servers ended the session later than the client reported: then a leader that was deposed has
// refused it.
func TestAnEarlyExpiryNeedsAReason(t *testing.T) {
	for name, c := range map[string]struct {
		excused map[int64]bool
		ended   map[int64]time.Duration
		want    int // complaints
	}{
		"no reason":             {nil, map[int64]time.Duration{0x21: time.Second}, 1},
		"an operator ended it":  {map[int64]bool{0x21: true}, map[int64]time.Duration{0x21: time.Second}, 0},
		"another was ended":     {map[int64]bool{0x2: true}, map[int64]time.Duration{0x21: time.Second, 0x1: 3 * time.Second}, 1},
		"it ended later":        {nil, map[int64]time.Duration{0x21: 3 * time.Second}, 0},
		"it is not known ended": {nil, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			complaints := 0
			check := &eventCheck{report: func(_, _, _ string) { complaints++ }, now: func() time.Duration { return 2 * time.Second }}
			check.Observe(observe.Event{Kind: observe.ExpiredEarly, Err: errors.New("session 0x21 expired 1s before its lease")})
			check.close(c.excused, c.ended)
			require.Equal(t, c.want, complaints)
		})
	}
}
