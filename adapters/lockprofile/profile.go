// SPDX-License-Identifier: Apache-2.0

// Package lockprofile measures how long a program waits for its locks and how long it holds them,
// and provides the result as a profile for go tool pprof. The samples are grouped by path and by
// the place in the program that acquired the lock.
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
// Each sample has four values: waits and wait (the number of waits and their total time), and holds
// and hold (the same for holds). It also has the label "path". The values count from the creation
// of the profile. A wait is counted when it ends, regardless of its outcome; the goroutine profile
// shows where a program is waiting now. A hold is counted from its start.
package lockprofile

import (
	"io"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/google/pprof/profile"

	"github.com/zklock-go/zklock/observe"
)

// Profile measures the locks of one or several clients. Use it as zklock.Options.Observer. The zero
// value is ready to use. It is safe for concurrent use and must not be copied.
type Profile struct {
	// Name returns the name of a lock in the profile. By default it is the lock's path. A profile
	// keeps a thousand different pairs of a name and a place, and adds all further ones under the
	// name "other": if there are many paths, give many of them the same name.
	Name func(path string) string
	// Next, if not nil, is also called with every event.
	Next observe.Observer

	mu    sync.Mutex
	sites map[site]*times    // guarded by mu
	held  map[holding][]grip // guarded by mu: holds that have not ended, in the order in which they began
	early map[holding]bool   // guarded by mu: holds whose end was reported before their start
}

// site identifies the samples that are added up.
type site struct {
	name  string
	stack [depth]uintptr
}

const (
	depth    = 32   // of the recorded stacks
	maxSites = 1000 // with their own name
	maxEarly = 1000 // ends that were reported before their starts
)

// times contains the measurements at a site.
type times struct {
	waits, holds int64
	wait, hold   time.Duration // only holds that have ended
}

// holding identifies the holds of one lock on one node. There can be several at the same time:
// the next hold of a Cohort's node may be reported before the end of the previous one.
type holding struct{ path, node string }

// grip is a hold that has not ended.
type grip struct {
	at    *times
	since time.Time
}

// Observe records an event, and passes it on to Next.
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

// siteOf returns the site of an attempt. Observe is called on the goroutine of the attempt's
// caller.
func (p *Profile) siteOf(e observe.Event) site {
	s := site{name: e.Path}
	if p.Name != nil {
		s.name = p.Name(e.Path)
	}
	runtime.Callers(3, s.stack[:]) // the first frame is the caller of Observe
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
	if p.early[id] { // it was lost at once, and another goroutine reported that first
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
	p.held[id] = slices.Delete(held, i, i+1)
	if len(held) == 1 {
		delete(p.held, id)
	}
}

// endsEarly records an end without a start. The start either follows or came before the profile was
// created. At most maxEarly such ends are kept. It must be called with mu held.
func (p *Profile) endsEarly(id holding) {
	if p.early == nil || len(p.early) >= maxEarly {
		p.early = map[holding]bool{}
	}
	p.early[id] = true
}

// begunAt returns the index of the hold that started nearest to since.
func begunAt(held []grip, since time.Time) int {
	nearest := 0
	for i, g := range held {
		if g.since.Sub(since).Abs() < held[nearest].since.Sub(since).Abs() {
			nearest = i
		}
	}
	return nearest
}

// Write writes the profile in the format of go tool pprof.
func (p *Profile) Write(w io.Writer) error {
	e := newEncoder([]*profile.ValueType{
		{Type: "waits", Unit: "count"}, {Type: "wait", Unit: "nanoseconds"}, {Type: "holds", Unit: "count"}, {Type: "hold", Unit: "nanoseconds"},
	}, "wait")
	for s, t := range p.present() {
		stack := s.stack[:]
		for len(stack) > 0 && stack[len(stack)-1] == 0 {
			stack = stack[:len(stack)-1]
		}
		e.sample(stack, s.name, t.waits, int64(t.wait), t.holds, int64(t.hold))
	}
	return e.out.Write(w)
}

// present returns the measurements up to now, including the holds that have not ended.
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

// ServeHTTP responds with the profile. It can be registered at any path, for example
// /debug/pprof/zklock.
func (p *Profile) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", `attachment; filename="zklock"`)
	_ = p.Write(w) // fails if the client has disconnected
}
