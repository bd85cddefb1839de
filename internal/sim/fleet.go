package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/history"
	"github.com/zklock-go/zklock/internal/wall"
	"github.com/zklock-go/zklock/zktest"
)

// Result is what came of a run.
type Result struct {
	Plan       *Plan
	History    *history.History
	Violations []history.Violation
	Faults     map[string]int
	Virtual    time.Duration
	Gauge      *gauge // of a healthy run
}

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
	views    int                 // guarded by mu
	procs    []*process          // guarded by mu; the present ones, in the plan's order
	sessions map[int64]string    // guarded by mu: session -> client
	forced   map[int64]bool      // guarded by mu: sessions that an operator ended
	known    map[string]bool     // guarded by mu: contender nodes
	fenced   map[string]int64    // guarded by mu: the token written last, by lock
	said     map[string]int      // guarded by mu: by semaphore, the number of permits that everybody says, if it was changed
	writes   int                 // guarded by mu: guarded writes that were begun
	written  map[string]bool     // guarded by mu: the data of those that were committed
	refused  map[string]bool     // guarded by mu: the data of those that were said to have come too late
	evicted  map[string]bool     // guarded by mu: locks from which an operator has removed somebody
	limits   map[string][]limit  // guarded by mu: by semaphore, the number of permits that was stored
	faults   map[string]int      // guarded by mu
	broken   []history.Violation // guarded by mu: what the workers saw themselves
}

// process is one client with its workers: when it crashes, another takes its place.
type process struct {
	f      *fleet
	spec   Client
	name   string
	client *zklock.Client
	alive  context.Context // of its workers
	die    context.CancelFunc
	skew   atomic.Int64 // of its wall clock

	mu     sync.Mutex
	open   map[*history.Handle]struct{} // guarded by mu: operations under way
	away   chan struct{}                // guarded by mu: closed when the network is there again; nil while it is
	woken  time.Time                    // guarded by mu: since when the client contends, with pauses in which it stays warm
	rested time.Time                    // guarded by mu: when the last operation was over
}

// Run carries out a plan. It must run in a synctest bubble; tb ends the server.
func Run(tb zktest.TB, p *Plan) *Result {
	end, cancel := context.WithCancel(context.Background())
	defer cancel()
	f := &fleet{
		plan: p, rec: history.NewRecorder(), stop: make(chan struct{}), end: end,
		sessions: map[int64]string{}, forced: map[int64]bool{}, exhausted: map[int64]bool{}, known: map[string]bool{}, fenced: map[string]int64{},
		said: map[string]int{}, evicted: map[string]bool{}, written: map[string]bool{}, refused: map[string]bool{}, limits: map[string][]limit{}, faults: map[string]int{},
	}
	spec, _ := json.Marshal(p)
	f.rec.Meta("plan", string(spec))
	f.rec.Meta("seed", fmt.Sprint(p.Seed))
	f.srv = zktest.Start(tb, p.options())
	for _, l := range p.Locks {
		if err := f.srv.PutNode(fencePath(l.Path), nil); err != nil {
			tb.Fatalf("sim: %v", err)
		}
	}
	f.srv.Intercept(f.meet)
	if p.Healthy {
		f.gauge = &gauge{least: map[float64]float64{}}
		f.srv.Intercept(f.gauge.meter)
	}
	f.srv.OnTxn(f.log)
	for _, spec := range p.Clients {
		f.launch(spec, 0)
	}
	time.Sleep(p.Before)
	healthy := f.rec.Now()
	if p.Healthy {
		time.Sleep(p.During)
	} else {
		f.trouble()
	}
	healed := f.rec.Now()
	time.Sleep(p.After)
	over := f.rec.Now()
	f.finish()
	cancel()
	f.wg.Wait()
	f.closeAll()

	res := &Result{Plan: p, History: f.rec.History(), Faults: f.faults, Virtual: f.rec.Now(), Gauge: f.gauge}
	res.Violations = f.judge(res.History, healthy, healed, over)
	return res
}

// delay is the way of one chunk of bytes: mostly short, sometimes long.
func (p *Plan) delay(r *rand.Rand) time.Duration {
	d := time.Duration(r.Int64N(int64(p.Latency)))
	if r.IntN(200) == 0 {
		d *= 5
	}
	return d + time.Duration(r.IntN(1000))
}

// idle is the rule that a run must have put the locks to the test: what breaks it is the plan, not the library.
const idle = "idle"

// judge checks the history and what a history cannot tell.
func (f *fleet) judge(h *history.History, healthy, healed, over time.Duration) []history.Violation {
	found := append(f.broken, history.Check(h, f.plan.Limits())...)
	for _, phase := range []struct {
		name     string
		from, to time.Duration
	}{{"before", 0, healthy}, {"during", healthy, healed}, {"after", healed, over}} {
		if n := history.Contended(h, phase.from, phase.to); n < 5 {
			found = append(found, history.Violation{Rule: idle, At: phase.to, Text: fmt.Sprintf("only %d contended grants %s the faults: this run proves nothing", n, phase.name)})
		}
	}
	return found
}

// finish lets the workers end what they are at, within a bound, and the clean-up its time.
func (f *fleet) finish() {
	close(f.stop)
	done := make(chan struct{})
	// Owned by this call; ends with the workers.
	go func() { f.wg.Wait(); close(done) }()
	workers := 0
	for _, c := range f.plan.Clients {
		workers += c.Workers
	}
	timer := time.NewTimer(f.plan.Wake() + time.Duration(2*workers)*(6*f.plan.Hold+f.plan.Wake()/4))
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		f.report("P7", "", "some who wait do not get the lock after the faults")
	}
	time.Sleep(f.plan.Wake() * 3 / 2)
	f.checkRest()
}

// checkRest is P6 on the server, when all is over: nobody is left who waits for anybody. Whoever looked at an election
// without a leader, or waited for a permit, has a watch on the directory, which the client library cannot take back; one a
// client, not more.
func (f *fleet) checkRest() {
	for _, l := range f.plan.Locks {
		for path, n := range f.srv.Watches() {
			looked := l.Recipe == history.Election || l.Recipe == history.Semaphore
			idle := looked && path == l.queue() && n <= len(f.plan.Clients)
			if strings.HasPrefix(path, l.Path) && !idle {
				f.report("P6", l.Path, fmt.Sprintf("%d watches are left on %s", n, path))
			}
		}
	}
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

// launch starts the n-th incarnation of a client, unless the run ends before it has a session.
func (f *fleet) launch(spec Client, n int) {
	p := &process{f: f, spec: spec, name: fmt.Sprintf("%s.%d", spec.Name, n), open: map[*history.Handle]struct{}{}}
	p.alive, p.die = context.WithCancel(f.end)
	r := stream(f.plan.Seed, p.name)
	servers := f.srv.Addrs()
	if len(servers) > 1 && r.IntN(3) == 0 {
		i := r.IntN(len(servers))
		servers = servers[i : i+1] // sees the ensemble through one server only
	}
	ctx := wall.With(p.alive, func() time.Time { return time.Now().Add(time.Duration(p.skew.Load())) })
	client, err := zklock.Connect(ctx, servers, &zklock.Options{
		SessionTimeout: spec.Session, TickTime: f.plan.Tick, Label: p.name, Dialer: f.srv.DialFrom(p.name),
	})
	if err != nil {
		p.die()
		return
	}
	p.client = client
	f.mu.Lock()
	if n == 0 {
		f.procs = append(f.procs, p)
	} else {
		for i, old := range f.procs {
			if old.spec.Name == spec.Name {
				f.procs[i] = p
			}
		}
	}
	f.mu.Unlock()
	for i := range spec.Workers {
		f.wg.Add(1)
		// Owned by the fleet; ends when stop is closed or the process dies; finish waits for it.
		go p.work(stream(f.plan.Seed, fmt.Sprintf("%s/%d", p.name, i)))
	}
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

// begin notes an operation of the process.
func (p *process) begin(op history.Op) *history.Handle {
	op.Client = p.name
	h := p.f.rec.Begin(op)
	p.mu.Lock()
	defer p.mu.Unlock()
	if op.Kind == history.Acquire {
		p.wake()
	}
	p.open[h] = struct{}{}
	return h
}

func (p *process) done(h *history.Handle) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, h)
	if h.Kind() == history.Acquire {
		p.rested = time.Now()
	}
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

// work takes locks, one after the other.
func (p *process) work(r *rand.Rand) {
	defer p.f.wg.Done()
	for p.rest(around(r, p.f.plan.Think)) {
		if all := p.f.plan.together(); len(all) > 1 && r.IntN(8) == 0 {
			takeAll(p, all, r)
			continue
		}
		l := p.f.plan.Locks[r.IntN(len(p.f.plan.Locks))]
		takers[l.Recipe](p, l, r)
	}
}

// taking is one acquire: what is noted of it, and how it is done.
type taking struct {
	op   history.Op
	lock func(context.Context) (*zklock.Hold, error)
	// inside, if set, runs while the hold is used. What it returns, if anything, is the operation that the hold is from then on.
	inside func(h *zklock.Hold, op *history.Handle) *history.Handle
}

// take acquires, holds for a while, and releases; each in one of the ways that callers have.
func (p *process) take(r *rand.Rand, t taking) {
	ctx, cancel := p.patience(r)
	defer cancel()
	op, since := p.begin(t.op), p.f.rec.Now()
	defer p.done(op)
	hold, err := t.lock(ctx)
	switch {
	case errors.Is(err, zklock.ErrLocked):
		op.Finished(history.Refused, err)
		return
	case err != nil:
		op.Finished(history.Failed, err)
		p.judgeError(ctx, err, since, Lock{Recipe: t.op.Recipe, Path: t.op.Path})
		return
	}
	op.Granted(hold.Node(), hold.Token())
	p.hold(r, t, hold, op)
}

// patience is a caller's context: one in four does not wait for ever.
func (p *process) patience(r *rand.Rand) (context.Context, context.CancelFunc) {
	if r.IntN(4) == 0 {
		return context.WithTimeout(p.alive, around(r, 2*p.f.plan.Hold))
	}
	return context.WithCancel(p.alive)
}

// nextView names one observer's view.
func (f *fleet) nextView() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.views++
	return fmt.Sprintf("view%d", f.views)
}

// judgeError is P8: an acquire that waits, called then, fails only when its caller or its client gave up, or when it says
// another number of permits than was stored.
func (p *process) judgeError(ctx context.Context, err error, since time.Duration, locks ...Lock) {
	if errors.Is(err, zklock.ErrLimit) {
		for _, l := range locks {
			if l.Recipe == history.Semaphore && p.f.disagreed(l, since) {
				p.resize(l, p.f.permits(l))
				return
			}
		}
	}
	if errors.Is(err, zklock.ErrEvicted) && slices.ContainsFunc(locks, func(l Lock) bool { return p.f.hasEvicted(l.Path) }) {
		return
	}
	expected := ctx.Err() != nil || errors.Is(err, zklock.ErrClosed) || errors.Is(err, zklock.ErrNotConnected)
	if !expected {
		p.f.report("P8", locks[0].Path, fmt.Sprintf("%s: acquire failed: %v", p.name, err))
	}
}

// hasEvicted reports whether somebody was removed from the lock.
func (f *fleet) hasEvicted(path string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.evicted[path]
}

// hold uses a hold for a while and ends it.
func (p *process) hold(r *rand.Rand, t taking, hold *zklock.Hold, op *history.Handle) {
	defer p.watch(hold, op)()
	if t.inside != nil {
		if then := t.inside(hold, op); then != nil {
			defer p.done(then)
			op = then
		}
	}
	p.use(r, t.op, hold)
	ctx, cancel := context.WithCancel(p.alive)
	defer cancel()
	if r.IntN(5) == 0 {
		cancel() // the release must go on
	}
	op.Ended()
	if errors.Is(context.Cause(hold.Context()), zklock.ErrReleased) {
		p.f.report("P2", t.op.Path, p.name+": a hold was released that nobody has unlocked")
	}
	op.Freed(hold.Unlock(ctx))
}

// watch notes the end of a hold when its context tells, until the returned function is called.
func (p *process) watch(hold *zklock.Hold, op *history.Handle) (stop func() bool) {
	if p.f.gauge != nil {
		p.f.gauge.sample(p, hold)
	}
	return context.AfterFunc(hold.Context(), func() {
		if errors.Is(context.Cause(hold.Context()), zklock.ErrLost) {
			p.f.gauge.countLoss()
			op.Lost()
		} else {
			op.Ended()
		}
	})
}

// use spends the time of a hold: waiting for its end, or looking away and asking Check afterwards, or writing.
func (p *process) use(r *rand.Rand, op history.Op, hold *zklock.Hold) {
	d := around(r, p.f.plan.Hold)
	switch r.IntN(4) {
	case 0: // a holder that does not look, and asks before it goes on
		if !p.rest(d) {
			return
		}
		err := hold.Check()
		if lost := hold.Context().Err() != nil; (err == nil) == lost {
			p.f.report("P2", op.Path, fmt.Sprintf("%s: check says %v, the context %v", p.name, err, hold.Context().Err()))
		}
		return
	case 1:
		for range 4 {
			p.fence(op, hold)
			d -= d / 4
			if hold.Context().Err() != nil || !p.rest(d/3) {
				return
			}
		}
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-hold.Context().Done():
	case <-p.alive.Done():
	}
	select { // without a network the work gets on no better than we do
	case <-p.reachable():
	case <-hold.Context().Done():
	case <-p.alive.Done():
	}
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
