// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/evidence/history"
	"github.com/zklock-go/zklock/zktest"
)

// fleet is the state of a run.
type fleet struct {
	plan *Plan
	srv  *zktest.Server
	rec  *history.Recorder
	// exhausted has the directories, by czxid, whose counter was set. Only the operator's stream uses it.
	exhausted map[int64]bool
	gauge     *gauge       // the measurements of a healthy run; nil otherwise
	refusals  *refusals    // of its throttles
	handshake atomic.Int64 // how long servers take to begin with a TLS handshake

	stop  chan struct{}      // closed when no new operation may start
	until context.Context    // done then
	cease context.CancelFunc // ends until
	end   context.Context
	wg    sync.WaitGroup // workers and other goroutines of the fleet

	mu          sync.Mutex
	views       int                      // guarded by mu
	procs       []*process               // guarded by mu; the current ones, in the plan's order
	eventChecks []*eventCheck            // guarded by mu: the observers of all processes, including earlier ones
	sessions    map[int64]string         // guarded by mu: session -> client
	at          map[string]int           // guarded by mu: client -> the server that received its last request
	resting     bool                     // guarded by mu: no caller waits or holds
	busy        map[string]time.Duration // guarded by mu: by client, when it last connected, or asked the quorum with a node while resting
	often       repeats                  // guarded by mu
	contacts    *contacts                // guarded by mu
	forced      map[int64]bool           // guarded by mu: sessions that an operator ended
	ended       map[int64]time.Duration  // guarded by mu: when sessions ended
	// ambiguous has the sessions that ended soon after a third party had deleted one of their nodes. If the client got no
	// reply in between, it takes the deletion for one caused by the end of the session.
	ambiguous map[int64]bool           // guarded by mu
	known     map[string]int64         // guarded by mu: contender nodes -> session
	robbed    map[int64]time.Duration  // guarded by mu: session -> when a third party last deleted a node of it
	fenced    map[string]int64         // guarded by mu: the token written last, by lock
	said      map[string]int           // guarded by mu: by semaphore, the number of permits that clients use, if it was changed
	writes    int                      // guarded by mu: number of guarded writes
	written   map[string]bool          // guarded by mu: the data of the committed writes
	refused   map[string]bool          // guarded by mu: the data of the writes that failed with ErrLost
	evicted   map[string]time.Duration // guarded by mu: by lock, when the last eviction ended
	limits    map[string][]limit       // guarded by mu: by semaphore, the stored numbers of permits
	faults    map[string]int           // guarded by mu
	broken    []history.Violation      // guarded by mu: violations that workers reported
}

// process is one connection with its users. If it crashes, another process replaces it. In the history, it is one client.
type process struct {
	f       *fleet
	spec    Client
	name    string
	servers []string        // the servers that it knows
	shared  *shared         // the program's connection; nil if its only user has its own
	alive   context.Context // done when the process ends
	die     context.CancelFunc
	skew    atomic.Int64 // skew of its wall clock
	calls   atomic.Int64 // the number of unfinished operations

	mu     sync.Mutex
	users  []*user                      // guarded by mu: the last one of each seat
	open   map[*history.Handle]struct{} // guarded by mu: unfinished operations
	away   chan struct{}                // guarded by mu: closed when the network is back; nil if it is not cut off
	alone  map[string]*zklock.Hold      // guarded by mu: by lock, the last hold that excludes all others
	denied int                          // guarded by mu: number of current faults that withhold permissions from it
	freed  time.Duration                // guarded by mu: when the last such fault ended
}

// handshakes returns how long servers take to begin with a TLS handshake.
func (f *fleet) handshakes() time.Duration { return time.Duration(f.handshake.Load()) }

func (f *fleet) report(rule, path, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.broken = append(f.broken, history.Violation{Rule: rule, Path: path, At: f.rec.Now(), Text: text})
}

func (f *fleet) closeAll() {
	for _, p := range f.present() {
		p.end()
	}
}

func (f *fleet) present() []*process {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]*process(nil), f.procs...)
}

// crash ends a process like a power failure: none of its requests reaches the servers afterwards.
func (f *fleet) crash(p *process) {
	f.srv.Partition(p.name)
	p.mu.Lock()
	for op := range p.open {
		op.Vanished()
	}
	for _, u := range p.users {
		if u != nil && p.shared != nil {
			u.eventCheck.forgive() // Close has reached its limit when it learns the last events, and does not end a connection after it
		}
	}
	p.mu.Unlock()
	p.end()
}

// rest sleeps for d. It returns false if the run or the process ends first.
func (p *process) rest(d time.Duration) bool { return p.f.rest(p.alive, d) }

// rest sleeps for d. It returns false if the run ends first, or ctx is done.
func (f *fleet) rest(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-f.stop:
	case <-ctx.Done():
	}
	return false
}

// nextView returns a new name for an observer's view.
func (f *fleet) nextView() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.views++
	return fmt.Sprintf("view%d", f.views)
}

// hasEvicted reports whether a contender of the lock may have been evicted since then.
func (f *fleet) hasEvicted(path string, since time.Duration) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	until, ok := f.evicted[path]
	return ok && until >= since
}

// evicts records until when an operator evicts contenders of the lock.
func (f *fleet) evicts(path string, until time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.evicted[path] = until
}

// cutOff cuts the process off from the network for the duration d.
func (p *process) cutOff(d time.Duration) {
	back := make(chan struct{})
	p.mu.Lock()
	p.away = back
	p.mu.Unlock()
	p.f.srv.Partition(p.name)
	time.Sleep(d)
	p.f.srv.HealClient(p.name)
	p.mu.Lock()
	p.away = nil
	p.mu.Unlock()
	close(back)
}

// reachable returns a channel that is closed when the process is not cut off.
func (p *process) reachable() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.away != nil {
		return p.away
	}
	now := make(chan struct{})
	close(now)
	return now
}

// addDenied records that a fault withholds permissions from the process or, with -1, that it has ended.
func (p *process) addDenied(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.denied, p.freed = p.denied+n, p.f.rec.Now()
}

// wasRefused reports whether err is a refusal of the server, and permissions were withheld from the process since then.
func (p *process) wasRefused(err error, since time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Is(err, zk.ErrNoAuth) && (p.denied > 0 || p.freed >= since)
}

// contacts records when servers last received a request from each client.
type contacts struct {
	least time.Duration // the shortest silence that is recorded
	last  map[string]time.Duration
	gaps  map[string][]gap // by client: its silences, in order
}

type gap struct{ from, to time.Duration }

func newContacts(least time.Duration) *contacts {
	return &contacts{least, map[string]time.Duration{}, map[string][]gap{}}
}

// note records that a server received a request from the client now.
func (h *contacts) note(client string, now time.Duration) {
	if last := h.last[client]; now-last > h.least {
		h.gaps[client] = append(h.gaps[client], gap{last, now})
	}
	h.last[client] = now
}

// longest returns the longest silence of the client between since and now. Silences of at most h.least are not recorded and do
// not count.
func (h *contacts) longest(client string, since, now time.Duration) time.Duration {
	most := now - max(since, h.last[client])
	for _, g := range slices.Backward(h.gaps[client]) {
		if g.to <= since {
			break
		}
		most = max(most, g.to-max(since, g.from))
	}
	return most
}

// unheard returns the longest period since then in which no server received a request from the process.
func (p *process) unheard(since time.Duration) time.Duration {
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	return p.f.contacts.longest(p.name, since, p.f.rec.Now())
}

// gauge has the measurements of a run.
type gauge struct {
	mu       sync.Mutex
	least    map[float64]float64 // guarded by mu: by session timeout in ticks, the lowest Remaining of a hold, as a share of the timeout
	lost     int                 // guarded by mu: number of lost holds
	holds    int                 // guarded by mu
	requests int                 // guarded by mu: requests of recipes
	beats    int                 // guarded by mu: requests of heartbeats
}

// limit is a number of permits and the time from which it is stored on the servers.
type limit struct {
	from    time.Duration
	permits int
}

// member draws the server for a fault.
func (f *fleet) member(r *rand.Rand) *zktest.Member {
	m := f.srv.Member(r.IntN(f.plan.Servers))
	if f.plan.Aim == "" {
		return m
	}
	p := f.holder(r)
	f.mu.Lock()
	own := f.srv.Member(f.at[p.name])
	f.mu.Unlock()
	leader := f.srv.Leader()
	switch {
	case f.plan.Aim == atOwn:
		return own
	case f.plan.Aim == atLeader && leader != nil:
		return leader
	}
	for i := range f.plan.Servers {
		if x := f.srv.Member(i); f.plan.Aim == atAnother && x != own && x != leader {
			return x
		}
	}
	return m
}

// count counts a fault, or a variant of one, for the tally.
func (f *fleet) count(kind string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults[kind]++
}

func (f *fleet) anyone(r *rand.Rand) *process {
	procs := f.present()
	return procs[r.IntN(len(procs))]
}

// term returns the longest timeout that a session of a client may have. client is the name of a process, which is the client's name
// with a suffix.
func (f *fleet) term(client string) time.Duration {
	longest := slices.Max(append(slices.Clone(f.plan.MinSessions), 0))
	for _, spec := range f.plan.Clients {
		if name, _, _ := strings.Cut(client, "."); name == spec.Name {
			longest = max(longest, spec.Session)
		}
	}
	return longest
}
