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
func (wa *waiter) wait(ctx context.Context) error {
	var p session.Pace
	for {
		var err error
		switch {
		case len(wa.nearest.ahead) > 0:
			err = wa.awaitLeave(ctx)
		case wa.nearest.unsure || wa.nearest.beyond > 0:
			err = wa.findPosition(ctx, nil)
		default:
			wa.becomeFirst()
			return nil
		}
		err = wa.engine.pauseAfter(ctx, &p, err)
		if err != nil {
			return wa.Because(err)
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
func (wa *waiter) awaitLeave(ctx context.Context) error {
	others := wa.nearest.others()
	b, err := wa.engine.Requests.Bundle(ctx, wa.Sess)
	if err != nil {
		return err
	}
	if others == 0 {
		wa.watchSelfWith(b) // next in line: prepare what grant needs
	}
	if others <= 1 || !wa.recipe.exclusive() {
		wa.engine.Heart.Keep(&wa.OwnNode) // otherwise grant would have to wait for the quorum
	}
	i := wa.toWatch()
	wa.waited = true
	wa.watchWith(b, &wa.nearest.ahead[i])
	err = b.Send(ctx)
	if err != nil {
		return err
	}
	saw, err := wa.awaitChange(ctx, wa.nearest.ahead[i].Name)
	if err != nil || saw == session.Changed {
		return err
	}
	if others == 0 {
		wa.nearest.removeAt(i)
		return nil
	}
	return wa.catchUp(ctx, i)
}

// toWatch returns the index in ahead of the contender to watch.
func (wa *waiter) toWatch() int {
	nearest := len(wa.nearest.ahead) - 1
	if nearest > 0 && wa.recipe.exclusive() {
		return nearest - 1
	}
	return nearest
}

// awaitChange waits until the node with that name, which we watch, changes or is deleted. A node
// whose data shows that it no longer blocks us counts as gone.
func (wa *waiter) awaitChange(ctx context.Context, name string) (session.State, error) {
	wa.setReason(blockingContender{others: wa.nearest.others(), name: name})
	v, err := wa.seen(ctx)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return session.Gone, nil
	case err != nil:
		wa.watched = nil
		return 0, err
	case wa.recipe.Passes != nil && wa.recipe.Passes(v.Data):
		return session.Gone, nil
	}
	wa.setReason(blockingContender{wa.nearest.others(), name, v.Data})
	saw, err := v.Await(ctx, wa.goneIfSeen())
	wa.watched = nil
	return saw, err
}

// watchWith watches e's node, unless we do already. If the watch must be requested, the request is
// added to b. The watch may already have fired.
func (wa *waiter) watchWith(b *session.Bundle, e *node.Entry) {
	if wa.watched == nil || !wa.watched.IsOn(e.Name) {
		path := wa.Dir + "/" + e.Name
		e.Name = path[len(wa.Dir)+1:] // the watch keeps the path: a waiter needs the name only once
		wa.watched = wa.engine.Watches.AddTo(b, path)
	}
}

// seen waits until a server has replied to the request for the watch, and returns what it shows.
func (wa *waiter) seen(ctx context.Context) (v *session.View, err error) {
	v, err = wa.watched.Answered(ctx)
	wa.watched = v
	return v, err
}

// catchUp is called after ahead[i] has left; it finds out which of the other contenders still
// exist. The contender right behind ahead[i] is the next to wait for. If a note says so, all
// contenders before ahead[i] have left too. Otherwise catchUp checks the nearest of those, and
// lists the directory if that one has left.
//
// Independent requests are sent together. The note is read last, so that it includes a holder that
// left shortly before.
func (wa *waiter) catchUp(ctx context.Context, i int) error {
	left, before, behind := wa.nearest.ahead[i], slices.Clone(wa.nearest.ahead[:i]), slices.Clone(wa.nearest.ahead[i+1:])
	b, err := wa.engine.Requests.Bundle(ctx, wa.Sess)
	if err != nil {
		return err
	}
	wa.watchSelfWith(b)
	wa.engine.Heart.Keep(&wa.OwnNode)
	if len(behind) > 0 {
		wa.watchWith(b, &behind[0])
	}
	var lone func(context.Context) (*zk.Stat, error)
	if wa.nearest.beyond == 0 && len(before) == 1 && len(behind) > 0 {
		lone = b.Stat(wa.Dir + "/" + before[0].Name)
	}
	note := wa.noteWith(b)
	err = b.Send(ctx)
	if err != nil {
		return err
	}
	err = wa.readNote(ctx, note, i)
	if err != nil {
		return err
	}
	wa.nearest.remove(left)
	if lone != nil && slices.Contains(wa.nearest.ahead, before[0]) {
		_, err := lone(ctx)
		if err := wa.unlessLeft(before[0], err); err != nil {
			return err
		}
	}
	if len(behind) > 0 {
		_, err := wa.watched.Answered(ctx)
		if err := wa.unlessLeft(behind[0], err); err != nil {
			return err
		}
	}
	return wa.lookFurther(ctx, wa.before(behind))
}

// unlessLeft handles the error of a read of e's node. If the node is missing, it drops e and
// returns nil.
func (wa *waiter) unlessLeft(e node.Entry, err error) error {
	if errors.Is(err, zk.ErrNoNode) {
		wa.nearest.remove(e)
		return nil
	}
	return err
}

// before returns how many contenders are ahead of the first entry of behind.
func (wa *waiter) before(behind []node.Entry) int {
	if len(behind) > 0 {
		if i := slices.Index(wa.nearest.ahead, behind[0]); i >= 0 {
			return i
		}
	}
	return len(wa.nearest.ahead)
}

// look watches e's node, unless we do already, and waits until a server has replied to the request.
func (wa *waiter) look(ctx context.Context, e *node.Entry) error {
	b, err := wa.engine.Requests.Bundle(ctx, wa.Sess)
	if err != nil {
		return err
	}
	wa.watchWith(b, e)
	err = b.Send(ctx)
	if err == nil {
		_, err = wa.seen(ctx)
	}
	return err
}

// lookFurther checks whether the first n contenders in ahead, and those counted in beyond, still
// exist. If no contender known by name is left, it returns and wait continues.
func (wa *waiter) lookFurther(ctx context.Context, n int) error {
	if n > 0 {
		nearest := &wa.nearest.ahead[wa.toWatch()]
		err := wa.look(ctx, nearest)
		if !errors.Is(err, zk.ErrNoNode) {
			return err // it exists: the caller waits for it
		}
		wa.nearest.remove(*nearest)
		n--
	}
	if len(wa.nearest.ahead) == 0 || wa.nearest.beyond+n == 0 {
		return nil
	}
	return wa.findPosition(ctx, nil)
}
