package zklock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// heart sends heartbeats: requests that prove that the session lives, and with it the nodes
// that are held or next in line.
type heart struct {
	requests *requests
	acquires *tasks      // while any runs, heartbeats go on
	missed   func(error) // is told why a heartbeat was not answered by a quorum
	kick     chan struct{}

	mu        sync.Mutex
	kept      map[*ownNode]struct{} // guarded by mu: see keep
	warmUntil time.Time             // guarded by mu: until when heartbeats go on though nothing is kept
}

func newHeart(r *requests, acquires *tasks, missed func(error)) *heart {
	return &heart{requests: r, acquires: acquires, missed: missed, kick: make(chan struct{}, 1), kept: map[*ownNode]struct{}{}}
}

// maxChecks bounds how many nodes one heartbeat checks. If there are more, each heartbeat
// checks some of them.
const maxChecks = 1000

// warmth returns how long a client keeps its lease proven after its last use, so that the next
// grant rests on a full proof. A short session needs frequent heartbeats, and is kept warm for
// less time.
func warmth(term time.Duration) time.Duration { return min(3*time.Minute, 18*term) }

// warmUp makes sure that heartbeats are sent. It is called before the client contends.
func (h *heart) warmUp() {
	if h.stayWarm() || h.acquires.running() {
		return
	}
	s := h.requests.link.Latest()
	if s != nil && s.Lease.CanRest() {
		s.Lease.Begin()
	}
	h.nudge()
}

// stayWarm keeps the client warm for a while from now on, and reports whether it was warm
// already.
func (h *heart) stayWarm() bool {
	now := time.Now()
	until := now.Add(warmth(h.requests.term()))
	h.mu.Lock()
	defer h.mu.Unlock()
	was := len(h.kept) > 0 || now.Before(h.warmUntil)
	h.warmUntil = until
	return was
}

// isWarm reports whether heartbeats are due.
func (h *heart) isWarm() bool {
	if h.acquires.running() {
		return true
	}
	if s := h.requests.link.Latest(); s != nil && !s.Lease.CanRest() {
		return true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.kept) > 0 || time.Now().Before(h.warmUntil)
}

// keep has heartbeats check that the node exists, for as long as it is held or next in line.
func (h *heart) keep(t *ownNode) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := h.kept[t]; ok {
		return
	}
	h.kept[t] = struct{}{}
	h.nudge()
}

// unkeep ends what keep has begun.
func (h *heart) unkeep(t *ownNode) {
	h.mu.Lock()
	delete(h.kept, t)
	h.mu.Unlock()
	h.stayWarm()
}

// nudge makes beatForever compute again when the next heartbeat is due.
func (h *heart) nudge() {
	select {
	case h.kick <- struct{}{}:
	default:
	}
}

// never is how long the loop waits for what is not due. Whatever happens wakes it before.
const never = time.Hour

// beatForever sends heartbeats while the client contends or holds, and for a while after it.
// It is owned by the client and returns when that is closed; Close waits for it.
func (h *heart) beatForever() {
	timer := time.NewTimer(never)
	defer timer.Stop()
	b := beats{h: h, done: make(chan beaten, maxBeats)}
	for {
		s, changed := h.requests.link.State()
		wait := b.untilNext(s)
		if wait <= 0 {
			b.next(s)
			continue
		}
		timer.Reset(min(wait, b.untilSilent()))
		select {
		case <-timer.C:
		case <-changed:
		case <-b.again:
		case done := <-b.done:
			b.finish(done)
		case <-h.kick:
		case <-h.requests.life.Done():
			return
		}
	}
}

// maxBeats bounds how many heartbeats are under way at once. Each proves the touches of earlier
// ones: where answers take long, one heartbeat after the other would prove them too late.
const maxBeats = 4

// beats decides when heartbeats are sent.
type beats struct {
	h       *heart
	s       *session // the newest seen
	again   <-chan struct{}
	warm    bool
	last    time.Time // when the last one began
	touched time.Time // when its touches were answered
	retry   pace
	running int
	done    chan beaten // has room for all that are running
	silent  time.Time   // when it is to be reported that no answer comes; zero if it was, or none is awaited
}

// beaten is the outcome of a heartbeat.
type beaten struct {
	s       *session
	touched time.Time // when its touches were answered; zero if they were not
	err     error
}

// untilNext returns how long it is until the next heartbeat is due.
func (b *beats) untilNext(s *session) time.Duration {
	now, was := time.Now(), b.warm
	b.warm = b.h.isWarm()
	switch {
	case !was || b.s == nil: // what has just begun is proven; its first requests are touches
		b.last = now.Add(b.h.requests.term() / 256)
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
	case s != nil && b.h.keepsUnder(s): // sooner where proof gets thin
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

// next begins a heartbeat under s. If s is nil, there is no connection, and it is missed.
func (b *beats) next(s *session) {
	b.last = time.Now()
	b.running++
	if s == nil {
		err := ErrNotConnected
		if trouble := b.h.requests.link.LastTrouble(); trouble != nil {
			err = fmt.Errorf("%w: %w", err, trouble)
		}
		b.finish(beaten{err: err})
		return
	}
	if b.running == 1 {
		b.expectAnswer(s)
	}
	// Owned by beatForever, which counts it; ends with its requests; Close waits for it.
	if !b.h.requests.calls.run(func() {
		done := beaten{s: s}
		done.err = b.h.beat(s, &done.touched)
		b.done <- done
	}) {
		b.running--
	}
}

// expectAnswer sets the time of the warning.
func (b *beats) expectAnswer(s *session) {
	b.silent = time.Now().Add(s.Lease.Term()/4 + s.Lease.BetweenSyncs())
}

// errSilent is reported for a heartbeat that has no answer yet.
var errSilent = errors.New("no server has answered for a quarter of the session timeout")

// untilSilent returns how long it is until a heartbeat without an answer is to be reported. If
// that is now, it reports it: if a server is cut off, no error comes before everything that is
// held is lost.
func (b *beats) untilSilent() time.Duration {
	if b.silent.IsZero() {
		return never
	}
	if wait := time.Until(b.silent); wait > 0 {
		return wait
	}
	b.silent = time.Time{}
	if b.h.keepsUnder(b.s) {
		b.h.missed(errSilent)
	}
	return never
}

// finish takes the outcome of a heartbeat. If several fail together, it reports only the last.
func (b *beats) finish(done beaten) {
	b.running--
	b.silent = time.Time{}
	if b.running > 0 {
		b.expectAnswer(b.s)
	}
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
	if b.running == 0 && b.h.keepsUnder(b.s) {
		b.h.missed(done.err)
	}
}

// beat sends the requests that prove the touches of an earlier heartbeat, and that are touches
// themselves: a read and a sync together, whose answers have come at touched, a moment later
// another sync, and then a quorum operation.
func (h *heart) beat(s *session, touched *time.Time) error {
	looked := make(chan struct{})
	// Owned by this call, which waits for it; ends with the request.
	if !h.requests.calls.run(func() {
		defer close(looked)
		h.requests.stat(h.requests.life, s, "/") // any answer is a touch
	}) {
		return ErrClosed
	}
	err := h.requests.sync(h.requests.life, s, "/")
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
	case <-h.requests.life.Done():
		return ErrClosed
	}
	if err := h.requests.sync(h.requests.life, s, "/"); err != nil {
		return err
	}
	return h.confirm(h.requests.life, s, h.keptUnder(s))
}

// keepsUnder reports whether any node is to be checked under s.
func (h *heart) keepsUnder(s *session) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for t := range h.kept {
		if t.sess == s {
			return true
		}
	}
	return false
}

// keptUnder returns some of the nodes to be checked under s, at least one if there is any.
func (h *heart) keptUnder(s *session) []*ownNode {
	h.mu.Lock()
	defer h.mu.Unlock()
	var kept []*ownNode
	var size int
	for t := range h.kept { // in random order, so that each has its turn if there are too many
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

// confirm asks the quorum whether the session lives and the nodes exist. It changes nothing and
// fires no watch. If a node is missing, confirm marks it as gone and returns errGone.
func (h *heart) confirm(ctx context.Context, s *session, nodes []*ownNode) error {
	answers, err := h.requests.multi(ctx, s, checks(nodes)...)
	if err == nil || !isRefusal(err) {
		return err
	}
	return h.heed(nodes, answers) // it went through the quorum all the same: the session lives
}

// confirmAll is confirm for nodes that may be too many for one request. A node that exists when
// a later request is answered existed when the earlier ones were.
func (h *heart) confirmAll(ctx context.Context, s *session, nodes []*ownNode) error {
	for len(nodes) > 0 {
		n, size := 0, 0
		for n < len(nodes) && (n == 0 || size+nodes[n].checkSize() <= maxRequest) {
			size += nodes[n].checkSize()
			n++
		}
		if err := h.confirm(ctx, s, nodes[:n]); err != nil {
			return err
		}
		nodes = nodes[n:]
	}
	return nil
}

// heed marks the node as gone that a heartbeat was refused for. The answers up to the first
// refusal are real.
func (h *heart) heed(asked []*ownNode, answers []zk.MultiResponse) error {
	for i, t := range asked[:min(len(asked), len(answers))] {
		switch err := answers[i].Error; {
		case errors.Is(err, zk.ErrNoNode):
			t.forsake(nil)
		case errors.Is(err, zk.ErrNoAuth):
			t.forsake(errUnreadable)
		default:
			continue
		}
		h.unkeep(t)
		return errGone
	}
	return nil
}

// checks returns operations that check that the nodes exist, or the root if there are none.
func checks(nodes []*ownNode) []any {
	var ops []any
	for _, t := range nodes {
		ops = append(ops, t.exists())
	}
	if len(ops) == 0 {
		ops = []any{&zk.CheckVersionRequest{Path: "/", Version: -1}}
	}
	return ops
}
