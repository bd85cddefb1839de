// SPDX-License-Identifier: Apache-2.0

// Package slots is for work that a fleet does once: the run of a job at a certain time, or anything
// else that has a name.
package slots

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/bridge"
	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/session"
)

// Slot is a piece of work that is done once. When it is done, a mark is stored next to the lock at
// its path. The mark is written in a transaction that commits only while that lock is held.
// Therefore the work is done once even if the hosts' clocks differ, after a change of leaders, and
// after a restart of clients or servers.
//
// The number of marks at a path is limited. No name is forgotten: after 1000 of them, a new one is
// refused with ErrFull (see Prune). Names of a series, which differ only in a date or a number of at
// least eight digits at their end, have an order: the last 128 of them are kept, and an older one is
// refused with ErrForgotten. The same holds for the last 128 due times (see Due) and the last 16 slots
// of each of 32 periods (see At).
type Slot struct {
	client *zklock.Client
	c      bridge.Client
	path   string
	slotKey
	inOrder bool  // the slot is not done after a later one: see Scheduled
	err     error // why the slot is invalid, or nil
}

// Named returns the slot with a name of at most 128 bytes, guarded by the lock at path. It sends
// nothing; an invalid path or name is reported by the first call.
func Named(c *zklock.Client, path, name string) *Slot {
	s := &Slot{client: c, c: bridge.ClientOf(c), path: path, slotKey: slotKey{name: name}}
	switch {
	case name == "" || len(name) > maxSlotName:
		s.err = fmt.Errorf("%w: a slot's name must have 1 to %d bytes, not %d", zklock.ErrInvalid, maxSlotName, len(name))
	case !utf8.ValidString(name):
		s.err = fmt.Errorf("%w: the slot's name %q is not UTF-8", zklock.ErrInvalid, name)
	}
	return s
}

// At returns the slot that contains the time at. Slots of up to an hour divide elapsed time and are
// the same everywhere. Longer slots follow the calendar in at.Location(): days begin at midnight
// there, weeks on Monday, and a day is one slot even if it has 23 or 25 hours. All hosts must use
// the same location.
//
// Preferably, at is the time for which the work was scheduled. With the current time, a run that is
// made up for after midnight counts as the new day's run, and the new day's own run is then skipped.
//
// At sends nothing; an invalid path, time or period is reported by the first call.
func At(c *zklock.Client, path string, at time.Time, period time.Duration) *Slot {
	s := &Slot{client: c, c: bridge.ClientOf(c), path: path, slotKey: slotKey{cut: calendar{period, at.Location()}}}
	if year := at.Year(); period <= 0 || year < 2 || year > 9998 {
		s.err = fmt.Errorf("%w: slot with period %v in year %d", zklock.ErrInvalid, period, year)
		return s
	}
	s.name = s.cut.slotOf(at)
	return s
}

// Due returns the slot of the run of a job that is due at that time, to the nanosecond. Use it if your
// scheduler says for which time it planned a run: neither late runs, nor clocks that differ, nor the
// job's period matter then. A due time that is older than the last 128 done at the path is
// forgotten, and one more than an hour after the leader's time is refused with ErrAhead.
//
// Due sends nothing; an invalid path or time is reported by the first call.
func Due(c *zklock.Client, path string, due time.Time) *Slot {
	s := &Slot{client: c, c: bridge.ClientOf(c), path: path, slotKey: slotKey{due: true, name: due.UTC().Format(slotTime)}}
	if year := due.UTC().Year(); year < 2 || year > 9998 {
		s.err = fmt.Errorf("%w: slot in year %d", zklock.ErrInvalid, year)
	}
	return s
}

// String returns the slot's name, its due time, or the time at which it begins.
func (s *Slot) String() string { return s.name }

// Do runs fn while it holds the lock at the slot's path. If fn returns nil, Do marks the slot as
// done before it releases the lock, even if ctx has ended in the meantime. If the slot is not open,
// Do returns ErrDone, ErrForgotten, ErrAhead or ErrFull, and does not call fn. Otherwise it returns the
// errors of Mutex.Do and of Mark. The error wraps zklock.ErrNotAcquired if fn was not called.
//
// If fn fails, or the process crashes before the mark is written, the slot stays open and the next
// Do runs fn again. For work that must not start twice, acquire the lock yourself and call Mark
// before the work.
func (s *Slot) Do(ctx context.Context, fn func(ctx context.Context) error) error {
	hold, err := s.begin(ctx)
	if err != nil {
		return outcome.NotAcquired(err)
	}
	return s.under(ctx, hold, fn)
}

// begin acquires the lock if the slot is open.
func (s *Slot) begin(ctx context.Context) (*zklock.Hold, error) {
	if err := s.open(ctx); err != nil {
		return nil, s.failure("do", err)
	}
	return s.client.Mutex(s.path).Lock(ctx)
}

// under runs fn under a hold of the lock if the slot is still open, marks it if fn returns nil, and
// releases the lock.
func (s *Slot) under(ctx context.Context, hold *zklock.Hold, fn func(ctx context.Context) error) error {
	called := false
	err := hold.Do(ctx, func(ctx context.Context) error {
		if err := s.open(ctx); err != nil {
			return s.failure("do", err)
		}
		called = true
		if err := fn(ctx); err != nil {
			return err
		}
		return s.finish(ctx, hold)
	})
	if err != nil && !called {
		return outcome.NotAcquired(err)
	}
	return err
}

// Open returns nil if the work may be done. Otherwise it returns ErrForgotten, ErrAhead, ErrFull, or
// ErrDone with when and by whom the slot was marked. While you hold the lock, only you can change the
// result; without the lock it may change at any time.
func (s *Slot) Open(ctx context.Context) error {
	if err := s.open(ctx); err != nil {
		return s.failure("open", err)
	}
	return nil
}

// Mark marks the slot as done, and returns nil if it is marked by h. h must be a hold of the lock
// at the slot's path. If h was lost, Mark returns zklock.ErrLost and has written nothing. If
// another hold has already marked the slot, it returns ErrDone; see also ErrForgotten, ErrAhead and ErrFull.
// All holds of a lock that was entered again count as one. Mark returns zklock.ErrNotHeld if h is nil,
// zklock.ErrInvalid if h is a hold of another path, and zklock.ErrMismatch if the node for the marks
// contains something else.
//
// If a reply is lost, Mark keeps asking until it knows the outcome, even after the end of h. If ctx
// ends first, the error wraps zklock.ErrUncertain.
func (s *Slot) Mark(ctx context.Context, h *zklock.Hold) error {
	if err := s.checkHold(h); err != nil {
		return s.failure("mark", err)
	}
	callCtx := s.c.Requests.CallContext(ctx)
	defer callCtx.Cancel()
	err := s.mark(callCtx, h)
	ended := callCtx.Err() != nil // before the look at the hold, whose end may also end ctx
	switch {
	case err == nil:
		return nil
	case errors.Is(err, zklock.ErrUncertain) || outcome.IsOfSlot(err):
	case h.Context().Err() != nil: // err says why
	case ended:
		err = outcome.Beside(callCtx, s.c.Requests.Explain(callCtx, err))
	}
	return s.failure("mark", err)
}

// finish marks the slot after its work, even if ctx has ended in the meantime, because the work
// must not be done again. It waits as long as it can take until the end of the hold is certain.
func (s *Slot) finish(ctx context.Context, hold *zklock.Hold) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*s.client.SessionTimeout())
	defer cancel()
	return s.Mark(ctx, hold)
}

// open returns nil if the work may be done: the slot is not marked and not in the future.
func (s *Slot) open(ctx context.Context) error {
	if err := s.check(); err != nil {
		return err
	}
	callCtx := s.c.Requests.CallContext(ctx)
	defer callCtx.Cancel()
	found, err := s.look(callCtx)
	switch {
	case errors.Is(err, ErrDone):
		err = fmt.Errorf("%w%v", err, found)
	case err != nil && !outcome.IsOfSlot(err):
		err = s.c.Requests.Explain(callCtx, err)
	}
	return err
}

// look reads the slot's mark as known to the quorum, under whatever session the client has. It
// returns ErrDone with the mark, or nil if the slot is open.
func (s *Slot) look(ctx context.Context) (found mark, err error) {
	return session.Persist(ctx, s.c.Requests, func(sess *session.Session) (mark, error) {
		_, _, found, err := s.read(ctx, sess)
		return found, err
	})
}

// read returns the node with the marks, and the state of the slot: see look.
//
// The node's modification time is a time that the leader's clock has certainly reached. If the slot
// is later than that, read writes the node again, unchanged, to learn the leader's time.
func (s *Slot) read(ctx context.Context, sess *session.Session) (n session.Node, m marks, found mark, err error) {
	for again := false; ; again = true {
		n, err = s.fetch(ctx, sess)
		if err == nil {
			m, err = s.parse(n)
		}
		if err == nil {
			found, err = m.find(s.slotKey, s.latest(n))
		}
		if err == nil && s.inOrder && m.isPassed(s.slotKey, s.latest(n)) {
			err = fmt.Errorf("%w: a later one is done", ErrLate)
		}
		switch {
		case err != nil || !s.isTimed() || s.name <= s.latest(n):
			return n, m, found, err
		case again && n.Stat != nil:
			return n, m, found, fmt.Errorf("%w: it is %s by the leader's clock", ErrAhead, s.slotOf(time.UnixMilli(n.Stat.Mtime)))
		}
		err = s.touch(ctx, sess, n)
		switch {
		case errors.Is(err, zk.ErrNoAuth): // then this client cannot mark any slot either
			return n, m, found, nil
		case err != nil && !isOutdated(err):
			return n, m, found, err
		}
	}
}

// latest returns the last slot that may be marked right after the node was written. It allows one
// period, or an hour for due times, for differences between clocks.
func (s *Slot) latest(n session.Node) string {
	if n.Stat == nil || !s.isTimed() {
		return ""
	}
	return s.slotOf(time.UnixMilli(n.Stat.Mtime).Add(s.allowance()))
}

// touch writes the node's data again, or creates a node without marks.
func (s *Slot) touch(ctx context.Context, sess *session.Session, n session.Node) error {
	if n.Stat != nil {
		_, err := s.c.Requests.Set(ctx, sess, s.node(), n.Data, n.Stat.Version)
		return err
	}
	_, err := s.c.Requests.Create(ctx, sess, s.node(), marks{}.encode(), zk.FlagPersistent, s.c.Directories.ACL)
	if errors.Is(err, zk.ErrNoNode) {
		err = s.c.Directories.MakeDir(ctx, sess, s.c.Root+s.path, 1) // and its parents
	}
	return err
}

// isOutdated reports whether a write was refused because something was written or deleted after we
// read it.
func isOutdated(err error) bool {
	return errors.Is(err, zk.ErrBadVersion) || errors.Is(err, zk.ErrNodeExists) || errors.Is(err, zk.ErrNoNode)
}

// fetch reads the node with the marks. It returns the zero node if there is none.
func (s *Slot) fetch(ctx context.Context, sess *session.Session) (session.Node, error) {
	n, err := session.UpToDate(ctx, s.c.Requests, sess, func() (session.Node, error) { return s.c.Requests.Get(ctx, sess, s.node()) })
	if errors.Is(err, zk.ErrNoNode) {
		return session.Node{}, nil
	}
	return n, err
}

func (s *Slot) parse(n session.Node) (marks, error) {
	if n.Stat == nil {
		return marks{}, nil
	}
	m, err := parseMarks(n.Data)
	if err != nil {
		return m, fmt.Errorf("%w: %s does not contain slots: %.40q", zklock.ErrMismatch, node.Printable(s.node()), n.Data)
	}
	return m, nil
}

func (s *Slot) mark(ctx context.Context, h *zklock.Hold) error {
	unknown := false // whether the outcome of an attempt is unknown
	var p session.Pace
	for {
		sent, err := s.tryMark(ctx, h)
		unknown = unknown || sent
		ended := ctx.Err() != nil // before the look at the hold, whose end may also end ctx
		switch {
		case err == nil || outcome.IsOfSlot(err) || errors.Is(err, zklock.ErrMismatch) || errors.Is(err, zklock.ErrInvalid):
			return err
		case h.Context().Err() != nil:
			return s.settle(ctx, h, unknown)
		case ended && unknown:
			return errors.Join(zklock.ErrUncertain, outcome.Beside(ctx, err))
		case isOutdated(err):
		case outcome.IsRefusal(err) || ended:
			return err
		}
		p.Next(ctx) // if the context ends, the next attempt returns the error
	}
}

// tryMark writes the mark unless it exists. unknown reports whether the mark may have been written
// despite an error.
func (s *Slot) tryMark(ctx context.Context, h *zklock.Hold) (unknown bool, err error) {
	if err := h.Check(); err != nil {
		return false, err
	}
	callCtx, stop := session.Either(ctx, h.Context())
	defer stop()
	held := bridge.HoldOf(h)
	sess := held.Nodes[0].Sess
	n, m, found, err := s.read(callCtx, sess)
	switch {
	case errors.Is(err, ErrDone) && found.By == h.Token():
		return false, nil
	case err != nil:
		return false, err
	}
	own := markOf(s.slotKey, h.Token(), s.c.Identity, time.Now())
	guard := h.Guard()
	ops := append(guard, s.write(m.with(s.slotKey, own, s.latest(n)), n))
	if err := node.CheckSize(ops); err != nil {
		return false, err
	}
	answers, err := s.c.Requests.Multi(callCtx, sess, ops...)
	for i := range min(len(guard), len(answers)) {
		if errors.Is(answers[i].Error, zk.ErrNoNode) {
			held.Nodes[i].MarkGone(nil)
			return false, context.Cause(h.Context())
		}
	}
	return err != nil && !outcome.WasNotDone(err), err
}

// settle finds out, after h has ended, whether an attempt with an unknown outcome was carried out.
// It waits until one of h's nodes is gone, because no attempt can be carried out after that. The
// others can remain if the lock was entered again.
func (s *Slot) settle(ctx context.Context, h *zklock.Hold, unknown bool) error {
	lost := context.Cause(h.Context())
	if !unknown {
		return lost
	}
	var p session.Pace
	for {
		err := s.checkNodes(ctx, bridge.HoldOf(h).Nodes)
		if errors.Is(err, zk.ErrNoNode) {
			found, err := s.look(ctx)
			switch {
			case errors.Is(err, ErrDone) && found.By == h.Token():
				return nil
			case err != nil && !outcome.IsOfSlot(err):
				return errors.Join(zklock.ErrUncertain, lost, err)
			}
			return lost
		}
		if err == nil {
			err = p.Next(ctx)
		}
		if err != nil {
			return errors.Join(zklock.ErrUncertain, lost, err)
		}
	}
}

// checkNodes returns zk.ErrNoNode if one of the nodes is gone.
func (s *Slot) checkNodes(ctx context.Context, nodes []*session.OwnNode) error {
	for _, n := range nodes {
		_, err := session.Persist(ctx, s.c.Requests, func(sess *session.Session) (*zk.Stat, error) { return s.c.Requests.Stat(ctx, sess, n.Path()) })
		if err != nil {
			return err
		}
	}
	return nil
}

// write returns the operation that replaces the data of n with m.
func (s *Slot) write(m marks, n session.Node) any {
	if n.Stat == nil {
		return &zk.CreateRequest{Path: s.node(), Data: m.encode(), Acl: s.c.Directories.ACL}
	}
	return &zk.SetDataRequest{Path: s.node(), Data: m.encode(), Version: n.Stat.Version}
}

func (s *Slot) node() string { return s.c.Root + s.path + node.MarksSuffix }

func (s *Slot) check() error {
	if s.err != nil {
		return s.err
	}
	return node.CheckPath(s.path)
}

func (s *Slot) checkHold(h *zklock.Hold) error {
	if err := s.check(); err != nil {
		return err
	}
	switch held := bridge.HoldOf(h); {
	case h.Path() == "": // the path of a nil or zero Hold
		return zklock.ErrNotHeld
	case held.Engine != s.c.Engine || h.TokenOf(s.path) < 0:
		return fmt.Errorf("%w: a hold of %s does not guard this slot", zklock.ErrInvalid, h.Path())
	}
	return nil
}

func (s *Slot) failure(op string, err error) error {
	return fmt.Errorf("zklock: %s slot %s of %s: %w", op, node.Printable(s.name), node.Printable(s.path), err)
}
