// SPDX-License-Identifier: Apache-2.0

package cohort

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTheNextStepOfALocalQueue covers each situation with another next step.
//
//zklock:promise P12.5
func TestTheNextStepOfALocalQueue(t *testing.T) {
	const ms = time.Millisecond
	place := func(change func(s *Situation)) Situation {
		s := Situation{Place: true, Keep: 100 * ms}
		change(&s)
		return s
	}
	for _, c := range []struct {
		name string
		in   Situation
		want Step
	}{
		{"no waiters", Situation{}, Step{Action: End}},
		{"somebody waits", Situation{Waiting: 1}, Step{Action: Obtain}},
		{"the client is closed", Situation{Waiting: 1, Over: true}, Step{Action: End}},
		{"a hold without a place", Situation{Held: true}, Step{Action: End}},
		{"somebody waits without a place", Situation{Held: true, Waiting: 1}, Step{Action: Obtain}},
		{"the place is lost", place(func(s *Situation) { s.Lost, s.Waiting = true, 1 }), Step{Action: Forget}},
		{"the client is closed, with a place", place(func(s *Situation) { s.Over, s.Held = true, true }), Step{Action: Forget}},

		{"held", place(func(s *Situation) { s.Held = true }), Step{Action: Rest}},
		{"held, and another waits", place(func(s *Situation) { s.Held, s.Waiting = true, 1 }), Step{Wait: Forever}},
		{"held, wanted and waited for", place(func(s *Situation) { s.Held, s.Wanted, s.Waiting = true, true, 1 }), Step{Wait: Forever}},

		{"idle", place(func(*Situation) {}), Step{Wait: 2 * ms}},
		{"idle for a moment", place(func(s *Situation) { s.Idle = ms }), Step{Wait: ms}},
		{"idle for just long enough", place(func(s *Situation) { s.Idle = WatchAfter }), Step{Action: WatchOthers}},
		{"idle and kept for a moment", place(func(s *Situation) { s.Idle, s.Keep = ms/2, ms }), Step{Wait: ms / 2}},
		{"idle, and no watch was requested", place(func(s *Situation) { s.Idle, s.Blind = 5*ms, 20*ms }), Step{Action: WatchOthers}},
		{"idle for a while", place(func(s *Situation) { s.Idle = 5 * ms }), Step{Action: WatchOthers}},
		{"idle, and the watch is not set yet", place(func(s *Situation) { s.Idle, s.Watching, s.Blind = 5*ms, true, 20*ms }), Step{Wait: 20 * ms}},
		{"idle, and the watch may take long", place(func(s *Situation) { s.Idle, s.Watching, s.Blind = 5*ms, true, time.Second }), Step{Wait: 95 * ms}},
		{"idle and watched", place(func(s *Situation) { s.Idle, s.Watching = 5*ms, true }), Step{Wait: 95 * ms}},
		{"idle for long", place(func(s *Situation) { s.Idle = 100 * ms }), Step{Action: Release}},
		{"idle and not to be kept", place(func(s *Situation) { s.Keep = -1 }), Step{Action: Release}},
		{"idle and wanted", place(func(s *Situation) { s.Wanted = true }), Step{Action: Release}},
		{"idle after a wait", place(func(s *Situation) { s.Waited = true }), Step{Action: Release}},
		{"idle after a run", place(func(s *Situation) { s.RunOver = true }), Step{Action: Release}},
		{"free and waited for", place(func(s *Situation) { s.Waiting = 1 }), Step{Action: Replace}},
		{"free, wanted and waited for", place(func(s *Situation) { s.Wanted, s.Waiting = true, 1 }), Step{Action: Replace}},
		{"free and waited for after a run", place(func(s *Situation) { s.Waiting, s.RunOver = 1, true }), Step{Action: ReleaseLong}},
	} {
		require.Equal(t, c.want, c.in.Next(), "%s: %v", c.name, c.in.Next())
	}
}

func TestAStepIsPrinted(t *testing.T) {
	require.Equal(t, "stay for 2ms", Step{Wait: 2 * time.Millisecond}.String())
	require.Equal(t, "release for long", Step{Action: ReleaseLong, Wait: time.Second}.String())
	require.Equal(t, "watch others", Step{Action: WatchOthers}.String())
}
