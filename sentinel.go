package zklock

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// aloneGrace is how long a contender that found the queue empty may hold before it
// watches its own node: a lock taken and released at once costs no watch. Whoever has
// others around it watches before it holds.
const aloneGrace = 10 * time.Millisecond

// sentinel watches a contender's own node: deletion by anybody means lost, and data
// may carry a request to let go.
type sentinel struct {
	armed chan struct{} // closed after the first look at the node
	czxid int64         // set before armed is closed; zero if the look failed
}

// guard starts the sentinel, after a while, unless there is one.
func (t *contender) guard(after time.Duration) {
	if t.sentinel != nil {
		return
	}
	t.sentinel = &sentinel{armed: make(chan struct{})}
	g := t.sentinel
	// Owned by the contender; ends when it departs, its node or its session is gone or
	// the client is closed, which waits for it.
	if !t.c.calls.run(func() { t.watchOwn(g, after) }) {
		close(g.armed)
	}
	yield()
}

// await waits until the sentinel has looked at the node once.
func (g *sentinel) await(ctx context.Context, t *contender) error {
	select {
	case <-g.armed:
	case <-t.sess.over:
		return errSessionOver
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if t.isGone() {
		return errGone
	}
	if t.token == 0 {
		t.token = g.czxid
	}
	return nil
}

func (t *contender) watchOwn(g *sentinel, after time.Duration) {
	var look sync.Once
	defer look.Do(func() { close(g.armed) })
	if !t.linger(after) {
		return
	}
	var p pace
	for {
		w, err := t.c.watch(t.c.life, t.sess, t.path())
		switch {
		case err == nil:
			look.Do(func() {
				g.czxid = w.stat.Czxid
				close(g.armed)
			})
			t.inspect(node{w.data, w.stat})
			if !t.stand(w) {
				return
			}
		case errors.Is(err, zk.ErrNoNode):
			t.vanished()
			return
		case !isTransient(err):
			return // over, closed, or not ours to read: heartbeats still check
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
	if t.sess.isOver() {
		return false
	}
	if w.saw == nodeGone {
		t.vanished()
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
	case <-t.sess.over:
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
	defer c.mu.Unlock()
	delete(c.kept, t)
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

// beatForever sends a heartbeat when something is kept and no other quorum operation
// has been answered for a quarter of the timeout.
//
// It is owned by the client and ends when that is closed, which waits for it.
func (c *Client) beatForever() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var p pace
	for {
		s, changed := c.link.state()
		wait := c.untilBeat(s)
		if wait <= 0 {
			if c.beat(s) {
				p = pace{}
				continue
			}
			wait = p.longer()
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-changed:
		case <-c.kick:
		case <-c.life.Done():
			return
		}
	}
}

// untilBeat is how long nothing has to be sent.
func (c *Client) untilBeat(s *session) time.Duration {
	const never = time.Hour
	if s == nil || len(c.keptUnder(s)) == 0 {
		return never
	}
	return s.lease.untilBeat()
}

// keptUnder returns some of the contenders to be checked under s, at least one if there is any.
func (c *Client) keptUnder(s *session) []*contender {
	c.mu.Lock()
	defer c.mu.Unlock()
	var kept []*contender
	for t := range c.kept { // in no order: with too many for one, each has its turn
		if t.sess == s && len(kept) < maxChecks {
			kept = append(kept, t)
		}
	}
	return kept
}

// beat is false if no answer came.
func (c *Client) beat(s *session) bool {
	err := c.confirm(c.life, s, c.keptUnder(s))
	if err == nil || errors.Is(err, errGone) || isRefusal(err) {
		return true
	}
	if c.life.Err() == nil {
		c.observe(Event{Kind: HeartbeatMissed, Err: err})
	}
	return false
}

// confirm asks the quorum whether the session lives and the nodes with it. It changes
// nothing and fires no watch. Those found missing are told so, and the error is errGone.
func (c *Client) confirm(ctx context.Context, s *session, nodes []*contender) error {
	ops, asked := c.checks(nodes)
	answers, err := c.multi(ctx, s, ops...)
	if err == nil || !isRefusal(err) {
		return err
	}
	return c.heed(asked, answers) // it went through the quorum all the same: the session lives
}

// heed draws the consequences of a refused heartbeat, whose answers up to the first refusal are real.
func (c *Client) heed(asked []*contender, answers []zk.MultiResponse) error {
	for i, t := range asked[:min(len(asked), len(answers))] {
		switch err := answers[i].Error; {
		case errors.Is(err, zk.ErrNoNode):
			t.vanished()
			c.unkeep(t)
			return errGone
		case errors.Is(err, zk.ErrNoAuth):
			c.mu.Lock()
			t.blind = true
			c.mu.Unlock()
			return nil
		}
	}
	return nil
}

// checks returns the operations of a heartbeat and the contenders that they are about.
func (c *Client) checks(nodes []*contender) ([]any, []*contender) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var ops []any
	var asked []*contender
	for _, t := range nodes {
		if !t.blind {
			ops = append(ops, t.exists())
			asked = append(asked, t)
		}
	}
	if len(ops) == 0 {
		ops = []any{&zk.CheckVersionRequest{Path: "/", Version: -1}}
	}
	return ops, asked
}

// exists is the operation that fails unless our node is there; it stays true whatever is written to it.
func (t *contender) exists() *zk.CheckVersionRequest {
	return &zk.CheckVersionRequest{Path: t.path(), Version: -1}
}
