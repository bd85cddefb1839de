// SPDX-License-Identifier: Apache-2.0

package slots

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/session"
)

// Mark is the record that a slot was done.
type Mark struct {
	// Period is the slot's period, "due" for a due time, and empty for a name.
	Period string
	Slot   string    // the slot's name, or the time at which it begins
	At     time.Time // when it was marked, by the clock of the client that did; zero if unknown
	By     string    // the client that marked it; empty if unknown
}

// Marks returns the marks at path: names in the order in which they were marked, slots of a period in
// the order of their times.
func Marks(ctx context.Context, c *zklock.Client, path string) ([]Mark, error) {
	s := Named(c, path, "marks")
	m, err := s.everything(ctx)
	if err != nil {
		return nil, fmt.Errorf("zklock: read the slots of %s: %w", node.Printable(path), err)
	}
	return m.list(), nil
}

// Prune forgets the names at path that were marked before a time, so that others have room, and returns
// their marks. It also forgets a period or the due times if all their marks are older than that. The
// work of a slot that was forgotten is done again when a client uses the slot again: the time must be so
// long ago that no client does. Slots that are marked at the same time keep their marks.
//
// If ctx ends first, some of the marks may have been forgotten.
func Prune(ctx context.Context, c *zklock.Client, path string, before time.Time) ([]Mark, error) {
	s := Named(c, path, "prune")
	var forgotten []Mark
	err := s.check()
	if err == nil {
		callCtx := s.c.Requests.CallContext(ctx)
		defer callCtx.Cancel()
		_, err = session.Persist(callCtx, s.c.Requests, func(sess *session.Session) (struct{}, error) {
			return struct{}{}, s.prune(callCtx, sess, before, &forgotten)
		})
		if err != nil {
			err = s.c.Requests.Explain(callCtx, err)
		}
	}
	if err != nil {
		return forgotten, fmt.Errorf("zklock: prune the slots of %s: %w", node.Printable(path), err)
	}
	return forgotten, nil
}

// prune writes the marks without those from before a time. It adds these to forgotten.
func (s *Slot) prune(ctx context.Context, sess *session.Session, before time.Time, forgotten *[]Mark) error {
	for {
		n, err := s.fetch(ctx, sess)
		if err != nil || n.Stat == nil {
			return err
		}
		m, err := s.parse(n)
		if err != nil {
			return err
		}
		kept, old := m.since(before)
		if len(old) == 0 {
			return nil
		}
		// The reply to an earlier attempt may have been lost: then its marks are no longer there.
		*forgotten = append(*forgotten, slices.DeleteFunc(old, func(m Mark) bool { return slices.Contains(*forgotten, m) })...)
		_, err = s.c.Requests.Set(ctx, sess, s.node(), kept.encode(), n.Stat.Version)
		if !errors.Is(err, zk.ErrBadVersion) {
			return err
		}
	}
}

// since returns the marks without the names that were marked before a time, and without the periods all
// of whose marks are older.
func (m marks) since(before time.Time) (kept marks, old []Mark) {
	isOld := func(d mark) bool { return d.At < before.UnixMilli() }
	for _, p := range m.Periods {
		gone := isOld
		if p.Every != "" && slices.ContainsFunc(p.Done, func(d mark) bool { return !isOld(d) }) {
			gone = func(mark) bool { return false } // without its oldest mark, older slots would be open
		}
		rest := period{Every: p.Every}
		for _, d := range p.Done {
			if gone(d) {
				old = append(old, d.exported(p.Every))
			} else {
				rest.Done = append(rest.Done, d)
			}
		}
		if len(rest.Done) > 0 {
			kept.Periods = append(kept.Periods, rest)
		}
	}
	return kept, old
}

// everything returns all marks, as known to the quorum.
func (s *Slot) everything(ctx context.Context) (marks, error) {
	if err := s.check(); err != nil {
		return marks{}, err
	}
	callCtx := s.c.Requests.CallContext(ctx)
	defer callCtx.Cancel()
	m, err := session.Persist(callCtx, s.c.Requests, func(sess *session.Session) (marks, error) {
		n, err := s.fetch(callCtx, sess)
		if err != nil {
			return marks{}, err
		}
		return s.parse(n)
	})
	if err != nil {
		err = s.c.Requests.Explain(callCtx, err)
	}
	return m, err
}

func (m marks) list() (all []Mark) {
	for _, p := range m.Periods {
		for _, d := range p.Done {
			all = append(all, d.exported(p.Every))
		}
	}
	return all
}

func (m mark) exported(every string) Mark {
	e := Mark{Period: every, Slot: m.Slot, By: m.Who}
	if m.At != 0 {
		e.At = time.UnixMilli(m.At)
	}
	return e
}
