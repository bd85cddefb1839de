// SPDX-License-Identifier: Apache-2.0

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
	"github.com/zklock-go/zklock/internal/testclock"
	"github.com/zklock-go/zklock/internal/testnet"
)

// user is a client of the library with its workers. The users of a process share its connection. If a user closes its client, another
// user takes its seat.
type user struct {
	*process
	seat       int
	client     *zklock.Client
	root       string          // Options.Root
	alive      context.Context // for its workers; done when its client is closed, or the process ends
	end        context.CancelFunc
	closing    atomic.Bool           // its client is being closed while its workers use it
	watcher    *watcher              // its observer
	eventCheck *eventCheck           // what the observer compares
	cohort     *zklock.CohortOptions // options for a Cohort of its workers; nil if they acquire mutexes separately

	guests map[string]*zklock.Hold // guarded by mu: by lock, the last hold of a goroutine of a cohort
}

// rest sleeps for d. It returns false if the run or the user ends first.
func (p *user) rest(d time.Duration) bool { return p.f.rest(p.alive, d) }

// local returns the path of a lock for the user's client, which adds its root.
func (p *user) local(lock string) string { return lock[len(p.root):] }

// closes reports whether err says that the user's client is being closed, which it is.
func (p *user) closes(err error) bool { return p.closing.Load() && errors.Is(err, zklock.ErrClosed) }

// launch starts the n-th process of a client, unless the run ends before it has a session.
func (f *fleet) launch(spec Client, n int) {
	p := &process{f: f, spec: spec, name: fmt.Sprintf("%s.%d", spec.Name, n), open: map[*history.Handle]struct{}{}, alone: map[string]*zklock.Hold{}}
	p.alive, p.die = context.WithCancel(f.end)
	r := stream(f.plan.Seed, p.name)
	servers := f.srv.Addrs()
	one := len(servers) > 1 && r.IntN(3) == 0 && !f.plan.Failing
	if f.plan.Provider != "" {
		one = f.plan.Provider == oneServer
	}
	if one {
		i := r.IntN(len(servers))
		servers = servers[i : i+1] // the client knows only one server
	}
	p.servers = servers
	seats := max(1, spec.Share)
	p.users = make([]*user, seats)
	if spec.Share > 0 {
		p.shared = f.share(p)
	}
	var first []*user
	for seat := range seats {
		u := p.newUser(seat, 0)
		if u == nil {
			p.end()
			return
		}
		first = append(first, u)
	}
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
	for _, u := range first {
		f.wg.Add(1)
		// Owned by the fleet; ends when stop is closed or the process dies; finish waits for it.
		go p.occupy(u)
	}
	if f.plan.Bulk && p.shared != nil {
		// Owned by the fleet; ends when stop is closed or the process dies; finish waits for it.
		f.wg.Go(func() { p.shared.write(p, stream(f.plan.Seed, p.name+"/bulk")) })
	}
}

// newUser connects the n-th user of a seat. It returns nil if the process ends before it has a session.
func (p *process) newUser(seat, n int) *user {
	f := p.f
	title := p.name
	if seat+n > 0 {
		title = fmt.Sprintf("%s/%d.%d", p.name, seat, n)
	}
	u := &user{process: p, seat: seat, root: f.plan.rootOf(p.spec, seat), guests: map[string]*zklock.Hold{}}
	u.eventCheck = &eventCheck{report: f.report, now: f.rec.Now, name: title, lenient: f.plan.Watcher != ""}
	u.watcher = &watcher{check: u.eventCheck, p: p, root: u.root, dice: stream(f.plan.Seed, title+"/watcher")}
	u.cohort = drawCohort(stream(f.plan.Seed, title+"/cohort"))
	u.alive, u.end = context.WithCancel(p.alive)
	var err error
	for {
		u.client, err = p.connect(u)
		again := errors.Is(err, zk.ErrAuthFailed) || (p.shared != nil || n > 0) && !errors.Is(err, zklock.ErrInvalid)
		if err == nil || !again || !p.rest(time.Second) {
			break
		}
	}
	if err != nil {
		u.end()
		if p.shared != nil && errors.Is(err, zklock.ErrInvalid) {
			f.report("P18", "", fmt.Sprintf("%s: attach failed: %v", title, err))
		}
		return nil
	}
	f.mu.Lock()
	f.eventChecks = append(f.eventChecks, u.eventCheck)
	f.mu.Unlock()
	p.mu.Lock()
	p.users[seat] = u
	p.mu.Unlock()
	return u
}

// connect creates the client of a user.
func (p *process) connect(u *user) (*zklock.Client, error) {
	f := p.f
	ctx := testclock.With(u.alive, func() time.Time { return time.Now().Add(time.Duration(p.skew.Load())) })
	opts := &zklock.Options{
		SessionTimeout: p.spec.Session, TickTime: f.plan.tickOf(p.spec, u.seat), Label: p.name, Auth: f.plan.credentials(), ACL: f.plan.acl(), Root: u.root,
		LockDelay: f.plan.delayOf(p.spec, u.seat), Untrusted: f.plan.isUntrusted(p.spec, u.seat), Observer: u.watcher,
	}
	if p.shared != nil {
		p.attachInVain(ctx, *opts)
		return zklock.Attach(ctx, p.shared.conn, p.shared.hooks, opts)
	}
	dial := zk.Dialer(f.srv.DialFrom(p.name))
	if f.plan.TLS {
		_, opts.TLS = certificate()
		dial = speakTLS(dial, f.handshakes)
	}
	if f.plan.Provider == inRounds {
		opts.HostProvider = &round{}
	}
	if f.plan.Names > 0 {
		n, servers := f.named(p.servers, dial)
		return zklock.Connect(testnet.With(ctx, n), servers, opts)
	}
	opts.Dialer = dial
	return zklock.Connect(ctx, p.servers, opts)
}

// attachInVain tries to attach a client with a tick that is too long for the session, if ticks differ. It leaves nothing on the connection.
func (p *process) attachInVain(ctx context.Context, opts zklock.Options) {
	if p.f.plan.Mixed.TickTime != some {
		return
	}
	opts.TickTime = 4 * p.spec.Session
	c, err := zklock.Attach(ctx, p.shared.conn, p.shared.hooks, &opts)
	if err == nil {
		c.Close()
		p.f.report("P18", "", fmt.Sprintf("%s: a client with a tick of %v attaches to a session of %v", p.name, opts.TickTime, p.spec.Session))
	}
}

// occupy runs the workers of a user and, if its client is closed and the process is alive, those of the next user of its seat.
func (p *process) occupy(u *user) {
	defer p.f.wg.Done()
	for n := 1; u != nil; n++ {
		var workers sync.WaitGroup
		for i := range p.spec.Workers {
			name := fmt.Sprintf("%s/%d", p.name, i)
			if u.seat+n > 1 {
				name = fmt.Sprintf("%s/%d.%d/%d", p.name, u.seat, n, i)
			}
			// Owned by this call, which waits for it; ends when stop is closed or the user ends.
			workers.Go(func() { u.work(stream(p.f.plan.Seed, name)) })
		}
		if r := stream(p.f.plan.Seed, fmt.Sprintf("%s/%d.%d/visit", p.name, u.seat, n)); p.spec.Visits && u.seat > 0 && u.rest(around(r, 2*p.f.plan.Timeout)) {
			u.leave()
		}
		workers.Wait()
		next := u.alive.Err() != nil && p.rest(p.f.plan.Tick/2)
		if !next {
			return
		}
		u = p.newUser(u.seat, n)
	}
}

// leave closes the user's client while its workers use it. Close gives up after a while if servers or an observer do not return. If
// others use the session, it does not end, and the nodes that are left must be removed all the same.
func (p *user) leave() {
	p.closing.Store(true)
	p.client.Close()
	p.end()
}

// end ends the process: its users, and then its connection.
func (p *process) end() {
	p.die()
	p.mu.Lock()
	users := slices.Clone(p.users)
	p.mu.Unlock()
	var all sync.WaitGroup
	for _, u := range users {
		if u != nil {
			// Owned by this call, which waits for it; ends with the client.
			all.Go(func() { u.client.Close() })
		}
	}
	all.Wait()
	if p.shared != nil {
		p.shared.conn.Close()
		for range p.shared.ended { // until the client library has stopped
		}
	}
}

// aUser returns one of the users that the process has or had last.
func (p *process) aUser(r *rand.Rand) *user {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.users) == 1 {
		return p.users[0]
	}
	return p.users[r.IntN(len(p.users))]
}

// work acquires and releases locks, one after the other.
func (p *user) work(r *rand.Rand) {
	for p.rest(around(r, p.f.plan.Think)) {
		all := p.f.plan.together()
		often := 8
		if p.f.plan.Way == wayAll {
			often = 2
		}
		if len(all) > 1 && p.f.plan.Way != wayNested && r.IntN(often) == 0 {
			takeAll(p, all, r)
			continue
		}
		l := p.f.plan.Locks[r.IntN(len(p.f.plan.Locks))]
		if p.f.plan.Way == wayNested {
			l = p.f.plan.Locks[0]
		}
		if l.Beside && r.IntN(3) == 0 {
			takeBeside(p, l, r)
			continue
		}
		if p.f.plan.Cohorts && p.cohort != nil && p.f.plan.Delay == 0 && suitsCohort(l, r) { // a cohort has no lock-delay
			takeCohort(p, l, r)
			continue
		}
		takers[l.Recipe](p, l, r)
	}
}
