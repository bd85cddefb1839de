// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zklock-go/zklock/observe"
)

// events is the rule that an observer receives exactly one event for the end of each attempt, and for the start and the end of
// each hold.
const events = "events"

// eventCheck compares the events that a client's observer receives with the results of its calls.
type eventCheck struct {
	report func(rule, path, text string)
	now    func() time.Duration // since the run began
	name   string

	mu sync.Mutex
	// lenient is set if the observer delays calls or panics. Then not every attempt returns its outcome, and Close can end before the
	// last events.
	lenient bool     // guarded by mu
	begun   []grant  // guarded by mu: holds with an event for their start but not for their end
	over    []over   // guarded by mu: ends of holds without an event for their start, which may follow: see observe.Observer
	unsaid  []grant  // guarded by mu: holds with an event that no caller has reported yet
	failed  []ending // guarded by mu: ends of attempts with an event that no caller has reported yet
	early   []early  // guarded by mu: the events about sessions that expired early
	silent  []string // guarded by mu: locks for which callers report only some attempts: those of LockAll and Election.Run
}

// grant identifies a hold in events. Goroutines may share one.
type grant struct {
	path, node string
	token      int64
}

// over is an event for the end of a hold.
type over struct {
	grant
	kind observe.Kind
}

// early is an event about a session that expired early.
type early struct {
	text string
	at   time.Duration
}

// is reports whether the event is about a session.
func (e early) is(session int64) bool { return strings.Contains(e.text, fmt.Sprintf("0x%x ", session)) }

// ending is the end of an attempt.
type ending struct{ path, text string }

// Observe implements observe.Observer.
func (t *eventCheck) Observe(e observe.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	hold := grant{e.Path, e.Node, e.Token}
	switch e.Kind {
	case observe.Acquired:
		t.unsaid = append(t.unsaid, hold)
		if !take(&t.over, over{hold, observe.Lost}) && !take(&t.over, over{hold, observe.Ended}) {
			t.begun = append(t.begun, hold)
		}
	case observe.Released, observe.Lost, observe.Ended:
		if !take(&t.begun, hold) {
			t.over = append(t.over, over{hold, e.Kind})
		}
	case observe.ExpiredEarly:
		t.early = append(t.early, early{e.Err.Error(), t.now()})
	case observe.GivenUp, observe.Refused:
		t.failed = append(t.failed, ending{e.Path, e.Err.Error()})
	}
}

// holds records that a call returned a hold.
func (t *eventCheck) holds(lock, node string, token int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if hold := (grant{lock, path.Base(node), token}); !take(&t.unsaid, hold) {
		t.complain(lock, "no event for a hold: %v", hold)
	}
}

// fails records that an attempt failed.
func (t *eventCheck) fails(lock string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if end := (ending{lock, err.Error()}); !take(&t.failed, end) && !t.lenient {
		t.complain(lock, "no event for the end of an attempt: %s", end.text)
	}
}

// ends records that a caller has released the only hold of a node without an error.
func (t *eventCheck) ends(lock, node string, token int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if hold := (grant{lock, path.Base(node), token}); slices.Contains(t.begun, hold) && !t.lenient {
		t.complain(lock, "no event for a release: %v", hold)
	}
}

// isSilentOf records that callers do not report all attempts for a lock.
func (t *eventCheck) isSilentOf(lock string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !slices.Contains(t.silent, lock) {
		t.silent = append(t.silent, lock)
	}
}

// close reports the remaining differences after the client was closed. excused has the sessions that may have ended before their
// lease for a reason other than a defect. ended has the time when each session ended on the servers. A leader that was deposed and does
// not know it refuses sessions that the others have: these had not ended when the client reported it.
func (t *eventCheck) close(excused map[int64]bool, ended map[int64]time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.early {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(excused)), e.is) && !lasted(e, ended) {
			t.complain("", "a session expired early without a reason: %s", e.text)
		}
	}
	for _, o := range t.over {
		t.complain(o.path, "event %v for a hold that has not started or has already ended: %v", o.kind, o.grant)
	}
	if t.lenient {
		return
	}
	for _, hold := range t.begun {
		t.complain(hold.path, "no event for the end of a hold: %v", hold)
	}
	for _, hold := range t.unsaid {
		if !slices.Contains(t.silent, hold.path) {
			t.complain(hold.path, "an event for a hold that no call returned: %v", hold)
		}
	}
	for _, end := range t.failed {
		if !slices.Contains(t.silent, end.path) {
			t.complain(end.path, "an event for a failed attempt that no call reported: %s", end.text)
		}
	}
}

// lasted reports whether the servers ended the session of an event after the event. It also excuses a client that reports the end of a
// session that no server has refused.
func lasted(e early, ended map[int64]time.Duration) bool {
	for session, at := range ended {
		if e.is(session) && at > e.at {
			return true
		}
	}
	return false
}

func (t *eventCheck) complain(lock, format string, args ...any) {
	t.report(events, lock, t.name+": "+fmt.Sprintf(format, args...))
}

// forgive allows that events are missing from now on.
func (t *eventCheck) forgive() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lenient = true
}

// take removes one x from a list, and reports whether there was one.
func take[T comparable](list *[]T, x T) bool {
	i := slices.Index(*list, x)
	if i >= 0 {
		*list = slices.Delete(*list, i, i+1)
	}
	return i >= 0
}
