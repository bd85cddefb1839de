// SPDX-License-Identifier: Apache-2.0

// Package yield lets other goroutines run at places that a seed chooses. In virtual time, goroutines change only where one blocks,
// so two statements between which nothing blocks are always run together. Package rewrite puts calls of Here between them.
//
// Its Mutex, RWMutex and Once replace those of package sync: a goroutine that waits for one of these is durably blocked, so
// virtual time passes while another goroutine sleeps with the lock held.
package yield

import (
	"hash/fnv"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// The environment variables that select what Here does.
const (
	Seed = "ZKLOCK_YIELDS"       // without it, no goroutine yields
	Long = "ZKLOCK_YIELDS_SLEEP" // the longest sleep; without it, goroutines give way but do not sleep, so no virtual time passes
)

var (
	seed, isOn = func() (uint64, bool) {
		n, err := strconv.ParseUint(os.Getenv(Seed), 10, 64)
		return n, err == nil
	}()
	longest, _ = time.ParseDuration(os.Getenv(Long))
)

// A plan decides which calls of Here yield, and how. Each bubble has another one.
type plan struct {
	salt  uint64        // selects the places that yield often
	many  uint64        // one of so many places yields often: a goroutine can be much later than the others only if few are late
	often uint32        // one of so many calls yields at such a place
	rest  uint32        // one of so many calls yields at another place, for a moment
	long  time.Duration // the longest sleep at a place that yields often; if zero, goroutines give way there

	mu     sync.Mutex
	random *rand.Rand          // guarded by mu
	asleep map[*sleep]struct{} // guarded by mu
}

// A sleep is a goroutine that sleeps in Here.
type sleep struct{ until time.Time }

// newPlan draws the plan of a bubble.
func newPlan(name string) *plan {
	h := fnv.New64a()
	h.Write([]byte(name))
	r := rand.New(rand.NewPCG(seed, h.Sum64()))
	return &plan{
		salt: r.Uint64(), many: []uint64{8, 32, 128}[r.IntN(3)], often: 1 + r.Uint32N(3), rest: []uint32{8, 64, 1 << 20}[r.IntN(3)],
		long: []time.Duration{0, min(longest, 1), longest}[r.IntN(3)], random: r, asleep: map[*sleep]struct{}{},
	}
}

var current atomic.Pointer[plan] // of the bubble that runs; nil outside of bubbles

// isOften reports whether a place is one of those that yield often.
func (p *plan) isOften(place uint32) bool {
	x := (p.salt ^ uint64(place)) * 0x9e3779b97f4a7c15
	return x>>32%p.many == 0
}

// draw returns how often a call at a place must give way to other goroutines, and then for how long it sleeps.
func (p *plan) draw(place uint32) (gives int, d time.Duration) {
	odds, long := p.rest, min(longest, 1)
	if p.isOften(place) {
		odds, long = p.often, p.long
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.random.Uint32N(odds) > 0:
		return 0, 0
	case long == 0 || p.random.IntN(4) == 0:
		return []int{1, 2, 4, 8, 100}[p.random.IntN(5)], 0
	}
	return 0, 1 + time.Duration(p.random.Int64N(int64(long)))
}

// Here lets other goroutines run, if the seed says so.
func Here(place uint32) {
	p := current.Load()
	if p == nil {
		return
	}
	gives, d := p.draw(place)
	for range gives {
		runtime.Gosched()
	}
	if d > 0 {
		p.sleep(d)
	}
}

func (p *plan) sleep(d time.Duration) {
	self := &sleep{time.Now().Add(d)}
	p.mu.Lock()
	p.asleep[self] = struct{}{}
	p.mu.Unlock()
	time.Sleep(d)
	p.mu.Lock()
	delete(p.asleep, self)
	p.mu.Unlock()
}

// untilAwake returns how long it takes until the first goroutine that sleeps in Here wakes up. ok is false if none sleeps.
func (p *plan) untilAwake() (d time.Duration, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for s := range p.asleep {
		if left := time.Until(s.until); !ok || left < d {
			d, ok = left, true
		}
	}
	return d, ok
}

// Test is synctest.Test. One bubble runs at a time.
func Test(t *testing.T, f func(*testing.T)) {
	if !isOn {
		synctest.Test(t, f)
		return
	}
	current.Store(newPlan(t.Name()))
	defer current.Store(nil)
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(Wait) // the last: time stops when the bubble's first goroutine ends
		f(t)
	})
}

// Wait is synctest.Wait, and waits also for the goroutines that sleep in Here.
func Wait() {
	synctest.Wait()
	p := current.Load()
	if p == nil {
		return
	}
	for {
		d, ok := p.untilAwake()
		if !ok {
			return
		}
		time.Sleep(d)
		synctest.Wait()
	}
}

// Mutex is a sync.Mutex. The zero value is unlocked.
type Mutex struct {
	mu      sync.Mutex
	locked  bool
	waiting []chan struct{} // each is closed when the lock may be free
}

// Lock locks m.
func (m *Mutex) Lock() {
	for {
		m.mu.Lock()
		if !m.locked {
			m.locked = true
			m.mu.Unlock()
			return
		}
		free := make(chan struct{})
		m.waiting = append(m.waiting, free)
		m.mu.Unlock()
		<-free
	}
}

// TryLock locks m if it is free, and reports whether it was.
func (m *Mutex) TryLock() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.locked {
		return false
	}
	m.locked = true
	return true
}

// Unlock unlocks m.
func (m *Mutex) Unlock() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.locked {
		panic("unlock of an unlocked mutex")
	}
	m.locked = false
	for _, free := range m.waiting {
		close(free)
	}
	m.waiting = nil
}

// RWMutex is a sync.RWMutex. Its readers exclude each other.
type RWMutex struct{ Mutex }

// RLock locks rw.
func (rw *RWMutex) RLock() { rw.Lock() }

// RUnlock unlocks rw.
func (rw *RWMutex) RUnlock() { rw.Unlock() }

// Once is a sync.Once.
type Once struct {
	mu   Mutex
	done bool
}

// Do calls f, unless an earlier call has called its function.
func (o *Once) Do(f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.done {
		defer func() { o.done = true }()
		f()
	}
}
