// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/frames"
	"github.com/zklock-go/zklock/internal/lease"
	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
)

// A Heart is a client's part of its connection's heartbeats: the nodes that they check, and the functions that report the results.
type Heart struct {
	requests *Requests
	beats    *beats
	missed   func(error) // called with the reason if no quorum answered a heartbeat on which a node of the client depends
	early    func(error) // called when a session has ended while its lease had time left
	hasEnded bool        // guarded by the mutex of beats.kept: End was called
}

// NewHeart returns the Heart of a client. It calls missed with the reason if no quorum has answered a heartbeat on which a node of the
// client depends, and early if a session has ended while its lease had time left. Neither may wait.
func NewHeart(r *Requests, s *Shared, missed, early func(error)) *Heart {
	return &Heart{requests: r, beats: s.beats, missed: missed, early: early}
}

// Begin makes heartbeats begin, unless another client of the connection has done so. End must be called.
func (h *Heart) Begin() { h.beats.add(h) }

// End undoes Begin and every Keep and Leave. Heartbeats continue for other clients of the connection.
func (h *Heart) End() { h.beats.remove(h) }

// Keep makes heartbeats ask the quorum, and check that the node exists, for as long as it is held or
// next in line.
func (h *Heart) Keep(n *OwnNode) {
	if h.beats.kept.add(n, h) {
		h.Nudge()
	}
}

// Leave makes heartbeats keep asking the quorum while the node is being deleted, but no longer check the node: a caller waits for its
// release only as long as the session is proven. Unkeep ends this, too.
func (h *Heart) Leave(n *OwnNode) { h.beats.kept.leave(n, h) }

// Unkeep undoes Keep and Leave.
func (h *Heart) Unkeep(n *OwnNode) { h.beats.kept.remove(n) }

// Nudge makes the connection's heartbeats look again at what is due.
func (h *Heart) Nudge() { h.beats.nudge() }

// Prove waits until the session is proven with the tick that counts now. It has an effect after a client with a longer tick has joined.
func (h *Heart) Prove(ctx context.Context) error {
	h.beats.proving.Add(1)
	defer h.beats.proving.Add(-1)
	for {
		s, err := h.requests.Link.Attached(ctx)
		if err != nil {
			return err
		}
		ended := s.Lease.TransactionEnd()
		if s.Lease.IsProven() {
			return nil
		}
		h.Nudge()
		select {
		case <-ended:
		case <-s.Over():
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// maxPending limits how many requests are under way at once. A request ends only with a reply, or with its connection.
const maxPending = 16

// beats sends the requests that the lease of a connection's session needs, while the connection has clients. Reads and syncs show
// whether the leader has counted the session's touches without a gap. While a client keeps a node, because it is held or next in line,
// or proves the session, beats also asks the quorum.
type beats struct {
	requests *Requests // of the connection, not of a client
	kept     checkQueue
	kick     chan struct{}
	proving  atomic.Int32 // calls of Prove

	mu      sync.Mutex
	hearts  map[*Heart]struct{} // guarded by mu
	begun   bool                // guarded by mu
	pending int                 // guarded by mu: requests that are under way

	// Used by the goroutine of run only:
	s     *Session  // the newest session seen, or nil before the first
	ended bool      // whether checkEnd has already checked the end of s
	last  time.Time // when a request was last sent, or could not be
}

func newBeats(r *Requests) *beats {
	return &beats{requests: r, kept: newCheckQueue(), kick: make(chan struct{}, 1), hearts: map[*Heart]struct{}{}}
}

func (b *beats) add(h *Heart) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hearts[h] = struct{}{}
	if !b.begun {
		// Owned by the Shared; ends with its life; the last client that leaves waits for it.
		b.begun = b.requests.Calls.Run(b.run)
	}
}

func (b *beats) remove(h *Heart) {
	b.mu.Lock()
	delete(b.hearts, h)
	b.mu.Unlock()
	b.kept.removeAll(h)
}

// all returns the hearts for which is returns true.
func (b *beats) all(is func(*Heart) bool) (all []*Heart) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for h := range b.hearts {
		if is(h) {
			all = append(all, h)
		}
	}
	return all
}

func (b *beats) nudge() {
	select {
	case b.kick <- struct{}{}:
	default:
	}
}

// run sends heartbeats until the life of the Shared ends.
func (b *beats) run() {
	timer := time.NewTimer(never)
	defer timer.Stop()
	for b.requests.Life.Err() == nil {
		s, changed := b.requests.Link.State() // changed is also closed when another connection carries s
		wait := b.act(s)
		if wait <= 0 {
			continue
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-changed:
		case <-b.kick:
		case <-b.requests.Life.Done():
		}
	}
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
	if b.isFull() {
		return b.untilSilent(now)
	}
	req, wait := s.Lease.Next(b.proving.Load() > 0 || b.kept.isAny(s))
	if req.Step != lease.Nothing {
		b.send(req, now)
		return 0
	}
	return min(wait, b.untilSilent(now))
}

func (b *beats) isFull() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pending >= maxPending
}

// checkEnd reports once if the newest session has ended too early.
func (b *beats) checkEnd() {
	if b.s == nil || b.ended || !b.s.IsOver() {
		return
	}
	b.ended = true
	if left := b.s.EndedEarly(); left > 0 {
		why := fmt.Errorf("session 0x%x expired %v before its lease: %s; or clocks run at different rates", b.s.ID, left.Round(time.Millisecond), b.s.Lease.TickAssumed())
		for _, h := range b.all(func(*Heart) bool { return true }) {
			h.early(why)
		}
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
	if last := b.requests.Link.LastError(); last != nil {
		why = fmt.Errorf("%w: %w", outcome.ErrNotConnected, last)
	}
	b.missed(b.s, why)
	return 0
}

// send sends a request that is due.
func (b *beats) send(req lease.Request, now time.Time) {
	b.last = now
	b.mu.Lock()
	b.pending++
	b.mu.Unlock()
	s := b.s
	end := func(err error) { b.end(s, req, err) }
	switch req.Step {
	case lease.Quorum:
		nodes := b.kept.due(s)
		ops := checks(nodes)
		sendBeat(b.requests, s, frames.Multi(ops), ReadResults(len(ops)), func(answers []zk.MultiResponse, err error) {
			if err == nil {
				b.kept.found(nodes)
			}
			err = b.kept.confirmed(nodes, answers, err)
			if err == nil { // otherwise the nodes behind the missing one were not checked
				req.Sighted()
			}
			end(err)
		})
	case lease.Sync:
		sendBeat(b.requests, s, frames.Sync("/"), readNothing, func(_ struct{}, err error) { end(err) })
	default:
		sendBeat(b.requests, s, frames.Exists("/"), readStat, func(_ *zk.Stat, err error) { end(err) })
	}
}

// errNoQuorum is reported for a reply that proves nothing, because one server has refused by itself.
var errNoQuorum = errors.New("a server replied without asking the quorum")

// end handles the end of a request under s. It is called with the reply, and does not wait. If several fail together, it reports only
// the last.
func (b *beats) end(s *Session, req lease.Request, err error) {
	b.mu.Lock()
	b.pending--
	isLast := b.pending == 0
	b.mu.Unlock()
	achieved := s.Lease.Done(req)
	if req.Step == lease.Quorum {
		err = cmp.Or(err, errNoQuorum)
	}
	if isLast && !achieved && err != nil && s == b.requests.Link.Latest() && !errors.Is(err, outcome.ErrGone) && !outcome.IsRefusal(err) {
		b.missed(s, err)
	}
	b.nudge()
}

// missed reports a heartbeat that was not answered by a quorum to the clients that depend on it.
func (b *beats) missed(s *Session, why error) {
	for _, h := range b.all(func(h *Heart) bool { return b.kept.hasAny(s, h) }) {
		h.missed(why)
	}
}

// untilSilent returns the time until the client leaves a server that does not answer, and leaves it if that time has come.
func (b *beats) untilSilent(now time.Time) time.Duration {
	return b.requests.leaveIfSilent(b.s, now, func(why error) { b.missed(b.s, why) })
}

// confirm asks the quorum whether the session lives and the nodes exist. It changes nothing and
// fires no watch. If a node is missing, confirm marks it as gone and returns ErrGone.
func (h *Heart) confirm(ctx context.Context, s *Session, nodes []*OwnNode) error {
	ops := checks(nodes)
	answers, err := askBeat(ctx, h.requests, s, frames.Multi(ops), ReadResults(len(ops)))
	return h.beats.kept.confirmed(nodes, answers, err)
}

// confirmed returns the error of a request that has asked the quorum.
func (cq *checkQueue) confirmed(nodes []*OwnNode, answers []zk.MultiResponse, err error) error {
	if err == nil || !outcome.IsRefusal(err) {
		return err
	}
	return cq.takeAnswers(nodes, answers) // the refusal also passed through the quorum: the session is alive
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
func (cq *checkQueue) takeAnswers(nodes []*OwnNode, answers []zk.MultiResponse) error {
	for i, n := range nodes[:min(len(nodes), len(answers))] {
		switch err := answers[i].Error; {
		case errors.Is(err, zk.ErrNoNode):
			n.MarkGone(nil)
		case errors.Is(err, zk.ErrNoAuth):
			n.MarkGone(ErrUnreadable)
		default:
			continue
		}
		cq.remove(n)
		return outcome.ErrGone
	}
	return nil
}
