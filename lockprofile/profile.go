// Package lockprofile measures how long a program waits for its locks and how long it holds
// them, as a profile for go tool pprof. It tells them apart by path and by the place in the
// program that asked.
//
//	profile := &lockprofile.Profile{}
//	client, err := zklock.Connect(ctx, servers, &zklock.Options{Observer: profile})
//	...
//	http.Handle("/debug/pprof/zklock", profile)
//
// Then, in a shell:
//
//	go tool pprof -top http://localhost:6060/debug/pprof/zklock
//	go tool pprof -tags http://localhost:6060/debug/pprof/zklock
//	go tool pprof -sample_index=hold -http=: http://localhost:6060/debug/pprof/zklock
//
// Each sample has four values: waits and wait (how many and how long, in total), holds and
// hold; and the label "path". The times are since the profile was made. A wait counts when it
// is over, however it ended; where a program waits now shows the goroutine profile. A hold
// counts from its beginning.
package lockprofile

import (
	"io"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/zklock-go/zklock/observe"
)

// Profile measures the locks of one client or several: it is for zklock.Options.Observer. The
// zero value is ready to use. It can be used by several goroutines, and must not be copied.
type Profile struct {
	// Name names a lock in the profile. Default: its path. A profile keeps a thousand
	// different pairs of a name and a place, and puts all further ones under the name
	// "other": where paths are many, give many the same name.
	Name func(path string) string
	// Next is called with every event as well. Default none.
	Next observe.Observer

	mu    sync.Mutex
	sites map[site]*times    // guarded by mu
	held  map[holding][]grip // guarded by mu: holds that have not ended, in the order in which they began
	early map[holding]bool   // guarded by mu: of which an end was told, and no beginning yet
}

// site is what times are added up for.
type site struct {
	name  string
	stack [depth]uintptr
}

const (
	depth    = 32   // of the stacks that are kept
	maxSites = 1000 // with a name of their own
	maxEarly = 1000 // ends whose beginnings may come
)

// times is what was measured at a site.
type times struct {
	waits, holds int64
	wait, hold   time.Duration // of holds that have ended
}

// holding is what holds of one lock on one node have in common: readers of a Cohort hold there at a time.
type holding struct{ path, node string }

// grip is a hold that has not ended.
type grip struct {
	at    *times
	since time.Time
}

// Observe measures what an event tells, and passes it on to Next.
func (p *Profile) Observe(e observe.Event) {
	switch e.Kind {
	case observe.Acquired:
		p.acquired(e, p.siteOf(e))
	case observe.GivenUp, observe.Refused:
		p.waited(e, p.siteOf(e))
	case observe.Released, observe.Lost, observe.Ended:
		p.ended(e)
	}
	if p.Next != nil {
		p.Next.Observe(e)
	}
}

// siteOf returns the site of an attempt, which is observed where its caller waits.
func (p *Profile) siteOf(e observe.Event) site {
	s := site{name: e.Path}
	if p.Name != nil {
		s.name = p.Name(e.Path)
	}
	runtime.Callers(3, s.stack[:]) // the first is what has called Observe
	return s
}

func (p *Profile) waited(e observe.Event, s site) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.addWait(e, s)
}

func (p *Profile) acquired(e observe.Event, s site) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.addWait(e, s)
	at.holds++
	id := holding{e.Path, e.Node}
	if p.early[id] { // lost at once: it was told of on another goroutine
		delete(p.early, id)
		return
	}
	if p.held == nil {
		p.held = map[holding][]grip{}
	}
	p.held[id] = append(p.held[id], grip{at, time.Now()})
}

// addWait must be called with mu held.
func (p *Profile) addWait(e observe.Event, s site) *times {
	at := p.timesOf(s)
	at.waits++
	at.wait += e.Elapsed
	return at
}

// timesOf must be called with mu held.
func (p *Profile) timesOf(s site) *times {
	at := p.sites[s]
	if at == nil && len(p.sites) >= maxSites {
		s = site{name: "other"}
		at = p.sites[s]
	}
	if at == nil {
		at = &times{}
		if p.sites == nil {
			p.sites = map[site]*times{}
		}
		p.sites[s] = at
	}
	return at
}

func (p *Profile) ended(e observe.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	id := holding{e.Path, e.Node}
	held := p.held[id]
	if len(held) == 0 {
		p.endsEarly(id)
		return
	}
	i := begunAt(held, time.Now().Add(-e.Elapsed))
	held[i].at.hold += e.Elapsed
	if p.held[id] = slices.Delete(held, i, i+1); len(held) == 1 {
		delete(p.held, id)
	}
}

// endsEarly notes an end without a beginning. The beginning comes next, or was before there was a profile: most are
// not kept. It must be called with mu held.
func (p *Profile) endsEarly(id holding) {
	if p.early == nil || len(p.early) >= maxEarly {
		p.early = map[holding]bool{}
	}
	p.early[id] = true
}

// begunAt returns the index of the hold whose beginning was nearest to an instant.
func begunAt(held []grip, since time.Time) int {
	nearest := 0
	for i, g := range held {
		if g.since.Sub(since).Abs() < held[nearest].since.Sub(since).Abs() {
			nearest = i
		}
	}
	return nearest
}

// Write writes the profile as go tool pprof reads it.
func (p *Profile) Write(w io.Writer) error {
	e := newEncoder([]valueType{{"waits", "count"}, {"wait", "nanoseconds"}, {"holds", "count"}, {"hold", "nanoseconds"}}, "wait")
	for s, t := range p.present() {
		stack := s.stack[:]
		for len(stack) > 0 && stack[len(stack)-1] == 0 {
			stack = stack[:len(stack)-1]
		}
		e.sample(stack, s.name, t.waits, int64(t.wait), t.holds, int64(t.hold))
	}
	return e.writeTo(w)
}

// present returns what was measured up to now, with the holds that have not ended.
func (p *Profile) present() map[site]times {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	going := map[*times]time.Duration{}
	for _, held := range p.held {
		for _, g := range held {
			going[g.at] += now.Sub(g.since)
		}
	}
	all := map[site]times{}
	for s, t := range p.sites {
		sum := *t
		sum.hold += going[t]
		all[s] = sum
	}
	return all
}

// ServeHTTP answers with the profile. The path is free: /debug/pprof/zklock, for example.
func (p *Profile) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", `attachment; filename="zklock"`)
	_ = p.Write(w) // fails if nobody reads it any more
}
