package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
)

// Heart sends heartbeats on every connection, from its beginning to its end: reads and syncs, from
// whose answers it follows that the leader has counted the session's touches without a gap. While
// a node is kept, which is one that is held or next in line, it also asks the quorum, as often as
// that proves more than is proven.
type Heart struct {
	requests *Requests
	missed   func(error) // is told why a heartbeat was not answered by a quorum
	kick     chan struct{}
	kept     turns

	mu   sync.Mutex
	told chan struct{} // guarded by mu: closed when the quorum was asked; nil while nobody waits for that
}

func NewHeart(r *Requests, missed func(error)) *Heart {
	return &Heart{requests: r, missed: missed, kick: make(chan struct{}, 1), kept: newTurns()}
}

// Keep makes heartbeats ask the quorum, and check that the node exists, for as long as it is held or
// next in line.
func (h *Heart) Keep(t *OwnNode) {
	if h.kept.add(t) {
		h.nudge()
	}
}

// Leave makes heartbeats go on asking the quorum while the node is being deleted, and check it no more: as long as the session
// is proven, a release is waited for. Unkeep ends that, too.
func (h *Heart) Leave(t *OwnNode) { h.kept.leave(t) }

// Unkeep ends what Keep has begun.
func (h *Heart) Unkeep(t *OwnNode) { h.kept.remove(t) }

// nudge makes beatForever compute again when the next heartbeat is due.
func (h *Heart) nudge() {
	select {
	case h.kick <- struct{}{}:
	default:
	}
}

// Asked returns a channel that is closed when the quorum was asked the next time.
func (h *Heart) Asked() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.told == nil {
		h.told = make(chan struct{})
	}
	return h.told
}

// tellAsked closes the channel that asked has returned.
func (h *Heart) tellAsked() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.told != nil {
		close(h.told)
		h.told = nil
	}
}

// never is how long the loop waits for what is not due. Whatever happens wakes it before.
const never = time.Hour

// BeatForever sends heartbeats. It is owned by the client and returns when that is closed; Close
// waits for it.
func (h *Heart) BeatForever() {
	timer := time.NewTimer(never)
	defer timer.Stop()
	b := beats{h: h, done: make(chan beaten, maxBeats+1)}
	for h.requests.Life.Err() == nil {
		s, changed := h.requests.Link.State()
		b.follow(s)
		wait := b.act()
		if wait <= 0 {
			continue
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-changed:
		case <-b.moved():
		case done := <-b.done:
			b.finish(done)
		case <-h.kick:
		case <-h.requests.Life.Done():
			return
		}
	}
}

// maxBeats bounds how many heartbeats are under way at once. Each brings the touches of earlier
// ones up to the leader: where answers take long, one heartbeat after the other would do so too late.
const maxBeats = 4

// beats decides when heartbeats are sent, and when the quorum is asked. It belongs to beatForever.
type beats struct {
	h       *Heart
	s       *Session // the newest seen, nil before the first
	on      bool     // a connection carries it
	again   <-chan struct{}
	done    chan beaten // has room for all that are running
	last    time.Time   // when the last heartbeat began
	touched time.Time   // when its touches were answered
	running int
	asking  bool  // the quorum is being asked
	retry   retry // of heartbeats that failed
	reask   retry // of answers of the quorum that failed, or proved nothing
}

// retry spaces out what has failed.
type retry struct {
	Pace
	after time.Time // when the next attempt may be made; zero if that has begun, or the last one has not failed
}

// fail takes a failure.
func (r *retry) fail() { r.after = time.Now().Add(r.Longer()) }

// beaten is the outcome of a heartbeat, or of asking the quorum.
type beaten struct {
	s       *Session
	asked   bool      // the quorum was asked
	touched time.Time // when the touches of a heartbeat were answered; zero if they were not
	err     error
}

// follow takes the session that the connection carries, nil for none. On a new connection
// heartbeats begin at once.
func (b *beats) follow(s *Session) {
	b.on = s != nil
	if s != nil && (s != b.s || IsClosed(b.again)) {
		b.s, b.again = s, s.Reattached()
		b.last, b.touched, b.retry, b.reask = time.Time{}, time.Time{}, retry{}, retry{}
	}
}

// moved returns a channel that is closed when another connection carries the session.
func (b *beats) moved() <-chan struct{} {
	if !b.on {
		return nil // State tells
	}
	return b.again
}

// act does what is due, and returns after which time something else is.
func (b *beats) act() time.Duration {
	if b.s == nil {
		return never
	}
	now := time.Now()
	heartbeat, quorum := b.nextBeat(now).Sub(now), b.untilQuorum(now)
	if heartbeat <= 0 {
		b.beat(now)
		return 0
	}
	if quorum <= 0 {
		b.ask()
		return 0
	}
	return min(heartbeat, quorum, b.untilSilent(now), never)
}

// nextBeat returns when the next heartbeat is due.
func (b *beats) nextBeat(now time.Time) time.Time {
	switch {
	case b.running == maxBeats:
		return now.Add(never)
	case !b.on:
		return b.last.Add(b.s.Lease.Term() / 4)
	case !b.retry.after.IsZero():
		return b.retry.after
	case b.last.IsZero():
		return now
	}
	return b.s.Lease.NextBeat(b.last, b.touched)
}

// untilQuorum returns how long it is until the quorum is to be asked.
func (b *beats) untilQuorum(now time.Time) time.Duration {
	if b.asking || !b.on || !b.h.kept.isAny(b.s) {
		return never
	}
	wait, ok := b.s.Lease.NextQuorum()
	if !ok {
		return never
	}
	return max(wait, b.reask.after.Sub(now))
}

// beat begins a heartbeat. Without a connection it is missed.
func (b *beats) beat(now time.Time) {
	b.last, b.retry.after = now, time.Time{}
	if !b.on {
		b.missed(b.offline())
		return
	}
	b.running++
	s := b.s
	// Owned by beatForever, which counts it; ends with its requests; Close waits for it.
	if !b.h.requests.Calls.Run(func() {
		done := beaten{s: s}
		done.err = b.h.beat(s, &done.touched)
		b.done <- done
	}) {
		b.running--
	}
}

// offline returns why there is no connection.
func (b *beats) offline() error {
	if trouble := b.h.requests.Link.LastTrouble(); trouble != nil {
		return fmt.Errorf("%w: %w", outcome.ErrNotConnected, trouble)
	}
	return outcome.ErrNotConnected
}

// errNoQuorum is reported for an answer that proves nothing: a server has refused by itself.
var errNoQuorum = errors.New("a server has answered without the quorum")

// ask begins to ask the quorum.
func (b *beats) ask() {
	s, before := b.s, b.s.Lease.FreshUntil()
	// Owned by beatForever, which waits for it; ends with the request; Close waits for it.
	b.asking = b.h.requests.Calls.Run(func() {
		err := b.h.confirmSome(b.h.requests.Life, s)
		if err == nil && s.Lease.FreshUntil().Mono.Sub(before.Mono) < s.Lease.Term()/128 {
			err = errNoQuorum
		}
		b.done <- beaten{s: s, asked: true, err: err}
	})
}

// finish takes the outcome of a heartbeat, or of asking the quorum.
func (b *beats) finish(done beaten) {
	again := &b.retry
	if done.asked {
		again = &b.reask
		b.asking = false
		b.h.tellAsked()
	} else {
		b.running--
	}
	if done.s != b.s {
		return
	}
	if done.touched.After(b.touched) {
		b.touched = done.touched
	}
	if done.err == nil || errors.Is(done.err, outcome.ErrGone) || outcome.IsRefusal(done.err) {
		*again = retry{}
		return
	}
	again.fail()
	b.missed(done.err)
}

// missed reports a heartbeat that was not answered by a quorum, if anything depends on it. If
// several fail together, it reports only the last.
func (b *beats) missed(why error) {
	if b.running == 0 && !b.asking && b.h.kept.isAny(b.s) {
		b.h.missed(why)
	}
}

// errSilent is reported for a server that does not answer.
var errSilent = errors.New("the server has answered nothing for so long that another one is asked")

// untilSilent returns how long it is until the connection to a server that does not answer is given up: early enough for
// another server to prove the lease. If the server was cut off, no error comes by itself before everything is lost.
func (b *beats) untilSilent(now time.Time) time.Duration {
	if !b.on {
		return never
	}
	since, waiting := b.h.requests.Link.Unanswered(b.s)
	patience := b.s.Lease.Patience()
	if !waiting {
		return patience // a heartbeat that has just begun is not sent yet
	}
	if wait := since.Add(patience).Sub(now); wait > 0 {
		return wait
	}
	if b.h.kept.isAny(b.s) {
		b.h.missed(errSilent)
	}
	b.s.Lease.Leave()
	b.h.requests.Link.Abandon(b.s)
	return never
}

// beat sends a read and a sync together, whose answers have come at touched, and a moment later
// another sync. It sends a third one if the first answer to the next heartbeat would come too late.
func (h *Heart) beat(s *Session, touched *time.Time) error {
	look, err := h.requests.BeginStat(h.requests.Life, s, "/")
	if err != nil {
		return err
	}
	err = h.requests.Sync(h.requests.Life, s, "/")
	if err != nil {
		return err
	}
	look(h.requests.Life) // any answer is a touch, and it comes before that of the sync
	*touched = time.Now()
	if err := h.pause(s); err != nil {
		return err
	}
	err = h.requests.Sync(h.requests.Life, s, "/")
	if err == nil && s.Lease.IsFading() {
		err = h.requests.Sync(h.requests.Life, s, "/")
	}
	return err
}

// pause waits between the syncs of a heartbeat.
func (h *Heart) pause(s *Session) error {
	timer := time.NewTimer(s.Lease.BetweenSyncs())
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-s.Over():
		return outcome.ErrSessionOver
	case <-h.requests.Life.Done():
		return outcome.ErrClosed
	}
}

// confirmSome is confirm for nodes whose turn it is under s, as many as one heartbeat checks.
func (h *Heart) confirmSome(ctx context.Context, s *Session) error {
	due := h.kept.due(s)
	err := h.confirm(ctx, s, due)
	if err == nil {
		h.kept.found(due)
	}
	return err
}

// confirm asks the quorum whether the session lives and the nodes exist. It changes nothing and
// fires no watch. If a node is missing, confirm marks it as gone and returns errGone.
func (h *Heart) confirm(ctx context.Context, s *Session, nodes []*OwnNode) error {
	answers, err := h.requests.Multi(ctx, s, checks(nodes)...)
	if err == nil || !outcome.IsRefusal(err) {
		return err
	}
	return h.takeAnswers(nodes, answers) // it went through the quorum all the same: the session lives
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

// takeAnswers marks the node as gone that a heartbeat was refused for. The answers up to the first
// refusal are real.
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
