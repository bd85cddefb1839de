package sim

import (
	"fmt"
	"path"
	"slices"
	"sync"

	"github.com/zklock-go/zklock/observe"
)

// events is the rule that an observer hears of every attempt's end, and of every hold's beginning and end, once.
const events = "events"

// told is what the observer of a client has heard, beside what callers were told. Its lists are short.
type told struct {
	report func(rule, path, text string)
	name   string

	mu     sync.Mutex
	begun  []grant  // guarded by mu: holds that have begun and not ended
	unsaid []grant  // guarded by mu: holds that no caller has spoken of
	failed []ending // guarded by mu: ends of attempts that no caller has spoken of
	silent []string // guarded by mu: locks of which callers speak of some attempts only: those of LockAll, and elections that are Run
}

// grant is a hold as events name it. Goroutines may share one.
type grant struct {
	path, node string
	token      int64
}

// ending is the end of an attempt.
type ending struct{ path, text string }

// Observe takes an event of the client's.
func (t *told) Observe(e observe.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	hold := grant{e.Path, e.Node, e.Token}
	switch e.Kind {
	case observe.Acquired:
		t.begun, t.unsaid = append(t.begun, hold), append(t.unsaid, hold)
	case observe.Released, observe.Lost, observe.Ended:
		if !take(&t.begun, hold) {
			t.complain(e.Path, "%v of a hold that has not begun, or has ended: %v", e.Kind, hold)
		}
	case observe.GivenUp, observe.Refused:
		t.failed = append(t.failed, ending{e.Path, e.Err.Error()})
	}
}

// holds notes that a caller was given a hold.
func (t *told) holds(lock, node string, token int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if hold := (grant{lock, path.Base(node), token}); !take(&t.unsaid, hold) {
		t.complain(lock, "nothing was heard of a hold: %v", hold)
	}
}

// fails notes that a caller's attempt has failed.
func (t *told) fails(lock string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if end := (ending{lock, err.Error()}); !take(&t.failed, end) {
		t.complain(lock, "nothing was heard of the end of an attempt: %s", end.text)
	}
}

// ends notes that a caller has released the only hold of a node, and that this was done.
func (t *told) ends(lock, node string, token int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if hold := (grant{lock, path.Base(node), token}); slices.Contains(t.begun, hold) {
		t.complain(lock, "nothing was heard of a release: %v", hold)
	}
}

// isSilentOf notes that a caller does not speak of all its attempts at a lock.
func (t *told) isSilentOf(lock string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !slices.Contains(t.silent, lock) {
		t.silent = append(t.silent, lock)
	}
}

// close judges what is left when the client was closed.
func (t *told) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, hold := range t.begun {
		t.complain(hold.path, "nothing was heard of the end of a hold: %v", hold)
	}
	for _, hold := range t.unsaid {
		if !slices.Contains(t.silent, hold.path) {
			t.complain(hold.path, "nobody was given a hold that was heard of: %v", hold)
		}
	}
	for _, end := range t.failed {
		if !slices.Contains(t.silent, end.path) {
			t.complain(end.path, "nobody was told of the end of an attempt: %s", end.text)
		}
	}
}

func (t *told) complain(lock, format string, args ...any) {
	t.report(events, lock, t.name+": "+fmt.Sprintf(format, args...))
}

// take takes one x from a list, and reports whether there was one.
func take[T comparable](list *[]T, x T) bool {
	i := slices.Index(*list, x)
	if i >= 0 {
		*list = slices.Delete(*list, i, i+1)
	}
	return i >= 0
}
