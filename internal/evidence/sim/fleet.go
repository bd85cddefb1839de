package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/evidence/history"
	"github.com/zklock-go/zklock/zktest"
)

// fleet is a run under way.
type fleet struct {
	plan *Plan
	srv  *zktest.Server
	rec  *history.Recorder
	// exhausted are the directories, by czxid, whose counter was set. Only the operator's stream uses it.
	exhausted map[int64]bool
	gauge     *gauge // of a healthy run

	stop chan struct{} // closed when no new operation may begin
	end  context.Context
	wg   sync.WaitGroup // workers and those who revive clients

	mu       sync.Mutex
	views    int                      // guarded by mu
	procs    []*process               // guarded by mu; the present ones, in the plan's order
	told     []*told                  // guarded by mu: of all processes that there were
	sessions map[int64]string         // guarded by mu: session -> client
	hears    *hearing                 // guarded by mu
	forced   map[int64]bool           // guarded by mu: sessions that an operator ended
	known    map[string]bool          // guarded by mu: contender nodes
	fenced   map[string]int64         // guarded by mu: the token written last, by lock
	said     map[string]int           // guarded by mu: by semaphore, the number of permits that everybody says, if it was changed
	writes   int                      // guarded by mu: guarded writes that were begun
	written  map[string]bool          // guarded by mu: the data of those that were committed
	refused  map[string]bool          // guarded by mu: the data of those that were said to have come too late
	evicted  map[string]time.Duration // guarded by mu: by lock, until when an operator removed somebody
	limits   map[string][]limit       // guarded by mu: by semaphore, the number of permits that was stored
	faults   map[string]int           // guarded by mu
	broken   []history.Violation      // guarded by mu: what the workers saw themselves
}

// process is one client with its workers: when it crashes, another takes its place.
type process struct {
	f       *fleet
	spec    Client
	name    string
	servers []string // that it knows
	client  *zklock.Client
	alive   context.Context // of its workers
	die     context.CancelFunc
	skew    atomic.Int64 // of its wall clock
	told    *told
	cohort  *zklock.CohortOptions // by which its workers take mutexes together; nil for each by itself

	mu      sync.Mutex
	open    map[*history.Handle]struct{} // guarded by mu: operations under way
	away    chan struct{}                // guarded by mu: closed when the network is there again; nil while it is
	guests  map[string]*zklock.Hold      // guarded by mu: by lock, the last that was granted to a goroutine of a cohort
	firsts  map[string]int64             // guarded by mu: by node, the first operation that held there
	granted map[string]time.Duration     // guarded by mu: by lock, when it was granted last
	denied  int                          // guarded by mu: faults that take rights from it
	freed   time.Duration                // guarded by mu: when the last of them ended
}

func (f *fleet) report(rule, path, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.broken = append(f.broken, history.Violation{Rule: rule, Path: path, At: f.rec.Now(), Text: text})
}

func (f *fleet) closeAll() {
	for _, p := range f.present() {
		p.die()
		p.client.Close()
	}
}

func (f *fleet) present() []*process {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]*process(nil), f.procs...)
}

// crash ends a process as a power cut does: nothing of it reaches the servers any more.
func (f *fleet) crash(p *process) {
	f.srv.Partition(p.name)
	p.mu.Lock()
	for op := range p.open {
		op.Vanished()
	}
	p.mu.Unlock()
	p.die()
	p.client.Close()
}

// rest sleeps, unless the run or the process ends.
func (p *process) rest(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-p.f.stop:
	case <-p.alive.Done():
	}
	return false
}

// nextView names one observer's view.
func (f *fleet) nextView() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.views++
	return fmt.Sprintf("view%d", f.views)
}

// hasEvicted reports whether somebody was removed from the lock since then.
func (f *fleet) hasEvicted(path string, since time.Duration) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	until, ok := f.evicted[path]
	return ok && until >= since
}

// evicts notes until when somebody is removed from the lock.
func (f *fleet) evicts(path string, until time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.evicted[path] = until
}

// cutOff takes the network from the process, for a while.
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

// reachable is closed while the process has a network, or from when it has one again.
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

// addDenied notes that a fault takes rights from the process, or with -1 that it has ended.
func (p *process) addDenied(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.denied, p.freed = p.denied+n, p.f.rec.Now()
}

// wasRefused reports whether err is a refusal, and rights were taken from the process since then.
func (p *process) wasRefused(err error, since time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Is(err, zk.ErrNoAuth) && (p.denied > 0 || p.freed >= since)
}

// hearing is when servers have heard of each client.
type hearing struct {
	least time.Duration // what a silence is at least
	last  map[string]time.Duration
	gaps  map[string][]gap // the silences of a client, in order
}

type gap struct{ from, to time.Duration }

func newHearing(least time.Duration) *hearing {
	return &hearing{least, map[string]time.Duration{}, map[string][]gap{}}
}

// note takes a moment at which a server hears of the client.
func (h *hearing) note(client string, now time.Duration) {
	if last := h.last[client]; now-last > h.least {
		h.gaps[client] = append(h.gaps[client], gap{last, now})
	}
	h.last[client] = now
}

// longest is the longest silence of the client between a moment and now; one that is too short to be noted does not count.
func (h *hearing) longest(client string, since, now time.Duration) time.Duration {
	most := now - max(since, h.last[client])
	for _, g := range slices.Backward(h.gaps[client]) {
		if g.to <= since {
			break
		}
		most = max(most, g.to-max(since, g.from))
	}
	return most
}

// unheard is the longest time since then in which no server has heard of the process.
func (p *process) unheard(since time.Duration) time.Duration {
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	return p.f.hears.longest(p.name, since, p.f.rec.Now())
}

// longest is the longest timeout that the process's session can have been given.
func (p *process) longest() time.Duration {
	return slices.Max(append(slices.Clone(p.f.plan.MinSessions), p.spec.Session))
}

// gauge is what a run has measured.
type gauge struct {
	mu       sync.Mutex
	least    map[float64]float64 // guarded by mu: what remained of a warm hold, at least, by the timeout in ticks; both in timeouts
	lost     int                 // guarded by mu: holds that were said to be lost
	holds    int                 // guarded by mu
	requests int                 // guarded by mu: of recipes
	beats    int                 // guarded by mu: of heartbeats, by what they are
}

// limit is how many permits there are from an instant on, as the servers' log has it.
type limit struct {
	from    time.Duration
	permits int
}

func (f *fleet) member(r *rand.Rand) *zktest.Member { return f.srv.Member(r.IntN(f.plan.Servers)) }

// count notes for the tally that a fault has happened, or a kind of it.
func (f *fleet) count(kind string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults[kind]++
}

func (f *fleet) anyone(r *rand.Rand) *process {
	procs := f.present()
	return procs[r.IntN(len(procs))]
}
