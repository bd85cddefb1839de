// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/evidence/history"
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

// A third party deletes a node, and the client, which gets no more replies, sends requests for half a second. The servers end its session a
// timeout and up to a tick later.
func TestTheEndOfASessionSoonAfterADeletionIsAmbiguous(t *testing.T) {
	for after, want := range map[time.Duration]bool{0: true, 1400 * time.Millisecond: true, 3 * time.Second: false} {
		synctest.Test(t, func(t *testing.T) {
			f := &fleet{
				plan: &Plan{Tick: time.Second, Clients: []Client{{Name: "c0", Session: time.Second / 2}}}, rec: history.NewRecorder(),
				sessions: map[int64]string{0x21: "c0.1"}, robbed: map[int64]time.Duration{0x21: 0}, ambiguous: map[int64]bool{},
			}
			time.Sleep(after)
			f.endsAmbiguously(0x22, 0)
			f.endsAmbiguously(0x21, 0)
			require.Equal(t, want, f.ambiguous[0x21], after)
			require.False(t, f.ambiguous[0x22])
		})
	}
}

// The end of a hold that ends at once may be reported before its start. It is reported once.
func TestEachHoldHasOneEventForItsEnd(t *testing.T) {
	const acquired, released, lost, ended = observe.Acquired, observe.Released, observe.Lost, observe.Ended
	for name, c := range map[string]struct {
		kinds []observe.Kind
		want  int // complaints
	}{
		"released":              {[]observe.Kind{acquired, released}, 0},
		"lost at once":          {[]observe.Kind{lost, acquired}, 0},
		"closed at once":        {[]observe.Kind{ended, acquired}, 0},
		"released before":       {[]observe.Kind{released, acquired}, 2},
		"lost twice":            {[]observe.Kind{acquired, lost, lost}, 1},
		"twice, once before":    {[]observe.Kind{lost, acquired, ended}, 1},
		"lost, but never begun": {[]observe.Kind{lost}, 1},
		"no end":                {[]observe.Kind{acquired}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			complaints := 0
			check := &eventCheck{report: func(_, _, _ string) { complaints++ }, now: func() time.Duration { return 0 }}
			for _, kind := range c.kinds {
				check.Observe(observe.Event{Kind: kind, Path: "/a", Node: "n", Token: 1})
				if kind == acquired {
					check.holds("/a", "/a/n", 1)
				}
			}
			check.close(nil, nil)
			require.Equal(t, c.want, complaints)
		})
	}
}
