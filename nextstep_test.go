package zklock

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTheNextStepOfALocalQueue has each situation in which another step follows.
func TestTheNextStepOfALocalQueue(t *testing.T) {
	const ms = time.Millisecond
	place := func(change func(s *situation)) situation {
		s := situation{place: true, keep: 100 * ms, patience: time.Second}
		change(&s)
		return s
	}
	for _, c := range []struct {
		name string
		in   situation
		want step
	}{
		{"nobody waits", situation{}, step{action: end}},
		{"somebody waits", situation{waiting: 1}, step{action: obtain}},
		{"the client is closed", situation{waiting: 1, over: true}, step{action: end}},
		{"the place is lost", place(func(s *situation) { s.lost, s.waiting = true, 1 }), step{action: forget}},
		{"the client is closed, with a place", place(func(s *situation) { s.over, s.holds = true, 1 }), step{action: forget}},

		{"held in a fenced cohort", place(func(s *situation) { s.holds = 1 }), step{action: rest}},
		{"and another waits", place(func(s *situation) { s.holds, s.waiting = 1, 1 }), step{wait: forever}},
		{"held, without a watch yet", place(func(s *situation) { s.holds, s.unfenced = 1, true }), step{action: watchOthers}},
		{"held for a moment after a wait", place(func(s *situation) { s.holds, s.unfenced, s.waited, s.ready, s.age = 1, true, true, true, ms/2 }), step{wait: 3 * ms / 2}},
		{"held for longer after a wait", place(func(s *situation) { s.holds, s.unfenced, s.waited, s.ready, s.age = 1, true, true, true, 2*ms }), step{action: watchOthers}},
		{"held in a place that is watched", place(func(s *situation) { s.holds, s.unfenced, s.ready, s.watching = 1, true, true, true }), step{action: rest}},
		{"and another waits there", place(func(s *situation) { s.holds, s.unfenced, s.ready, s.watching, s.waiting = 1, true, true, true, 1 }), step{wait: 100 * ms}},
		{"read for a moment after a wait", place(func(s *situation) { s.holds, s.unfenced, s.shared, s.waited = 1, true, true, true }), step{wait: 2 * ms}},
		{"and another waits to read as well", place(func(s *situation) { s.holds, s.unfenced, s.shared, s.waited, s.waiting = 1, true, true, true, 1 }), step{action: watchOthers}},
		{"read, and another waits for the watch", place(func(s *situation) { s.holds, s.unfenced, s.shared, s.watching, s.waiting = 1, true, true, true, 1 }), step{wait: time.Second}},
		{"read, and another waits for the end of a pause", place(func(s *situation) {
			s.holds, s.unfenced, s.shared, s.watching, s.ready, s.waiting, s.runOver, s.pause = 1, true, true, true, true, 1, true, 7*ms
		}), step{wait: 7 * ms}},
		{"read in a place that is closed", place(func(s *situation) { s.holds, s.unfenced, s.shared, s.watching, s.closed = 1, true, true, true, true }), step{action: rest}},
		{"and another waits to read", place(func(s *situation) {
			s.holds, s.unfenced, s.shared, s.watching, s.closed, s.waiting = 1, true, true, true, true, 1
		}), step{action: leaveApart}},
		{"held alone in a place that is closed, and another waits", place(func(s *situation) { s.holds, s.unfenced, s.watching, s.closed, s.waiting = 1, true, true, true, 1 }), step{wait: forever}},

		{"idle in a fenced cohort", place(func(*situation) {}), step{wait: 2 * ms}},
		{"idle for a while", place(func(s *situation) { s.idle = 5 * ms }), step{action: watchOthers}},
		{"idle and watched", place(func(s *situation) { s.idle, s.watching = 5*ms, true }), step{wait: 95 * ms}},
		{"idle for long", place(func(s *situation) { s.idle = 100 * ms }), step{action: release}},
		{"idle and not to be kept", place(func(s *situation) { s.keep = -1 }), step{action: release}},
		{"idle and wanted", place(func(s *situation) { s.wanted = true }), step{action: release}},
		{"idle and closed", place(func(s *situation) { s.closed, s.unfenced = true, true }), step{action: release}},
		{"idle after a wait, without a watch", place(func(s *situation) { s.waited, s.unfenced = true, true }), step{action: release}},
		{"free after a wait, without a watch, and waited for", place(func(s *situation) { s.waited, s.unfenced, s.waiting = true, true, 1 }), step{action: replace}},
		{"free and waited for", place(func(s *situation) { s.waiting = 1 }), step{action: replace}},
		{"free and waited for after a run", place(func(s *situation) { s.waiting, s.runOver = 1, true }), step{action: releaseLong}},
		{"free, without a watch yet", place(func(s *situation) { s.unfenced, s.waiting = true, 1 }), step{action: watchOthers}},
		{"free, and the watch does not stand yet", place(func(s *situation) { s.unfenced, s.waiting, s.watching = true, 1, true }), step{wait: time.Second}},
		{"free, and others come before those that wait", place(func(s *situation) { s.unfenced, s.waiting, s.ready, s.watching, s.closed = true, 1, true, true, true }), step{action: replace}},
	} {
		require.Equal(t, c.want, c.in.next(), "%s: %v", c.name, c.in.next())
	}
}
