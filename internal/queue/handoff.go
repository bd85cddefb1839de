package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/session"
)

// A waiter that wants the lock for itself looks ahead: of [..., G, P] before it, it watches G first. When G leaves, P
// holds the lock or is next. While that lasts the waiter sets the watch on P. From the note of a holder it finds out
// that all before G have left as well. So when P leaves, its waiter knows that it is first, without asking anything.
// Each release wakes two waiters, the next and the one after it, and each of them watches one foreign node.
//
// All that a waiter learns stays true: a node that has left never returns, because names are
// unique, and a note was written by a holder, which had nobody before it. So answers that are
// old, or of a server that lags, cost time and never let anybody in.
//
// Readers do not look ahead: all those between two writers would wake twice.

// wait waits until no contender ahead stands in our way. It needs no further request if there
// was one contender ahead when we looked.
func (t *place) wait(ctx context.Context) error {
	defer t.hide(&t.c.waits)
	var p session.Pace
	for {
		var err error
		switch {
		case len(t.ahead) > 0:
			err = t.awaitLeave(ctx)
		case t.unsure || t.beyond > 0:
			err = t.findPlace(ctx, nil)
		default:
			return nil
		}
		if outcome.IsTransient(err) && ctx.Err() == nil {
			t.c.Link.MetTrouble(err)
			err = p.Next(ctx)
		}
		if err != nil {
			return t.Because(err)
		}
	}
}

// awaitLeave waits until the nearest in our way leaves, or looks ahead and waits for the one before
// it. It strikes off all that cannot exist any more.
func (t *place) awaitLeave(ctx context.Context) error {
	others := t.others()
	if others == 0 {
		t.watchSelf(0) // next in line: what the grant needs is made ready now
	}
	if others <= 1 || !t.recipe.exclusive() {
		t.c.Keep(&t.OwnNode) // or the grant would wait for the quorum
	}
	i := t.watched()
	t.show(&t.c.waits, &t.OwnNode, others+1, t.ahead[i].Name)
	saw, err := t.watchAhead(ctx, t.ahead[i].Name)
	if err != nil || saw == session.NodeChanged {
		return err
	}
	if others == 0 {
		t.strike(i)
		return nil
	}
	return t.catchUp(ctx, i)
}

// watched returns the index of the contender to watch while we wait for the nearest.
func (t *place) watched() int {
	nearest := len(t.ahead) - 1
	if nearest > 0 && t.recipe.exclusive() {
		return nearest - 1
	}
	return nearest
}

// watchAhead waits until the node of that name changes or goes. A node whose data lets us pass counts as
// gone.
func (t *place) watchAhead(ctx context.Context, name string) (session.Change, error) {
	w, err := t.look(ctx, name)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return session.NodeGone, nil
	case err != nil:
		t.unwatch()
		return 0, err
	case t.recipe.Passes != nil && t.recipe.Passes(w.Data):
		return session.NodeGone, nil
	}
	saw, err := w.Await(ctx, t.goneIfSeen())
	t.unwatch()
	if err != nil && ctx.Err() != nil {
		err = outcome.Behind(err, t.whom(name, w.Data))
	}
	return saw, err
}

// whom says whom a wait was for that watched the node of that name, whose data was that: by its owner, or a contender of
// another library by its node.
func (t *place) whom(name string, data []byte) string {
	whom := name
	if o, ok := node.ReadOwner(data); ok {
		whom = o.String()
	}
	if others := t.others(); others > 0 {
		whom += fmt.Sprintf(" and %d more", others)
	}
	return node.Printable(whom)
}

// watchOf returns the watch on the node of that name, and sets one if there is none. The watch may have fired
// since it was set.
func (t *place) watchOf(ctx context.Context, name string) (*session.NodeWatch, error) {
	if t.standing == nil || !t.standing.IsOn(name) {
		w, err := t.c.BeginWatch(ctx, t.Sess, t.Dir+"/"+name)
		if err != nil {
			return nil, err
		}
		t.watchOn(w)
	}
	return t.standing, nil
}

// look waits until a server has answered for the watch on the node of that name.
func (t *place) look(ctx context.Context, name string) (*session.NodeWatch, error) {
	w, err := t.watchOf(ctx, name)
	if err == nil {
		err = w.Answered(ctx, t.Sess)
	}
	return w, err
}

// catchUp finds out, after the i-th ahead of us has left, which of the others are still there.
// The one behind it is what we wait for next. If a note says so, all before it have left too.
// Otherwise catchUp looks at the nearest of those, and lists the directory if that has left.
//
// Requests that can go out together do. The note is read last, so that it names also a holder
// that leaves shortly before.
func (t *place) catchUp(ctx context.Context, i int) error {
	left, before, behind := t.ahead[i], slices.Clone(t.ahead[:i]), slices.Clone(t.ahead[i+1:])
	t.watchSelf(0)
	t.c.Keep(&t.OwnNode)
	next, err := t.beginNext(ctx, behind)
	if err != nil {
		return err
	}
	var lone func(context.Context) error
	if t.beyond == 0 && len(before) == 1 && next != nil {
		if lone, err = t.c.BeginStat(ctx, t.Sess, t.Dir+"/"+before[0].Name); err != nil {
			return err
		}
	}
	if err := t.readNote(ctx, i); err != nil {
		return err
	}
	t.drop(left)
	if lone != nil && slices.Contains(t.ahead, before[0]) {
		if err := t.unlessLeft(before[0], lone(ctx)); err != nil {
			return err
		}
	}
	if next != nil {
		if err := t.unlessLeft(behind[0], next.Answered(ctx, t.Sess)); err != nil {
			return err
		}
	}
	return t.lookFurther(ctx, t.before(behind))
}

// unlessLeft takes the error of a look at e's node. If the node is missing, it strikes e off and
// returns nil.
func (t *place) unlessLeft(e node.Entry, err error) error {
	if errors.Is(err, zk.ErrNoNode) {
		t.drop(e)
		return nil
	}
	return err
}

// before returns how many contenders are ahead of the first of behind.
func (t *place) before(behind []node.Entry) int {
	if len(behind) > 0 {
		if i := slices.Index(t.ahead, behind[0]); i >= 0 {
			return i
		}
	}
	return len(t.ahead)
}

// beginNext begins to set the watch on the first of behind, if there is one.
func (t *place) beginNext(ctx context.Context, behind []node.Entry) (*session.NodeWatch, error) {
	if len(behind) == 0 {
		return nil, nil
	}
	return t.watchOf(ctx, behind[0].Name)
}

// lookFurther finds out whether the first n ahead of us are still there, and those beyond. If none
// is left that it knows by name, wait goes on.
func (t *place) lookFurther(ctx context.Context, n int) error {
	if n > 0 {
		nearest := t.ahead[t.watched()]
		_, err := t.look(ctx, nearest.Name)
		if !errors.Is(err, zk.ErrNoNode) {
			return err // it is there: the caller waits for it
		}
		t.drop(nearest)
		n--
	}
	if len(t.ahead) == 0 || t.beyond+n == 0 {
		return nil
	}
	return t.findPlace(ctx, nil)
}
