// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/frames"
	"github.com/zklock-go/zklock/internal/lease"
	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
)

// Heart sends the requests that the lease needs, on every connection from its beginning to its end. Reads and syncs show whether
// the leader has counted the session's touches without a gap. While a node is kept, because it is held or next in line, Heart also
// asks the quorum.
type Heart struct {
	requests *Requests
	missed   func(error) // called with the reason if no quorum answered a heartbeat
	early    func(error) // called when a session has ended while its lease had time left
	kick     chan struct{}
	kept     checkQueue

	mu    sync.Mutex
	asked chan struct{} // guarded by mu: closed when the quorum has been asked; nil while no caller waits for that
}

// NewHeart returns a Heart. It calls missed with the reason if no quorum has answered a heartbeat, and
// early if a session has ended while its lease had time left.
func NewHeart(r *Requests, missed, early func(error)) *Heart {
	return &Heart{requests: r, missed: missed, early: early, kick: make(chan struct{}, 1), kept: newCheckQueue()}
}

// Keep makes heartbeats ask the quorum, and check that the node exists, for as long as it is held or
// next in line.
func (h *Heart) Keep(t *OwnNode) {
	if h.kept.add(t) {
		h.Nudge()
	}
}

// Leave makes heartbeats keep asking the quorum while the node is being deleted, but no longer check the node: a caller waits for its
// release only as long as the session is proven. Unkeep ends this, too.
func (h *Heart) Leave(t *OwnNode) { h.kept.leave(t) }

// Unkeep undoes Keep and Leave.
func (h *Heart) Unkeep(t *OwnNode) { h.kept.remove(t) }

// Nudge makes BeatForever look again at what is due.
func (h *Heart) Nudge() {
	select {
	case h.kick <- struct{}{}:
	default:
	}
}

// Asked returns a channel that is closed when the quorum has been asked the next time.
func (h *Heart) Asked() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.asked == nil {
		h.asked = make(chan struct{})
	}
	return h.asked
}

// wasAsked closes the channel that Asked has returned.
func (h *Heart) wasAsked() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.asked != nil {
		close(h.asked)
		h.asked = nil
	}
}

// BeatForever sends heartbeats. It is owned by the client and returns when that is closed; Close
// waits for it.
func (h *Heart) BeatForever() {
	timer := time.NewTimer(never)
	defer timer.Stop()
	b := beats{h: h, done: make(chan sent, maxPending)}
	for h.requests.Life.Err() == nil {
		s, changed := h.requests.Link.State()
		var moved <-chan struct{} // nil without a connection; then changed is closed when there is one
		if s != nil {
			moved = s.Reattached()
		}
		wait := b.act(s)
		if wait <= 0 {
			continue
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-changed:
		case <-moved:
		case done := <-b.done:
			b.finish(done)
		case <-h.kick:
		case <-h.requests.Life.Done():
			return
		}
	}
}

// maxPending limits how many requests are under way at once. A request ends only with a reply, or with its connection.
const maxPending = 16

// beats is the state of BeatForever.
type beats struct {
	h       *Heart
	s       *Session  // the newest session seen, or nil before the first
	ended   bool      // whether checkEnd has already checked the end of s
	last    time.Time // when a request was last sent, or could not be
	done    chan sent // has room for all requests that are under way
	pending int       // requests that are under way
}

// sent is a request that has ended.
type sent struct {
	s   *Session
	due lease.Due
	err error
}

// act sends what is due for s, the session that the connection carries, or nil if there is none. It returns the time until something
// is due again.
func (b *beats) act(s *Session) time.Duration {
	b.checkEnd()
	now := time.Now()
	if s == nil {
		return b.offline(now)
	}
	if s != b.s {
		b.s, b.ended = s, false
	}
	if b.pending == maxPending {
		return b.untilSilent(now)
	}
	due, wait := s.Lease.Next(b.h.kept.isAny(s))
	if due.Step != lease.Nothing {
		b.send(due, now)
		return 0
	}
	return min(wait, b.untilSilent(now))
}

// checkEnd reports once if the newest session has ended too early.
func (b *beats) checkEnd() {
	if b.s == nil || b.ended || !b.s.IsOver() {
		return
	}
	b.ended = true
	if left := b.s.EndedEarly(); left > 0 {
		b.h.early(fmt.Errorf("session 0x%x expired %v before its lease: %s; or clocks run at different rates", b.s.ID, left.Round(time.Millisecond), b.s.Lease.TickAssumed()))
	}
}

// offline reports four times per session timeout that there is no connection. It returns the time until the next report.
func (b *beats) offline(now time.Time) time.Duration {
	if b.s == nil {
		return never
	}
	if wait := b.last.Add(b.s.Lease.Term() / 4).Sub(now); wait > 0 {
		return wait
	}
	b.last = now
	why := outcome.ErrNotConnected
	if last := b.h.requests.Link.LastError(); last != nil {
		why = fmt.Errorf("%w: %w", outcome.ErrNotConnected, last)
	}
	b.missed(why)
	return 0
}

// send sends a request that is due. BeatForever gets it back when it has ended.
func (b *beats) send(due lease.Due, now time.Time) {
	b.last = now
	b.pending++
	s, h, r := b.s, b.h, b.h.requests
	ended := func(err error) { b.done <- sent{s, due, err} }
	switch due.Step {
	case lease.Quorum:
		nodes := h.kept.due(s)
		ops := checks(nodes)
		sendBeat(r, s, frames.Multi(ops), ReadResults(len(ops)), func(answers []zk.MultiResponse, err error) {
			if err == nil {
				h.kept.found(nodes)
			}
			ended(h.confirmed(nodes, answers, err))
		})
	case lease.Sync:
		sendBeat(r, s, frames.Sync("/"), readNothing, func(_ struct{}, err error) { ended(err) })
	default:
		sendBeat(r, s, frames.Exists("/"), readStat, func(_ *zk.Stat, err error) { ended(err) })
	}
}

// errNoQuorum is reported for a reply that proves nothing, because one server has refused by itself.
var errNoQuorum = errors.New("a server replied without asking the quorum")

// finish handles a request that has ended.
func (b *beats) finish(done sent) {
	b.pending--
	brought := done.s.Lease.Done(done.due)
	if done.due.Step == lease.Quorum {
		done.err = cmp.Or(done.err, errNoQuorum)
		b.h.wasAsked()
	}
	if brought || done.err == nil || done.s != b.s || errors.Is(done.err, outcome.ErrGone) || outcome.IsRefusal(done.err) {
		return
	}
	b.missed(done.err)
}

// missed reports a heartbeat that was not answered by a quorum, if anything depends on it. If
// several fail together, it reports only the last.
func (b *beats) missed(why error) {
	if b.pending == 0 && b.h.kept.isAny(b.s) {
		b.h.missed(why)
	}
}

// untilSilent returns the time until the client leaves a server that does not answer, and leaves it if that time has come.
func (b *beats) untilSilent(now time.Time) time.Duration {
	return b.h.requests.leaveIfSilent(b.s, now, func(why error) {
		if b.h.kept.isAny(b.s) {
			b.h.missed(why)
		}
	})
}

// confirm asks the quorum whether the session lives and the nodes exist. It changes nothing and
// fires no watch. If a node is missing, confirm marks it as gone and returns ErrGone.
func (h *Heart) confirm(ctx context.Context, s *Session, nodes []*OwnNode) error {
	ops := checks(nodes)
	answers, err := askBeat(ctx, h.requests, s, frames.Multi(ops), ReadResults(len(ops)))
	return h.confirmed(nodes, answers, err)
}

// confirmed returns the error of a request that has asked the quorum.
func (h *Heart) confirmed(nodes []*OwnNode, answers []zk.MultiResponse, err error) error {
	if err == nil || !outcome.IsRefusal(err) {
		return err
	}
	return h.takeAnswers(nodes, answers) // the refusal also passed through the quorum: the session is alive
}

// ConfirmAll is confirm for nodes that may be too many for one request. A node that exists when
// a later request is answered existed when the earlier ones were.
func (h *Heart) ConfirmAll(ctx context.Context, s *Session, nodes []*OwnNode) error {
	for len(nodes) > 0 {
		n := fitting(nodes, node.MaxRequest)
		if err := h.confirm(ctx, s, nodes[:n]); err != nil {
			return err
		}
		nodes = nodes[n:]
	}
	return nil
}

// takeAnswers marks the node as gone because of which a heartbeat was refused. Only the answers up to the
// first refusal are valid.
func (h *Heart) takeAnswers(asked []*OwnNode, answers []zk.MultiResponse) error {
	for i, t := range asked[:min(len(asked), len(answers))] {
		switch err := answers[i].Error; {
		case errors.Is(err, zk.ErrNoNode):
			t.MarkGone(nil)
		case errors.Is(err, zk.ErrNoAuth):
			t.MarkGone(ErrUnreadable)
		default:
			continue
		}
		h.Unkeep(t)
		return outcome.ErrGone
	}
	return nil
}
