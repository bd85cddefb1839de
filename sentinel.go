package zklock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// aloneGrace is how long a contender that found the queue empty may hold before it
// watches its own node: a lock taken and released at once costs no watch. Whoever has
// others around it, or saw its own node longer ago than that, watches before it holds.
const aloneGrace = 10 * time.Millisecond

// sentinel watches a contender's own node: deletion by anybody means lost, and data
// may carry a request to let go.
type sentinel struct {
	mu      sync.Mutex    // guards what follows
	watch   *nodeWatch    // the newest; nil before the first
	ended   bool          // there will be no other
	changed chan struct{} // closed and replaced when any of these changes
}

// guard starts the sentinel, after a while, unless there is one.
func (t *contender) guard(after time.Duration) {
	if t.sentinel != nil {
		return
	}
	g := &sentinel{changed: make(chan struct{})}
	t.sentinel = g
	// Owned by the contender; ends when it departs, its node or its session is gone or
	// the client is closed, which waits for it.
	if !t.c.calls.run(func() { t.watchOwn(g, after) }) {
		g.show(nil)
	}
	yield()
}

// show tells of the watch that stands now; nil for none from now on.
func (g *sentinel) show(w *nodeWatch) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if w == nil {
		g.ended = true
	} else {
		g.watch = w
	}
	close(g.changed)
	g.changed = make(chan struct{})
}

func (g *sentinel) state() (w *nodeWatch, ended bool, changed <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.watch, g.ended, g.changed
}

// await waits until it is certain that the node was there when whatever the caller has
// seen happened: others leave, and our own node may have been deleted before them. The
// watch that stands tells it without a request.
func (g *sentinel) await(ctx context.Context, t *contender) error {
	for {
		w, ended, changed := g.state()
		var renewed <-chan struct{}
		if w != nil {
			var quiet bool
			if quiet, renewed = w.isQuiet(); quiet && !t.isGone() {
				if t.token == 0 {
					t.token = w.stat.Czxid
				}
				return nil
			}
		}
		if ended && !t.isGone() && !t.sess.IsOver() {
			return ErrClosed
		}
		select {
		case <-renewed:
		case <-changed:
		case <-t.gone:
			return errGone
		case <-t.sess.Over():
			return errSessionOver
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (t *contender) watchOwn(g *sentinel, after time.Duration) {
	defer g.show(nil)
	if !t.linger(after) {
		return
	}
	var p pace
	for {
		w, err := t.c.watch(t.c.life, t.sess, t.path())
		switch {
		case err == nil:
			t.c.readable.Store(true)
			g.show(w)
			t.inspect(node{w.data, w.stat})
			if !t.stand(w) {
				return
			}
		case errors.Is(err, zk.ErrNoNode):
			t.forsake(nil)
			return
		case isRefusal(err):
			t.forsake(errUnreadable)
			return
		case !isTransient(err):
			return // over or closed
		default: // who is granted meanwhile waits until the node was seen
			if !t.linger(p.longer()) {
				return
			}
		}
	}
}

// stand waits for the watch on our own node; false ends the sentinel.
func (t *contender) stand(w *nodeWatch) bool {
	defer w.wait()()
	select {
	case <-w.fired:
	case <-t.departed:
		return false
	case <-t.c.life.Done():
		return false
	}
	if t.sess.IsOver() {
		return false
	}
	if w.saw == nodeGone {
		t.forsake(nil)
		return false
	}
	return true
}

// linger waits, unless the contender is done with sooner: then it is false.
func (t *contender) linger(d time.Duration) bool {
	if d == 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-t.departed:
	case <-t.sess.Over():
	case <-t.c.life.Done():
	}
	return false
}

// keep has the client prove again and again that the session lives and the node with
// it, for as long as it is held or next in line.
func (c *Client) keep(t *contender) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.kept[t]; ok {
		return
	}
	c.kept[t] = struct{}{}
	c.nudge()
}

func (c *Client) unkeep(t *contender) {
	c.mu.Lock()
	delete(c.kept, t)
	c.mu.Unlock()
	c.stayWarm()
}

// nudge has the heart look at its clock again.
func (c *Client) nudge() {
	select {
	case c.kick <- struct{}{}:
	default:
	}
}

// maxChecks bounds one heartbeat's size; with more nodes each heartbeat checks some.
const maxChecks = 1000

// warmth is for how long after its last use a client keeps its lease proven, so that the next grant
// rests on a full proof. A short session, whose heartbeats are frequent, is kept warm for less long.
func warmth(term time.Duration) time.Duration { return min(3*time.Minute, 18*term) }

// warmUp is called before the client contends.
func (c *Client) warmUp() {
	if c.stayWarm() || c.acquires.running() {
		return
	}
	s := c.link.Latest()
	if s != nil {
		s.Lease.Begin()
	}
	c.nudge()
}

// stayWarm keeps the client warm for a while from now on. It reports whether it was.
func (c *Client) stayWarm() bool {
	now := time.Now()
	until := now.Add(warmth(c.SessionTimeout()))
	c.mu.Lock()
	defer c.mu.Unlock()
	was := len(c.kept) > 0 || now.Before(c.warmUntil)
	c.warmUntil = until
	return was
}

// isWarm reports whether heartbeats are due.
func (c *Client) isWarm() bool {
	if c.acquires.running() {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.kept) > 0 || time.Now().Before(c.warmUntil)
}

// beatForever sends heartbeats while the client contends, holds, or did so a while ago.
//
// It is owned by the client and ends when that is closed, which waits for it.
func (c *Client) beatForever() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	b := beats{c: c, done: make(chan beaten, maxBeats)}
	for {
		s, changed := c.link.State()
		wait := b.untilNext(s)
		if wait <= 0 {
			b.next(s)
			continue
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-changed:
		case <-b.again:
		case done := <-b.done:
			b.finish(done)
		case <-c.kick:
		case <-c.life.Done():
			return
		}
	}
}

// maxBeats is how many heartbeats are under way at most: each proves touches of others, and where
// answers take long, one after the other would prove them too late.
const maxBeats = 4

// beats is the rhythm of the heartbeats.
type beats struct {
	c       *Client
	s       *session // the newest seen
	again   <-chan struct{}
	warm    bool
	last    time.Time // when the last one began
	touched time.Time // when its touches were answered
	retry   pace
	running int
	done    chan beaten // has room for all that are running
}

// beaten is the end of a heartbeat.
type beaten struct {
	s       *session
	touched time.Time // when its touches were answered; zero if they were not
	err     error
}

// untilNext returns how long nothing has to be sent.
func (b *beats) untilNext(s *session) time.Duration {
	const never = time.Hour
	now, was := time.Now(), b.warm
	b.warm = b.c.isWarm()
	switch {
	case !was || b.s == nil: // what has just begun is proven; its first requests are touches
		b.last = now.Add(b.c.SessionTimeout() / 256)
	case s != nil && s != b.s:
		b.last = now
	case s != nil && (b.again == nil || isClosed(b.again)): // what was half proven was so on the connection before
		b.last = time.Time{}
	}
	b.again = nil
	if s != nil {
		b.s, b.again = s, s.Reattached()
	}
	if b.s == nil || !b.warm || b.running == maxBeats {
		return never
	}
	next := b.s.Lease.NextBeat(b.last, b.touched)
	if b.running > 0 && !b.last.IsZero() {
		next = now.Add(never)
	}
	switch {
	case b.retry.wait > 0:
		next = b.last.Add(b.retry.wait)
	case s != nil && b.c.keepsUnder(s): // sooner where proof gets thin
		thin := now.Add(s.Lease.Remaining() - s.Lease.Thin())
		if soon := b.last.Add(s.Lease.Term() / 16); thin.Before(soon) {
			thin = soon
		}
		if thin.Before(next) {
			next = thin
		}
	}
	return next.Sub(now)
}

// next begins a heartbeat under s; without a session it is missed.
func (b *beats) next(s *session) {
	b.last = time.Now()
	b.running++
	if s == nil {
		err := ErrNotConnected
		if trouble := b.c.link.LastTrouble(); trouble != nil {
			err = fmt.Errorf("%w: %w", err, trouble)
		}
		b.finish(beaten{err: err})
		return
	}
	first := b.running == 1
	// Owned by beatForever, which counts it; ends with its requests; Close waits for it.
	if !b.c.calls.run(func() {
		done := beaten{s: s}
		beat := func() error { return b.c.beat(s, &done.touched) }
		if first {
			done.err = b.c.warnIfSilent(s, beat)
		} else {
			done.err = beat()
		}
		b.done <- done
	}) {
		b.running--
	}
}

// finish takes the end of a heartbeat. Of several that fail together the last one tells.
func (b *beats) finish(done beaten) {
	b.running--
	if done.touched.After(b.touched) {
		b.touched = done.touched
	}
	if done.err == nil || errors.Is(done.err, errGone) || isRefusal(done.err) {
		b.retry = pace{}
		return
	}
	if done.s != nil {
		b.retry.longer()
	}
	if b.running == 0 && b.c.keepsUnder(b.s) {
		b.c.missedHeartbeat(done.err)
	}
}

// errSilent is told of a heartbeat that is not answered, while it may still be.
var errSilent = errors.New("no server has answered for a quarter of the session timeout")

// warnIfSilent runs beat, and tells observers when its answer stays away: where a server
// is cut off, no error comes before what is held is lost.
func (c *Client) warnIfSilent(s *session, beat func() error) error {
	over, cancel := context.WithCancel(c.life)
	defer cancel()
	wait := s.Lease.Term()/4 + s.Lease.BetweenSyncs()
	// Owned by this call; ends with it; Close waits for it.
	c.calls.run(func() {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
			if c.keepsUnder(s) {
				c.missedHeartbeat(errSilent)
			}
		case <-over.Done():
		}
	})
	return beat()
}

// beat sends what proves the touches of an earlier beat, and is a touch itself: two
// requests, a sync among them, which are answered at touched, a moment later another sync,
// and then a quorum operation.
func (c *Client) beat(s *session, touched *time.Time) error {
	looked := make(chan struct{})
	// Owned by this call, which waits for it; ends with the request.
	if !c.calls.run(func() {
		defer close(looked)
		c.stat(c.life, s, "/") // whatever it answers
	}) {
		return ErrClosed
	}
	err := c.sync(c.life, s, "/")
	<-looked
	if err != nil {
		return err
	}
	*touched = time.Now()
	timer := time.NewTimer(s.Lease.BetweenSyncs())
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.Over():
		return errSessionOver
	case <-c.life.Done():
		return ErrClosed
	}
	if err := c.sync(c.life, s, "/"); err != nil {
		return err
	}
	return c.confirm(c.life, s, c.keptUnder(s))
}

// keepsUnder reports whether any contender is to be checked under s.
func (c *Client) keepsUnder(s *session) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for t := range c.kept {
		if t.sess == s {
			return true
		}
	}
	return false
}

// keptUnder returns some of the contenders to be checked under s, at least one if there is any.
func (c *Client) keptUnder(s *session) []*contender {
	c.mu.Lock()
	defer c.mu.Unlock()
	var kept []*contender
	var size int
	for t := range c.kept { // in no order: with too many for one, each has its turn
		if t.sess != s {
			continue
		}
		if size += t.checkSize(); len(kept) == maxChecks || size > maxRequest && len(kept) > 0 {
			break
		}
		kept = append(kept, t)
	}
	return kept
}

// confirm asks the quorum whether the session lives and the nodes with it. It changes
// nothing and fires no watch. Those found missing are told so, and the error is errGone.
func (c *Client) confirm(ctx context.Context, s *session, nodes []*contender) error {
	answers, err := c.multi(ctx, s, checks(nodes)...)
	if err == nil || !isRefusal(err) {
		return err
	}
	return c.heed(nodes, answers) // it went through the quorum all the same: the session lives
}

// confirmAll is confirm for nodes that may be too many for one request. A node that is there
// in a later answer was there in the earlier ones.
func (c *Client) confirmAll(ctx context.Context, s *session, nodes []*contender) error {
	for len(nodes) > 0 {
		n, size := 0, 0
		for n < len(nodes) && (n == 0 || size+nodes[n].checkSize() <= maxRequest) {
			size += nodes[n].checkSize()
			n++
		}
		if err := c.confirm(ctx, s, nodes[:n]); err != nil {
			return err
		}
		nodes = nodes[n:]
	}
	return nil
}

// checkSize is about how many bytes the check of our node adds to a request.
func (t *contender) checkSize() int { return len(t.dir) + 1 + len(t.name) + 32 }

// heed draws the consequences of a refused heartbeat, whose answers up to the first refusal are real.
func (c *Client) heed(asked []*contender, answers []zk.MultiResponse) error {
	for i, t := range asked[:min(len(asked), len(answers))] {
		switch err := answers[i].Error; {
		case errors.Is(err, zk.ErrNoNode):
			t.forsake(nil)
		case errors.Is(err, zk.ErrNoAuth):
			t.forsake(errUnreadable)
		default:
			continue
		}
		c.unkeep(t)
		return errGone
	}
	return nil
}

// checks returns the operations of a heartbeat: that the nodes exist, or if there are none, the root.
func checks(nodes []*contender) []any {
	var ops []any
	for _, t := range nodes {
		ops = append(ops, t.exists())
	}
	if len(ops) == 0 {
		ops = []any{&zk.CheckVersionRequest{Path: "/", Version: -1}}
	}
	return ops
}

// exists is the operation that fails unless our node is there; it stays true whatever is written to it.
func (t *contender) exists() *zk.CheckVersionRequest {
	return &zk.CheckVersionRequest{Path: t.path(), Version: -1}
}
