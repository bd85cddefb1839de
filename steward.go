package zklock

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zklock-go/zklock/internal/lease"
	"github.com/zklock-go/zklock/observe"
)

// A steward gets places in a queue for all goroutines of a client that lock in one cohort, or
// for all that read, lets them hold there in the order in which they asked, and gives the place
// up. It exists while any of them waits or a place is kept.
type steward struct {
	c    *Client
	is   cohort
	dir  string
	kick chan struct{} // has it look again

	mu      sync.Mutex
	waiting []*applicant            // guarded by mu: in order
	tenure  *tenure                 // guarded by mu: nil while there is none
	begun   bool                    // guarded by mu
	forgo   context.CancelCauseFunc // guarded by mu: ends the wait for a place; nil while there is none

	over atomic.Bool // it has ended, and another takes its place; changed with mu held
	runs time.Time   // until when places may follow one another; only run uses it
}

// cohort is what the goroutines that share a place have in common.
type cohort struct {
	path     string
	recipe   *recipe
	unfenced bool
	keep     time.Duration // negative for not at all
}

// applicant is a goroutine that waits for its hold.
type applicant struct {
	ctx    context.Context
	try    bool        // it waits for nobody
	answer chan answer // receives one, for which it has room, when the applicant is out of the line
}

type answer struct {
	hold *Hold
	err  error
}

// Those with a delay are refused.
var (
	cohortRecipe       = &recipe{name: "cohort", delays: true, infix: lockInfix, rule: afterAll}
	cohortReaderRecipe = &recipe{name: "cohort of readers", delays: true, infix: readerInfix, rule: afterExclusive, shared: true, passes: isDowngraded}
)

// errNobody ends the wait for a place when nobody waits for it any more.
var errNobody = errors.New("nobody waits any more")

const (
	// maxRun is how long a process keeps a lock from contenders that only look whether it is free,
	// before it lets go of it for a moment.
	maxRun   = time.Second
	breath   = 20 * time.Millisecond  // that moment, at least
	longest  = 250 * time.Millisecond // and at most
	idleCare = 2 * time.Millisecond   // how long a fenced place is idle before it watches for others
)

// steward returns the one of a cohort.
func (c *Client) steward(of any) *steward {
	s, ok := c.stewards.Load(of)
	if !ok {
		is := of.(cohort)
		s, _ = c.stewards.LoadOrStore(of, &steward{c: c, is: is, dir: c.root + is.path, kick: make(chan struct{}, 1)})
	}
	return s.(*steward)
}

// enter returns a hold if that takes neither a request nor a wait. Otherwise, if the caller is to
// wait and the steward has begun, it queues the caller, as apply does.
func (s *steward) enter(ctx context.Context, now lease.Instant, wait bool) (*Hold, *applicant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.tenure != nil && len(s.waiting) == 0 && s.tenure.admits(0, now):
		return s.tenure.begin(ctx, now), nil
	case wait && s.begun && !s.over.Load():
		return nil, s.join(ctx, false)
	}
	return nil, nil
}

// apply queues the caller. The steward's answer comes in what it returns, which is nil if this
// steward has ended. It returns ErrLocked for a caller that waits for nobody and would have to.
func (s *steward) apply(ctx context.Context, try bool) (*applicant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.over.Load():
		return nil, nil
	case try && (len(s.waiting) > 0 || s.tenure != nil && !s.tenure.hasRoom()):
		return nil, ErrLocked
	case !s.begun:
		// Owned by the client; ends when nobody waits and no place is kept, or with the client's
		// life; Close waits for it.
		if !s.c.acquires.run(s.run) {
			return nil, ErrClosed
		}
		s.begun = true
	}
	return s.join(ctx, try), nil
}

// join puts the caller at the end of the line. It must be called with mu held.
func (s *steward) join(ctx context.Context, try bool) *applicant {
	a := &applicant{ctx, try, make(chan answer, 1)}
	s.waiting = append(s.waiting, a)
	if s.tenure != nil && s.tenure.hasRoom() {
		s.wake()
	}
	return a
}

// await waits for the answer to an applicant, who withdraws when ctx ends. When the client's life
// ends, so does the steward, and that is an answer.
func (s *steward) await(a *applicant) (*Hold, error) {
	select {
	case got := <-a.answer:
		return got.hold, got.err
	case <-a.ctx.Done():
	}
	if s.withdraw(a) {
		return nil, context.Cause(a.ctx)
	}
	got := <-a.answer
	return got.hold, got.err
}

// withdraw takes an applicant out of the line. It reports false if it has got its answer.
func (s *steward) withdraw(a *applicant) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.Index(s.waiting, a)
	if at < 0 {
		return false
	}
	s.waiting = slices.Delete(s.waiting, at, at+1)
	if len(s.waiting) == 0 && s.forgo != nil {
		s.forgo(errNobody)
	}
	return true
}

func (s *steward) wake() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// run gets places as long as anybody waits for one.
func (s *steward) run() {
	var old *place
	for !s.mayEnd(old) {
		n, err := s.obtain(old)
		old = nil
		if err == nil {
			old = s.keep(n)
		}
	}
}

// mayEnd reports whether the steward has nothing left to do, and then no goroutine finds it any
// more. Those that still wait learn that the client is closed.
func (s *steward) mayEnd(old *place) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.c.life.Err() == nil && (len(s.waiting) > 0 || old != nil) {
		return false
	}
	s.over.Store(true)
	s.c.stewards.Delete(s.is)
	for _, a := range s.waiting {
		a.answer <- answer{err: ErrClosed}
	}
	s.waiting = nil
	return true
}

// obtain waits for a place, in whose transaction the old one, nil for none, is given up. An error
// is the answer to those that wait.
func (s *steward) obtain(old *place) (*tenure, error) {
	ctx, first, end := s.beginWait()
	defer end()
	fresh := old == nil
	granted, err := s.queue(ctx, first != nil && first.try, old)
	if err != nil {
		err = s.c.explain(ctx, err)
		s.refuse(first, err)
		return nil, err
	}
	if fresh || granted.waited {
		s.runs = time.Now().Add(max(maxRun, s.is.keep))
	}
	return s.settle(granted), nil
}

// beginWait returns the first applicant, nil for none, and a context that ends when nobody waits.
func (s *steward) beginWait() (context.Context, *applicant, func()) {
	ctx, forgo := context.WithCancelCause(s.c.life)
	s.mu.Lock()
	defer s.mu.Unlock()
	var first *applicant
	if len(s.waiting) > 0 {
		first = s.waiting[0]
	} else {
		forgo(errNobody)
	}
	s.forgo = forgo
	return ctx, first, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.forgo = nil
		forgo(nil)
	}
}

// queue gets a place. The old one leaves the queue whatever comes of it.
func (s *steward) queue(ctx context.Context, try bool, old *place) (*place, error) {
	c := s.c
	next := func() *place {
		t := c.newPlace(s.is.recipe, s.dir, c.shared)
		if old != nil {
			t.replaces, old = old.contender, nil
		}
		return t
	}
	defer func() {
		if old != nil {
			c.remove(old.contender)
		}
	}()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if !try {
		return c.inTurn(ctx, s.is.path, func(sess *session, asked *revocation) (*place, error) {
			return c.queue(ctx, sess, next(), s.is.path, asked)
		})
	}
	sess, err := c.link.Attached(ctx)
	if err != nil {
		return nil, err
	}
	return c.tryAcquire(ctx, sess, next())
}

// refuse answers those that wait with an error: an attempt to get the place without waiting was
// only for the first of them.
func (s *steward) refuse(first *applicant, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if first == nil || errors.Is(err, errNobody) {
		return
	}
	s.waiting = slices.DeleteFunc(s.waiting, func(a *applicant) bool {
		out := a == first || !first.try
		if out {
			a.answer <- answer{err: err}
		}
		return out
	})
}

// settle makes a tenure of a place, and lets the first applicant hold there.
func (s *steward) settle(granted *place) *tenure {
	c := s.c
	n := &tenure{place: granted, moved: granted.sess.Reattached(), armed: make(chan *nodeWatch, 1)}
	n.s = s
	n.of = &holding{
		c: c.engine, among: &c.holds, recipe: s.is.recipe.name, path: s.is.path, nodes: granted.nodes(), token: granted.token,
		quiet: true, unfenced: s.is.unfenced,
	}
	n.of.release = func(why error) func() error {
		s.bereave(n, why)
		return removeAll(granted.whole())
	}
	n.of.begin(context.Background(), func(ctx context.Context) context.Context { return ctx })
	if s.is.unfenced {
		granted.guard(0)
	}
	granted.guard(aloneGrace)
	n.of.watchOver(&granted.ownNode)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tenure = n
	now := c.link.Now()
	n.idle = now.Mono
	if len(s.waiting) > 0 {
		s.let(n, now)
	}
	if s.is.unfenced {
		n.arm(true)
	}
	return n
}

// let lets the first applicant hold. It must be called with mu held.
func (s *steward) let(n *tenure, now lease.Instant) {
	a := s.waiting[0]
	s.waiting[0] = nil
	s.waiting = s.waiting[1:]
	a.answer <- answer{hold: n.begin(a.ctx, now)}
}

// left lets the next goroutine hold if that takes no request.
func (s *steward) left(n *tenure, g *guest) {
	n.tell(observe.Released, g.since, nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	n.end(g)
	if len(n.guests) > 0 {
		return
	}
	waiting := len(s.waiting)
	if waiting > 0 && n.open {
		if now := s.c.link.Now(); n.admits(waiting, now) {
			s.let(n, now)
			return
		}
	}
	if waiting > 0 || !n.open || n.spent || n.lent.wanted || s.is.keep < 0 {
		s.wake()
	}
}

// bereave tells of the loss of the guests' holds, whose place was lost.
func (s *steward) bereave(n *tenure, why error) {
	s.mu.Lock()
	guests := n.guests
	n.guests = nil
	s.mu.Unlock()
	for _, g := range guests {
		if !errors.Is(context.Cause(g), ErrReleased) {
			n.tell(endKind(why), g.since, why)
		}
	}
}

// keep has the tenure until it is lost or given up. It returns its place if that is to be given
// up in one transaction with the creation of the next.
func (s *steward) keep(n *tenure) (old *place) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		do := s.look(n)
		switch do.what {
		case lost:
			return nil
		case replace:
			if n.depart() {
				return n.place
			}
			return nil
		case giveUp:
			s.giveUp(n, do.pause)
			return nil
		}
		timer.Reset(do.wait)
		select {
		case <-s.kick:
		case <-timer.C:
		case <-do.fired:
		case <-do.revoked:
		case w := <-n.armed:
			s.stand(n, w)
		case <-n.of.ctx.Done():
		case <-s.c.life.Done():
		}
	}
}

// A step is what a steward does next with its tenure.
type step struct {
	what    verdict
	wait    time.Duration   // of stay; these as well
	fired   <-chan struct{} // closed when others want the place
	revoked <-chan struct{} // closed when it is asked for
	pause   bool            // of giveUp
}

type verdict int

const (
	stay    verdict = iota // and look again after a while
	lost                   // it is over
	replace                // by another node, for those that wait
	giveUp
)

// look decides what to do with the tenure. If it is not to stay, no guest can begin there any
// more.
func (s *steward) look(n *tenure) step {
	s.mu.Lock()
	defer s.mu.Unlock()
	do := s.decide(n, s.c.link.Now())
	if do.what != stay {
		s.tenure = nil
	}
	return do
}

// decide must be called with mu held.
func (s *steward) decide(n *tenure, now lease.Instant) step {
	const long = time.Hour
	waiting := len(s.waiting)
	overdue := !now.Mono.Before(s.runs)
	n.spent = n.spent || overdue || n.of.asked.heard.isSet()
	n.notice(waiting, now)
	for len(s.waiting) > 0 && n.admits(len(s.waiting), now) {
		s.let(n, now)
	}
	waiting = len(s.waiting)
	stays := step{what: stay, wait: long, fired: n.fired()}
	if !n.spent {
		stays.revoked = n.of.asked.heard.done()
	}
	if n.open && s.is.keep > 0 {
		stays.wait = s.is.keep // leave does not wake the steward
	}
	if n.idle.IsZero() && len(n.guests) == 0 {
		n.idle = now.Mono
	}
	idle := now.Mono.Sub(n.idle)
	switch {
	case n.of.ctx.Err() != nil || s.c.life.Err() != nil:
		return step{what: lost}
	case len(n.guests) > 0:
		return stays
	case s.is.unfenced && !n.open && !n.spent: // not armed yet
		return stays
	case waiting > 0 && overdue:
		return step{what: giveUp, pause: true}
	case waiting > 0:
		return step{what: replace}
	case n.spent || n.lent.wanted || n.place.waited && !n.open || idle >= s.is.keep:
		return step{what: giveUp}
	case n.asked:
		stays.wait = s.is.keep - idle
	case idle < idleCare:
		stays.wait = min(idleCare, s.is.keep) - idle
	default:
		n.arm(false)
		stays.wait = s.is.keep - idle
	}
	stays.fired = n.fired()
	return stays
}

func (s *steward) stand(n *tenure, w *nodeWatch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n.stand(w, s.is.unfenced, len(s.waiting), s.c.link.Now())
}

// giveUp has the place leave the queue. After a long run it waits a moment, so that others find
// the queue empty which look now and then.
func (s *steward) giveUp(n *tenure, pause bool) {
	began := time.Now()
	if _, err := n.of.drop(); err != nil {
		return
	}
	n.of.letGo()
	select {
	case <-n.of.released.done():
	case <-s.c.life.Done():
	}
	if pause {
		sleep(s.c.life, min(max(breath, 4*time.Since(began)), longest))
	}
}
