// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/evidence/history"
	"github.com/zklock-go/zklock/observe"
)

// How observers behave.
const (
	slow   = "slow"
	panics = "panics"
)

// errWatcher is what an observer panics with.
var errWatcher = errors.New("the observer panicked")

// watcher is the observer of a user. It passes all events to check, and then delays or panics as planned.
type watcher struct {
	check *eventCheck
	p     *process
	root  string

	mu   sync.Mutex
	dice *rand.Rand // guarded by mu
}

// Observe implements observe.Observer.
func (w *watcher) Observe(e observe.Event) {
	if e.Path != "" {
		e.Path = w.root + e.Path
	}
	w.check.Observe(e)
	if w.p.f.plan.Watcher == "" {
		return
	}
	w.mu.Lock()
	now := w.dice.IntN(6) == 0
	w.mu.Unlock()
	switch {
	case !now:
	case w.p.f.plan.Watcher == panics && isOfCaller(e):
		panic(errWatcher)
	case w.p.f.plan.Watcher == slow && isOfCaller(e):
		w.delay(w.p.f.plan.watching() / 2)
	case w.p.f.plan.Watcher == slow:
		w.delay(w.p.f.plan.Timeout / 16)
	}
}

// delay delays a call. Meanwhile, the process need not make progress.
func (w *watcher) delay(d time.Duration) {
	from := w.p.f.rec.Now()
	time.Sleep(d)
	w.p.f.rec.Fault(history.Window{From: from, To: w.p.f.rec.Now() + 1, Kind: "slow observer", Clients: []string{w.p.name}})
}

// isOfCaller reports whether an event is delivered on the goroutine of the caller, which may panic. Queued of a Cohort is not.
func isOfCaller(e observe.Event) bool {
	switch e.Kind {
	case observe.Acquired, observe.GivenUp, observe.Refused:
		return true
	}
	return e.Kind == observe.Queued && e.Recipe != "cohort"
}

// watching returns how long an observer may delay an attempt, apart from what is delivered later: two events of it, each for longer than
// a session timeout.
func (p *Plan) watching() time.Duration {
	if p.Watcher != slow {
		return 0
	}
	return 3 * p.Timeout
}

// spared calls a function of the library. If an observer panics in it, spared returns errWatcher.
func spared(call func() error) (err error) {
	defer func() {
		switch x := recover(); x {
		case nil:
		case errWatcher:
			err = errWatcher
		default:
			panic(x)
		}
	}()
	return call()
}

// sparedHold is spared for a function that returns a hold.
func sparedHold(call func() (*zklock.Hold, error)) (hold *zklock.Hold, err error) {
	err = spared(func() (err error) {
		hold, err = call()
		return err
	})
	return hold, err
}

// isLate reports whether a hold had ended when an observer let the call return, and releases it then. The operations have failed.
func (p *user) isLate(hold *zklock.Hold, ops ...*history.Handle) bool {
	if p.f.plan.Watcher != slow || hold.Context().Err() == nil {
		return false
	}
	why := context.Cause(hold.Context())
	for _, op := range ops {
		if errors.Is(why, zklock.ErrLost) {
			op.Lost()
		}
		op.Finished(history.Failed, why)
	}
	_ = hold.Unlock(p.alive) // it reports why the hold has ended
	return true
}
