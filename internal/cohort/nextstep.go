// SPDX-License-Identifier: Apache-2.0

// Package cohort decides what the local queue of a Cohort does next: the queue of one process's
// goroutines that wait for the same lock. It has no state, reads no clock and sends nothing.
package cohort

import (
	"fmt"
	"time"
)

// A Situation is the state on which the next Step of a local queue depends.
type Situation struct {
	Over    bool // the client is closed
	Waiting int  // the number of waiting goroutines

	Place    bool          // whether there is a place, which the fields below describe
	Lost     bool          // it was lost
	Held     bool          // a goroutine holds there
	Wanted   bool          // other processes want it, or it cannot be known whether they do
	Waited   bool          // it had to wait for other contenders
	RunOver  bool          // the process must release the lock briefly
	Idle     time.Duration // how long there has been no hold
	Watching bool          // a watch on the directory is set, or was requested
	Blind    time.Duration // how much longer the watch may take to be set; zero once it is set
	Keep     time.Duration // how long an idle place is kept; negative if it is not kept
}

// A Step is what a local queue does next.
type Step struct {
	Action Action
	Wait   time.Duration // for Stay: the maximum time to wait for an event
}

// An Action is the kind of a Step.
type Action int

const (
	Stay        Action = iota
	Rest               // nothing to do until a goroutine asks or releases its hold
	End                // no waiters, and no place
	Obtain             // acquire a place
	Forget             // drop the place, which was lost
	WatchOthers        // find out whether others want the place
	Replace            // replace the node with a new one for the waiters
	Release            // release the place
	ReleaseLong        // release it and pause, so that contenders that do not wait can acquire the lock
)

const (
	// Forever is how long the queue waits for an event if nothing happens at a known time.
	Forever = time.Hour
	// WatchAfter is how long a place is idle before it watches the directory.
	WatchAfter = 2 * time.Millisecond
)

// Next returns what to do.
func (s Situation) Next() Step {
	switch {
	case s.Place && (s.Lost || s.Over):
		return Step{Action: Forget}
	case s.Place && s.Held && s.Waiting > 0:
		return Step{Wait: Forever}
	case s.Place && s.Held:
		return Step{Action: Rest}
	case s.Place:
		return s.nextWhileFree()
	case s.Waiting > 0 && !s.Over:
		return Step{Action: Obtain}
	}
	return Step{Action: End}
}

func (s Situation) nextWhileFree() Step {
	switch {
	case s.Waiting > 0 && s.RunOver:
		return Step{Action: ReleaseLong}
	case s.Waiting > 0:
		return Step{Action: Replace}
	case s.Wanted || s.Waited || s.RunOver || s.Idle >= s.Keep:
		return Step{Action: Release}
	case s.Watching && s.Blind > 0:
		return Step{Wait: min(s.Blind, s.Keep-s.Idle)}
	case s.Watching:
		return Step{Wait: s.Keep - s.Idle}
	case s.Idle < WatchAfter:
		return Step{Wait: min(WatchAfter, s.Keep) - s.Idle}
	}
	return Step{Action: WatchOthers}
}

func (a Action) String() string {
	return [...]string{"stay", "rest", "end", "obtain", "forget", "watch others", "replace", "release", "release for long"}[a]
}

func (d Step) String() string {
	if d.Action == Stay {
		return fmt.Sprintf("stay for %v", d.Wait)
	}
	return d.Action.String()
}
