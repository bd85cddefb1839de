// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/session"
)

// A waiter for an exclusive lock looks ahead: if [..., G, P] are before it, it watches G first.
// When G leaves, P holds the lock or is next, and meanwhile the waiter sets its watch on P. From a
// holder's note it learns that all contenders before G have left as well. So when P leaves, the
// waiter knows without another request that it is first. Each release wakes two waiters, the next
// and the one after it, and each of them watches one other node.
//
// Everything that a waiter learns stays true: a node that has left never returns, because names are
// unique, and a note was written by a holder, which had no contender before it. So stale replies,
// including those of lagging servers, cost time but never grant a lock wrongly.
//
// Readers do not look ahead: all readers between two writers would wake twice.

// wait waits until no contender ahead blocks us. It sends no further request if there was only one
// contender ahead in the last listing.
func (pl *place) wait(ctx context.Context) error {
	var p session.Pace
	for {
		var err error
		switch {
		case len(pl.nearest.ahead) > 0:
			err = pl.awaitLeave(ctx)
		case pl.nearest.unsure || pl.nearest.beyond > 0:
			err = pl.findPosition(ctx, nil)
		default:
			pl.becomeFirst()
			return nil
		}
		err = pl.engine.pauseAfter(ctx, &p, err)
		if err != nil {
			return pl.Because(err)
		}
	}
}

// pauseAfter pauses if err is a transient error, and then returns nil. Without one, the next pause is
// short again: a long wait may have many errors that do not follow each other.
func (en *Engine) pauseAfter(ctx context.Context, p *session.Pace, err error) error {
	if !outcome.IsTransient(err) || ctx.Err() != nil {
		*p = session.Pace{}
		return err
	}
	en.Requests.Link.RecordError(err)
	return p.Next(ctx)
}

// awaitLeave waits until the nearest blocking contender leaves, or looks ahead and waits for the
// one before it. It removes all contenders that can no longer exist.
func (pl *place) awaitLeave(ctx context.Context) error {
	others := pl.nearest.others()
	b, err := pl.engine.Requests.Bundle(ctx, pl.Sess)
	if err != nil {
		return err
	}
	if others == 0 {
		pl.watchSelfWith(b) // next in line: prepare what grant needs
	}
	if others <= 1 || !pl.recipe.exclusive() {
		pl.engine.Heart.Keep(&pl.OwnNode) // otherwise grant would have to wait for the quorum
	}
	i := pl.toWatch()
	pl.waited = true
	pl.watchWith(b, &pl.nearest.ahead[i])
	err = b.Send(ctx)
	if err != nil {
		return err
	}
	saw, err := pl.awaitChange(ctx, pl.nearest.ahead[i].Name)
	if err != nil || saw == session.Changed {
		return err
	}
	if others == 0 {
		pl.nearest.removeAt(i)
		return nil
	}
	return pl.catchUp(ctx, i)
}

// toWatch returns the index in ahead of the contender to watch.
func (pl *place) toWatch() int {
	nearest := len(pl.nearest.ahead) - 1
	if nearest > 0 && pl.recipe.exclusive() {
		return nearest - 1
	}
	return nearest
}

// awaitChange waits until the node with that name, which we watch, changes or is deleted. A node
// whose data shows that it no longer blocks us counts as gone.
func (pl *place) awaitChange(ctx context.Context, name string) (session.State, error) {
	pl.setReason(blockingContender{others: pl.nearest.others(), name: name})
	v, err := pl.seen(ctx)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return session.Gone, nil
	case err != nil:
		pl.watched = nil
		return 0, err
	case pl.recipe.Passes != nil && pl.recipe.Passes(v.Data):
		return session.Gone, nil
	}
	pl.setReason(blockingContender{pl.nearest.others(), name, v.Data})
	saw, err := v.Await(ctx, pl.goneIfSeen())
	pl.watched = nil
	return saw, err
}

// watchWith watches e's node, unless we do already. If the watch must be requested, the request is
// added to b. The watch may already have fired.
func (pl *place) watchWith(b *session.Bundle, e *node.Entry) {
	if pl.watched == nil || !pl.watched.IsOn(e.Name) {
		path := pl.Dir + "/" + e.Name
		e.Name = path[len(pl.Dir)+1:] // the watch keeps the path: a waiter needs the name only once
		pl.watched = pl.engine.Watches.AddTo(b, path)
	}
}

// seen waits until a server has replied to the request for the watch, and returns what it shows.
func (pl *place) seen(ctx context.Context) (v *session.View, err error) {
	v, err = pl.watched.Answered(ctx)
	pl.watched = v
	return v, err
}

// catchUp is called after ahead[i] has left; it finds out which of the other contenders still
// exist. The contender right behind ahead[i] is the next to wait for. If a note says so, all
// contenders before ahead[i] have left too. Otherwise catchUp checks the nearest of those, and
// lists the directory if that one has left.
//
// Independent requests are sent together. The note is read last, so that it includes a holder that
// left shortly before.
func (pl *place) catchUp(ctx context.Context, i int) error {
	left, before, behind := pl.nearest.ahead[i], slices.Clone(pl.nearest.ahead[:i]), slices.Clone(pl.nearest.ahead[i+1:])
	b, err := pl.engine.Requests.Bundle(ctx, pl.Sess)
	if err != nil {
		return err
	}
	pl.watchSelfWith(b)
	pl.engine.Heart.Keep(&pl.OwnNode)
	if len(behind) > 0 {
		pl.watchWith(b, &behind[0])
	}
	var lone func(context.Context) (*zk.Stat, error)
	if pl.nearest.beyond == 0 && len(before) == 1 && len(behind) > 0 {
		lone = b.Stat(pl.Dir + "/" + before[0].Name)
	}
	note := pl.noteWith(b)
	err = b.Send(ctx)
	if err != nil {
		return err
	}
	err = pl.readNote(ctx, note, i)
	if err != nil {
		return err
	}
	pl.nearest.remove(left)
	if lone != nil && slices.Contains(pl.nearest.ahead, before[0]) {
		_, err := lone(ctx)
		if err := pl.unlessLeft(before[0], err); err != nil {
			return err
		}
	}
	if len(behind) > 0 {
		_, err := pl.watched.Answered(ctx)
		if err := pl.unlessLeft(behind[0], err); err != nil {
			return err
		}
	}
	return pl.lookFurther(ctx, pl.before(behind))
}

// unlessLeft handles the error of a read of e's node. If the node is missing, it drops e and
// returns nil.
func (pl *place) unlessLeft(e node.Entry, err error) error {
	if errors.Is(err, zk.ErrNoNode) {
		pl.nearest.remove(e)
		return nil
	}
	return err
}

// before returns how many contenders are ahead of the first entry of behind.
func (pl *place) before(behind []node.Entry) int {
	if len(behind) > 0 {
		if i := slices.Index(pl.nearest.ahead, behind[0]); i >= 0 {
			return i
		}
	}
	return len(pl.nearest.ahead)
}

// look watches e's node, unless we do already, and waits until a server has replied to the request.
func (pl *place) look(ctx context.Context, e *node.Entry) error {
	b, err := pl.engine.Requests.Bundle(ctx, pl.Sess)
	if err != nil {
		return err
	}
	pl.watchWith(b, e)
	err = b.Send(ctx)
	if err == nil {
		_, err = pl.seen(ctx)
	}
	return err
}

// lookFurther checks whether the first n contenders in ahead, and those counted in beyond, still
// exist. If no contender known by name is left, it returns and wait continues.
func (pl *place) lookFurther(ctx context.Context, n int) error {
	if n > 0 {
		nearest := &pl.nearest.ahead[pl.toWatch()]
		err := pl.look(ctx, nearest)
		if !errors.Is(err, zk.ErrNoNode) {
			return err // it exists: the caller waits for it
		}
		pl.nearest.remove(*nearest)
		n--
	}
	if len(pl.nearest.ahead) == 0 || pl.nearest.beyond+n == 0 {
		return nil
	}
	return pl.findPosition(ctx, nil)
}
