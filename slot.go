package zklock

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/door"
)

// slot is a slots.Slot, and does what is documented there.
type slot struct {
	c      *Client
	path   string
	period string // of a slot that has a time, else empty
	name   string
	err    error // what is wrong with it
}

// The bounds of what that node stores.
const (
	maxSlotName = 128 // bytes
	maxPeriods  = 32
	maxNamed    = 128
	maxTimed    = 16
)

// slotTime is RFC 3339 at a fixed width: texts sort as their times do.
const slotTime = "2006-01-02T15:04:05.000000000Z"

// newSlot returns the slot with a name, under the lock at path.
func newSlot(c *Client, path, name string) *slot {
	s := &slot{c: c, path: path, name: name}
	switch {
	case name == "" || len(name) > maxSlotName:
		s.err = fmt.Errorf("%w: a slot's name has 1 to %d bytes, not %d", ErrInvalid, maxSlotName, len(name))
	case !utf8.ValidString(name):
		s.err = fmt.Errorf("%w: the slot's name %q is not UTF-8", ErrInvalid, name)
	}
	return s
}

// newSlotAt returns the slot that the time at falls into.
func newSlotAt(c *Client, path string, at time.Time, period time.Duration) *slot {
	s := &slot{c: c, path: path, period: period.String(), name: at.Truncate(period).UTC().Format(slotTime)}
	switch year := at.UTC().Year(); {
	case period <= 0:
		s.err = fmt.Errorf("%w: slots of %v", ErrInvalid, period)
	case year < 1 || year > 9999:
		s.err = fmt.Errorf("%w: a slot in the year %d", ErrInvalid, year)
	}
	return s
}

func (s *slot) String() string { return s.name }

func (s *slot) Do(ctx context.Context, fn func(ctx context.Context) error) error {
	if done, err := s.Done(ctx); done || err != nil {
		return cmp.Or(err, s.failure("do", door.ErrDone))
	}
	return s.c.Mutex(s.path).Do(ctx, func(ctx context.Context) error {
		if done, err := s.Done(ctx); done || err != nil {
			return cmp.Or(err, s.failure("do", door.ErrDone))
		}
		if err := fn(ctx); err != nil {
			return err
		}
		return s.Mark(ctx, HoldOf(ctx))
	})
}

func (s *slot) Done(ctx context.Context) (bool, error) {
	if err := s.check(); err != nil {
		return false, s.failure("look at", err)
	}
	inside, stop := either(ctx, s.c.life)
	defer stop()
	_, done, err := s.look(inside)
	if err != nil {
		return false, s.failure("look at", s.c.explain(inside, err))
	}
	return done, nil
}

// look reads the slot's mark as the quorum knows it, under whatever session the client has.
func (s *slot) look(ctx context.Context) (by int64, done bool, err error) {
	n, err := persist(ctx, s.c.requests, func(sess *session) (node, error) { return s.fetch(ctx, sess) })
	if err != nil {
		return 0, false, err
	}
	m, err := s.parse(n)
	if err != nil {
		return 0, false, err
	}
	by, done = m.find(s)
	return by, done, nil
}

// fetch reads the node with the marks. It returns the zero node if there is none.
func (s *slot) fetch(ctx context.Context, sess *session) (node, error) {
	n, err := upToDate(ctx, s.c.requests, sess, func() (node, error) { return s.c.get(ctx, sess, s.node()) })
	if errors.Is(err, zk.ErrNoNode) {
		return node{}, nil
	}
	return n, err
}

func (s *slot) parse(n node) (marks, error) {
	var m marks
	if n.stat == nil {
		return m, nil
	}
	if err := json.Unmarshal(n.data, &m); err != nil {
		return m, fmt.Errorf("%w: %s does not contain slots: %.40q", ErrInvalid, printable(s.node()), n.data)
	}
	return m, nil
}

func (s *slot) Mark(ctx context.Context, h *Hold) error {
	if err := s.checkHold(h); err != nil {
		return s.failure("mark", err)
	}
	inside, stop := either(ctx, s.c.life)
	defer stop()
	err := s.mark(inside, h)
	switch {
	case err == nil:
		return nil
	case !errors.Is(err, ErrUncertain) && !errors.Is(err, door.ErrDone) && !errors.Is(err, ErrLost):
		err = s.c.explain(inside, err)
	}
	return s.failure("mark", err)
}

func (s *slot) mark(ctx context.Context, h *Hold) error {
	unknown := false // an attempt has no outcome yet
	var p pace
	for {
		sent, err := s.tryMark(ctx, h)
		unknown = unknown || sent
		switch {
		case err == nil || errors.Is(err, door.ErrDone) || errors.Is(err, ErrInvalid):
			return err
		case h.ctx.Err() != nil:
			return s.settle(ctx, h, unknown)
		case ctx.Err() != nil && unknown:
			return errors.Join(ErrUncertain, err)
		case errors.Is(err, zk.ErrBadVersion), errors.Is(err, zk.ErrNodeExists), errors.Is(err, zk.ErrNoNode): // something was written or deleted since we looked
		case isRefusal(err) || ctx.Err() != nil:
			return err
		}
		if err := p.next(ctx); err != nil && !unknown {
			return err
		}
	}
}

// tryMark writes the mark unless it is there. unknown reports whether the mark may have been
// written in spite of an error.
func (s *slot) tryMark(ctx context.Context, h *Hold) (unknown bool, err error) {
	if err := h.Check(); err != nil {
		return false, err
	}
	inside, stop := either(ctx, h.ctx)
	defer stop()
	sess := h.of.nodes[0].sess
	n, err := s.fetch(inside, sess)
	if err != nil {
		return false, err
	}
	m, err := s.parse(n)
	if err != nil {
		return false, err
	}
	if by, done := m.find(s); done {
		if by != h.Token() {
			err = door.ErrDone
		}
		return false, err
	}
	guard := h.Guard()
	answers, err := s.c.multi(inside, sess, append(guard, s.write(m.with(s, h.Token()), n))...)
	for i := range min(len(guard), len(answers)) {
		if errors.Is(answers[i].Error, zk.ErrNoNode) {
			h.of.lose(fmt.Errorf("%w: node %s was deleted", ErrLost, h.of.nodes[i].path()))
			return false, context.Cause(h.ctx)
		}
	}
	return err != nil && !wasNotSent(err), err
}

// settle finds out, when h has ended, whether an attempt of unknown outcome was carried out:
// it waits until the node of h is gone, because none can be carried out after that.
func (s *slot) settle(ctx context.Context, h *Hold, unknown bool) error {
	lost := context.Cause(h.ctx)
	if !unknown {
		return lost
	}
	var p pace
	for {
		_, err := persist(ctx, s.c.requests, func(sess *session) (*zk.Stat, error) { return s.c.stat(ctx, sess, h.Node()) })
		if errors.Is(err, zk.ErrNoNode) {
			by, done, err := s.look(ctx)
			switch {
			case err != nil:
				return errors.Join(ErrUncertain, lost, err)
			case done && by == h.Token():
				return nil
			}
			return lost
		}
		if err == nil {
			err = p.next(ctx)
		}
		if err != nil {
			return errors.Join(ErrUncertain, lost, err)
		}
	}
}

// write returns the operation that replaces n by m.
func (s *slot) write(m marks, n node) any {
	data, _ := json.Marshal(m) // cannot fail
	if n.stat == nil {
		return &zk.CreateRequest{Path: s.node(), Data: data, Acl: s.c.acl}
	}
	return &zk.SetDataRequest{Path: s.node(), Data: data, Version: n.stat.Version}
}

func (s *slot) node() string { return s.c.root + s.path + marksSuffix }

func (s *slot) check() error {
	if s.err != nil {
		return s.err
	}
	return checkPath(s.path)
}

func (s *slot) checkHold(h *Hold) error {
	if err := s.check(); err != nil {
		return err
	}
	switch {
	case h == nil:
		return ErrNotHeld
	case h.of.unfenced:
		return errUnfenced
	case h.of.c != s.c.engine || h.of.path != s.path && !slices.ContainsFunc(h.of.locks, func(lock *holding) bool { return lock.path == s.path }):
		return fmt.Errorf("%w: a hold of %s does not guard this slot", ErrInvalid, h.of.path)
	}
	return nil
}

func (s *slot) failure(op string, err error) error {
	return fmt.Errorf("zklock: %s slot %s of %s: %w", op, printable(s.name), printable(s.path), err)
}

// marks is the content of the node beside a lock. Slots without a time have the period "".
type marks struct {
	Periods []period `json:"periods"` // in the order of their last writing
}

type period struct {
	Every string `json:"every,omitempty"`
	Done  []mark `json:"done"` // in the order of their times, or without a time in that of marking
}

type mark struct {
	Slot string `json:"slot"`
	By   int64  `json:"by"` // the token of the hold that has marked it
}

// find reports whether s was done, and the token of the hold that marked it if the marks
// still have it.
func (m marks) find(s *slot) (by int64, done bool) {
	i := slices.IndexFunc(m.Periods, func(p period) bool { return p.Every == s.period })
	if i < 0 {
		return 0, false
	}
	p := m.Periods[i]
	if i := slices.IndexFunc(p.Done, func(d mark) bool { return d.Slot == s.name }); i >= 0 {
		return p.Done[i].By, true
	}
	return 0, s.period != "" && len(p.Done) >= maxTimed && s.name < p.Done[0].Slot
}

// with returns the marks with that of s added, and the oldest removed that exceed the bounds.
func (m marks) with(s *slot, by int64) marks {
	p := period{Every: s.period}
	var others []period
	for _, o := range m.Periods {
		if o.Every == s.period {
			p = o
			continue
		}
		others = append(others, o)
	}
	p.Done = append(slices.Clone(p.Done), mark{s.name, by})
	limit := maxNamed
	if s.period != "" {
		limit = maxTimed
		slices.SortFunc(p.Done, func(a, b mark) int { return strings.Compare(a.Slot, b.Slot) })
	}
	p.Done = last(p.Done, limit)
	return marks{append(last(others, maxPeriods-1), p)}
}

// last returns the last n of all.
func last[T any](all []T, n int) []T { return all[max(0, len(all)-n):] }
