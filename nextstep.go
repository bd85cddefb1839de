package zklock

import (
	"fmt"
	"time"
)

// A situation is what the next step of a localQueue depends on.
type situation struct {
	over    bool // the client is closed
	waiting int  // goroutines that wait

	place    bool          // there is a shared place, which the rest is about
	lost     bool          // it has been lost
	holds    int           // goroutines that hold there
	shared   bool          // several may hold at a time
	unfenced bool          // several may hold on one node
	ready    bool          // another may begin on the node, as far as the place is concerned
	closed   bool          // no other may begin
	wanted   bool          // others want it
	waited   bool          // it had to wait for others
	runOver  bool          // the process is to let go of the lock for a moment
	pause    time.Duration // how long readers do not begin; zero if they do
	age      time.Duration // of the place
	idle     time.Duration // how long nobody has held
	watching bool          // the directory is watched, or is about to be
	patience time.Duration // how much longer to wait until it is
	keep     time.Duration // how long an idle place is kept, negative for not at all
}

// A step is what a localQueue does next.
type step struct {
	action action
	wait   time.Duration // of stay: for an event, but no longer than this
}

type action int

const (
	stay        action = iota
	rest               // nothing has to be done before a goroutine asks or gives its hold up
	end                // nobody waits, and there is no place
	obtain             // get a place
	forget             // the place, which was lost
	watchOthers        // find out whether others want the place
	leaveApart         // leave the place to those that hold there, and get another for those that wait
	replace            // the node by another, for those that wait
	release            // give the place up
	releaseLong        // give it up, and pause, so that others get in which only look whether it is free
)

const (
	forever = time.Hour
	// watchAfter is how long a place is held or idle before it watches the directory, if others can
	// only be told from the watch that is set for that.
	watchAfter = 2 * time.Millisecond
)

// next returns what to do.
func (s situation) next() step {
	switch {
	case s.place && (s.lost || s.over):
		return step{action: forget}
	case s.place && s.holds > 0:
		return s.nextWhileHeld()
	case s.place:
		return s.nextWhileFree()
	case s.waiting > 0 && !s.over:
		return step{action: obtain}
	}
	return step{action: end}
}

func (s situation) nextWhileHeld() step {
	switch early := s.waited && s.age < watchAfter && (s.ready || s.waiting == 0); {
	case s.shared && s.closed && s.waiting > 0:
		return step{action: leaveApart}
	case s.lacksWatch() && early:
		return step{wait: watchAfter - s.age}
	case s.lacksWatch():
		return step{action: watchOthers}
	case s.waiting == 0:
		return step{action: rest}
	case s.pause > 0:
		return step{wait: s.pause}
	case s.shared && !s.ready:
		return step{wait: s.patience}
	case s.ready && s.keep > 0: // the end of a hold is not told if another may begin
		return step{wait: s.keep}
	}
	return step{wait: forever}
}

// lacksWatch reports whether others can follow on the node only if the directory is watched, which it is not.
func (s situation) lacksWatch() bool { return s.unfenced && !s.closed && !s.watching }

// isUndecided reports whether it pays to wait until it is known whether others can follow on the node. A
// place that had to wait for others has some behind it, mostly.
func (s situation) isUndecided() bool { return s.unfenced && !s.ready && !s.closed && !s.waited }

func (s situation) nextWhileFree() step {
	switch {
	case s.waiting > 0 && s.runOver:
		return step{action: releaseLong}
	case s.isUndecided() && s.watching:
		return step{wait: s.patience}
	case s.isUndecided():
		return step{action: watchOthers}
	case s.waiting > 0:
		return step{action: replace}
	case s.closed || s.wanted || s.waited && !s.ready || s.idle >= s.keep:
		return step{action: release}
	case s.watching:
		return step{wait: s.keep - s.idle}
	case s.idle < watchAfter:
		return step{wait: min(watchAfter, s.keep) - s.idle}
	}
	return step{action: watchOthers}
}

func (a action) String() string {
	return [...]string{"stay", "rest", "end", "obtain", "forget", "watch others", "leave apart", "replace", "release", "release for long"}[a]
}

func (d step) String() string {
	if d.action == stay {
		return fmt.Sprintf("stay for %v", d.wait)
	}
	return d.action.String()
}
