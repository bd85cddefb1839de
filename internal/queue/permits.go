// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/session"
)

// Permits are the permits of one semaphore.
type Permits struct {
	Engine *Engine
	Path   string    // as the caller specified it
	Dir    string    // the path in ZooKeeper
	Total  int       // how many permits there are, according to the caller; zero accepts the stored number
	Data   []byte    // the nodes' data
	Admit  Admission // of callers that wait
	latest int       // the number that was last read while an acquire waits; zero before
}

// There are two directories below the path, as in Curator. Each permit that is held is a node in
// one of them. Callers queue in the other one, as for a mutex, and create their nodes in the first
// when it is their turn. So only one waiter watches the holders, regardless of how many waiters and
// holders there are.
//
// The queue provides order and saves requests, but exclusion does not depend on it: a permit is
// granted only to a node that has fewer nodes before it than the limit.
var (
	PermitRecipe      = &Recipe{Name: "semaphore", Infix: node.LeaseInfix, Rule: node.AfterAll, below: true, limited: true}
	permitQueueRecipe = &Recipe{Name: "semaphore", Infix: node.LockInfix, Rule: node.AfterAll, below: true}
)

// Check returns an error if it is not possible to acquire k permits.
func (pe *Permits) Check(k int) error {
	switch {
	case pe.Total < 0 || pe.Total > node.MaxPermits:
		return fmt.Errorf("%w: semaphore with %d permits", outcome.ErrInvalid, pe.Total)
	case k < 1:
		return fmt.Errorf("%w: cannot acquire %d permits", outcome.ErrInvalid, k)
	case pe.Total > 0 && k > pe.Total:
		return fmt.Errorf("%w: %w: %d permits requested, semaphore has %d", outcome.ErrInvalid, outcome.ErrLimit, k, pe.Total)
	}
	if err := node.CheckPath(pe.Path); err != nil {
		return err
	}
	if size := pe.Engine.batchSize(PermitRecipe, pe.Dir+node.LeasesDir, pe.Data, k); size > node.MaxRequest {
		return fmt.Errorf("%w: %w: acquiring %d permits needs a request of %d bytes, limit is %d", outcome.ErrInvalid, outcome.ErrLimit, k, size, node.MaxRequest)
	}
	return nil
}

// Obtain waits until k permits are granted.
func (pe *Permits) Obtain(ctx context.Context, k int) (*Grant, error) {
	agreed := false // once is enough: the number may change while we wait
	pr := new(progress)
	return pe.Engine.inTurn(ctx, pe.Path, pr, func(sess *session.Session, revocation *session.Revocation) (*waiter, error) {
		if !agreed {
			if _, err := session.Again(ctx, func() (int, error) { return pe.agree(ctx, sess, k) }); err != nil {
				return nil, err
			}
			agreed = true
		}
		return pe.queue(ctx, sess, k, pr, revocation)
	})
}

// TryObtain acquires k permits if at least one permit per waiting caller would remain free.
func (pe *Permits) TryObtain(ctx context.Context, k int) (*Grant, error) {
	pr := new(progress)
	return pe.Engine.withoutWaiting(ctx, pr, func(sess *session.Session) (*waiter, error) { return pe.try(ctx, sess, k, pr) })
}

// queue makes one attempt to acquire permits in turn. If it returns an error and a waiter, the
// caller must discard the waiter.
func (pe *Permits) queue(ctx context.Context, sess *session.Session, k int, pr *progress, revocation *session.Revocation) (*waiter, error) {
	queueNode := pe.Engine.newWaiter(permitQueueRecipe, pe.Dir+node.PermitQueueDir, pe.Data, pr)
	queueNode.Revocation = revocation
	queueNode.removal.unread = 0 // only revocation requests write its data
	defer pe.Engine.remove(queueNode.contender)
	if err := queueNode.enter(ctx, sess); err != nil {
		return nil, queueNode.unlessEvicted(ctx, err)
	}
	if err := queueNode.observeQueued(pe.Path); err != nil {
		return nil, err
	}
	if err := pe.admit(ctx, sess, queueNode); err != nil {
		return nil, queueNode.unlessEvicted(ctx, err)
	}
	made, err := pe.takeInTurn(ctx, sess, k, queueNode)
	err = queueNode.unlessEvicted(ctx, err)
	if err != nil && made != nil {
		err = made.unlessEvicted(ctx, err)
		for x := range made.each {
			err = x.Because(err)
		}
	}
	return made, err
}

// admit returns the error of the admission, or nil if queueNode need not wait. Before admit refuses,
// it counts the callers ahead again, without one that has its permits: its acquire returns before its
// node in the queue is deleted.
func (pe *Permits) admit(ctx context.Context, sess *session.Session, queueNode *waiter) error {
	err := queueNode.admit(pe.Admit)
	if err == nil {
		return nil
	}
	waiting, readErr := pe.waitingAhead(ctx, sess, queueNode)
	switch {
	case readErr != nil:
		return readErr
	case waiting == 0:
		return nil
	}
	return pe.Admit(waiting)
}

// waitingAhead returns how many callers ahead of queueNode wait for permits. Only the first caller
// in the queue can have its permits, because all others wait for it.
func (pe *Permits) waitingAhead(ctx context.Context, sess *session.Session, queueNode *waiter) (int, error) {
	limit, err := session.Again(ctx, func() (int, error) { return pe.limit(ctx, sess) })
	if err != nil {
		return 0, err
	}
	permits, err := pe.Engine.Requests.ListAgain(ctx, sess, pe.Dir+node.LeasesDir)
	if outcome.IgnoreMissing(err) != nil {
		return 0, err
	}
	queue, err := pe.Engine.Requests.ListAgain(ctx, sess, queueNode.Dir)
	if err != nil {
		return 0, goneIfMissing(err)
	}
	own, _ := node.ParseEntry(queueNode.Name)
	ahead, err := queueNode.order(ctx, queue.Queue(), &own)
	if err != nil {
		return 0, err
	}
	held := permits.Queue().Entries
	if len(ahead) > 0 && len(held) <= limit && callersOf(held)[node.GroupOf(ahead[0].Name)] {
		return len(ahead) - 1, nil
	}
	return len(ahead), nil
}

// takeInTurn creates the permit nodes once queueNode is first. It checks that queueNode still
// exists after the wait: queueNode must exist whenever another node's departure lets us proceed.
func (pe *Permits) takeInTurn(ctx context.Context, sess *session.Session, k int, queueNode *waiter) (*waiter, error) {
	err := queueNode.wait(ctx)
	if err == nil {
		err = queueNode.isThere(ctx)
	}
	if err != nil {
		return nil, err
	}
	queueNode.removal.held = true // so that it writes a note for the next contender when it leaves
	return pe.take(ctx, sess, k, queueNode, queueNode.progress)
}

// try acquires permits that are free now.
func (pe *Permits) try(ctx context.Context, sess *session.Session, k int, pr *progress) (*waiter, error) {
	free, err := pe.looksFree(ctx, sess, k)
	if err != nil {
		return nil, err
	}
	if !free {
		return nil, outcome.ErrLocked
	}
	made, err := pe.take(ctx, sess, k, nil, pr)
	if err != nil {
		err = made.unlessEvicted(ctx, err)
		pe.Engine.discard(ctx, err, made)
		return nil, err
	}
	return made, nil
}

// looksFree reports whether k permits can be acquired so that at least one permit per waiting
// caller remains free.
func (pe *Permits) looksFree(ctx context.Context, sess *session.Session, k int) (bool, error) {
	limit, err := pe.agree(ctx, sess, k)
	if err != nil {
		return false, err
	}
	var contenders [2][]node.Entry
	for i, sub := range []string{node.LeasesDir, node.PermitQueueDir} {
		l, err := pe.Engine.Requests.List(ctx, sess, pe.Dir+sub)
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return false, err
		}
		contenders[i] = l.Queue().Entries
	}
	return used(contenders[0], contenders[1])+k <= limit, nil
}

// used returns how many permits are taken if each caller in the queue takes at least one. A caller
// that has created its permit nodes counts with these, and not with its node in the queue as well:
// an acquire returns before that node is deleted.
func used(permits, queue []node.Entry) int {
	counted := callersOf(permits)
	n := len(permits)
	for _, e := range queue {
		if !counted[node.GroupOf(e.Name)] {
			n++
		}
	}
	return n
}

// callersOf returns the groups of the callers that have created these permit nodes. Another
// library's node has no group.
func callersOf(permits []node.Entry) map[string]bool {
	groups := map[string]bool{}
	for _, e := range permits {
		groups[node.GroupOf(e.Name)] = true
	}
	delete(groups, "")
	return groups
}

// take creates k permit nodes in one transaction and acquires the permits. If there are not enough
// free permits, it waits at queueNode's position in the queue, or returns ErrLocked if queueNode is nil. If
// it returns an error, the caller must discard the waiter.
func (pe *Permits) take(ctx context.Context, sess *session.Session, k int, queueNode *waiter, pr *progress) (*waiter, error) {
	made := pe.Engine.newBatch(PermitRecipe, pe.Dir+node.LeasesDir, pe.Data, k, pr)
	if queueNode != nil {
		made.group = node.GroupOf(queueNode.Name)
		made.queueNode = &queueNode.member // otherwise a caller evicted in the meantime could still acquire
		for x := range made.each {
			x.Revocation = queueNode.Revocation // a revocation request for one of them applies to all
		}
	}
	returned := false
	defer made.abandonUnless(&returned)
	err := pe.takeAs(ctx, sess, made, queueNode)
	returned = true
	return made, err
}

// takeAs is take with the waiter of the permits' nodes.
func (pe *Permits) takeAs(ctx context.Context, sess *session.Session, made, queueNode *waiter) error {
	if err := made.enter(ctx, sess); err != nil {
		return err
	}
	_, fit, err := pe.fit(ctx, made)
	switch {
	case err != nil || fit:
	case queueNode == nil:
		err = outcome.ErrLocked
	default:
		err = pe.await(ctx, made, queueNode)
	}
	if err == nil {
		err = made.grant(ctx, queueNode)
	}
	return err
}

// fit returns the limit, and reports whether all permits of made fit within it, after those ahead
// of them.
func (pe *Permits) fit(ctx context.Context, made *waiter) (limit int, fits bool, err error) {
	k := len(made.members())
	enough := func(limit int) error { return atLeast(limit, k) }
	limit, err = session.Again(ctx, func() (int, error) { return pe.limitThat(ctx, made.Sess, enough) })
	return limit, made.nearest.seen+k <= limit, err
}

// atLeast returns ErrLimit if the limit is less than k.
func atLeast(limit, k int) error {
	if limit < k {
		return fmt.Errorf("%w: %d permits requested, semaphore has %d", outcome.ErrLimit, k, limit)
	}
	return nil
}

// await waits until made fits. Only this caller watches the holders: all other callers wait behind
// queueNode. queueNode must continue to exist too, because others use it to see that we wait, to send us
// revocation requests and to evict us.
func (pe *Permits) await(ctx context.Context, made, queueNode *waiter) error {
	queueNode.watchSelf()
	for x := range made.each {
		pe.Engine.Heart.Keep(&x.OwnNode)
		x.watchSelf()
	}
	inside, stop := untilGone(ctx, &queueNode.OwnNode)
	defer stop()
	err := pe.awaitRoom(inside, made, queueNode)
	if err != nil && errors.Is(context.Cause(inside), outcome.ErrGone) {
		return outcome.ErrGone // not the error that the cancellation of inside caused in a request
	}
	return err
}

// awaitRoom watches the holders until made fits.
func (pe *Permits) awaitRoom(ctx context.Context, made, queueNode *waiter) error {
	k := len(made.members())
	for {
		// The limit is read after the watch is set: Resize creates and deletes a node there
		// afterwards.
		v, err := session.Again(ctx, func() (*session.View, error) { return pe.Engine.Watches.WatchChildren(ctx, made.Sess, made.Dir) })
		if err == nil {
			l := session.NewListing(v.Names, v.Stat, time.Time{})
			err = made.findPosition(ctx, &l)
		}
		if err != nil {
			return goneIfMissing(err)
		}
		limit, fit, err := pe.fit(ctx, made)
		if fit || err != nil {
			queueNode.becomeFirst()
			return err
		}
		queueNode.setReason(missingPermits{k, max(0, limit-made.nearest.seen), limit})
		if slices.ContainsFunc(made.nodes(), (*session.OwnNode).IsGone) {
			return outcome.ErrGone
		}
		if _, err := v.Await(ctx, made.Gone.Done()); err != nil {
			return err
		}
	}
}

// agree stores the number of permits if none is stored, and fails if another number is stored. A
// caller that accepts any number stores none, and fails if none is stored or if it is less than k.
func (pe *Permits) agree(ctx context.Context, sess *session.Session, k int) (int, error) {
	return pe.limitThat(ctx, sess, func(limit int) error {
		switch {
		case limit == 0:
			return fmt.Errorf("%w: semaphore has no stored number of permits yet", outcome.ErrMismatch)
		case pe.Total > 0 && limit != pe.Total:
			return fmt.Errorf("%w: semaphore has %d permits, not %d", outcome.ErrMismatch, limit, pe.Total)
		}
		return atLeast(limit, k)
	})
}

// limitThat returns the number of permits if it suits the caller. A number that does not may be a
// stale reply from a lagging server, so limitThat reads it again after a quorum check before it
// fails.
func (pe *Permits) limitThat(ctx context.Context, sess *session.Session, suits func(limit int) error) (int, error) {
	limit, err := pe.limit(ctx, sess)
	if err != nil || suits(limit) == nil {
		return limit, err
	}
	limit, err = session.UpToDate(ctx, pe.Engine.Requests, sess, func() (int, error) { return pe.limit(ctx, sess) })
	if err == nil {
		err = suits(limit)
	}
	return limit, err
}

// limit reads the number of permits, and stores one if there is none: the directory may be new,
// created by Curator, or created again after ZooKeeper removed it. It stores the number that it has
// read before, or else the caller's. If it knows neither, it returns zero.
func (pe *Permits) limit(ctx context.Context, sess *session.Session) (int, error) {
	for {
		n, err := pe.limitNode(ctx, sess)
		if err == nil && len(n.Data) > 0 {
			limit, err := node.ParseLimit(n.Data)
			pe.latest = limit
			return limit, err
		}
		if pe.number() == 0 && (err == nil || errors.Is(err, zk.ErrNoNode)) {
			return 0, nil
		}
		if err == nil {
			err = pe.store(ctx, sess, n)
		}
		if err != nil && !isRewritten(err) {
			return 0, err
		}
	}
}

// number returns the number of permits to store, or zero if it is not known.
func (pe *Permits) number() int { return cmp.Or(pe.latest, pe.Total) }

// limitNode returns the node that holds the number of permits. If there is none, it creates the
// node, unless the number is not known.
// If the node has no number, limitNode verifies that no other kind of lock uses the path. A lock
// that comes later removes the node, or is refused.
func (pe *Permits) limitNode(ctx context.Context, sess *session.Session) (session.Node, error) {
	for {
		n, err := pe.Engine.Requests.Get(ctx, sess, pe.Dir+node.LeasesDir)
		switch {
		case errors.Is(err, zk.ErrNoNode) && pe.number() != 0:
			err = pe.Engine.Directories.MakeDir(ctx, sess, pe.Dir+node.LeasesDir, PermitRecipe.depth())
			if err == nil {
				continue
			}
		case err == nil && len(n.Data) == 0:
			err = pe.Engine.notAQueue(ctx, sess, pe.Dir)
		}
		return n, err
	}
}

// store stores the number of permits in the directory n, which has none.
//
// In the meantime a lock may remove the directory, and another semaphore may create it again; the
// version of its data is then the same. So a node of ours is in the directory from before we look
// for a lock until the number is stored.
func (pe *Permits) store(ctx context.Context, sess *session.Session, n session.Node) error {
	keeps := pe.Engine.newWaiter(PermitRecipe, pe.Dir+node.LeasesDir, pe.Data, nil)
	defer pe.Engine.remove(keeps.contender)
	err := keeps.enter(ctx, sess)
	switch {
	case errors.Is(err, outcome.ErrGone):
		return zk.ErrNoNode // as if it were deleted after that
	case err != nil:
		return err
	}
	if err := pe.Engine.notAQueue(ctx, sess, pe.Dir); err != nil {
		return err
	}
	_, err = pe.Engine.Requests.Multi(ctx, sess, pe.setLimit(n, pe.number()), &zk.DeleteRequest{Path: keeps.Path(), Version: -1})
	return err
}

// setLimit returns the operation that sets the number of permits in the directory n.
func (pe *Permits) setLimit(n session.Node, limit int) *zk.SetDataRequest {
	return &zk.SetDataRequest{Path: pe.Dir + node.LeasesDir, Data: node.LimitData(limit), Version: n.Stat.Version}
}

// isRewritten reports whether a number was not stored because somebody has written or removed the
// directory since it was read, or has deleted the node of ours in it.
func isRewritten(err error) bool {
	return errors.Is(err, zk.ErrBadVersion) || errors.Is(err, zk.ErrNoNode)
}

// Resize sets the number of permits to Total.
func (pe *Permits) Resize(ctx context.Context) error {
	dir := pe.Dir + node.LeasesDir
	resized := dir + "/" + node.ResizedName
	for {
		_, err := session.Persist(ctx, pe.Engine.Requests, func(sess *session.Session) ([]zk.MultiResponse, error) {
			n, err := pe.limitNode(ctx, sess)
			switch {
			case err != nil:
				return nil, err
			case len(n.Data) == 0: // no waiter is waiting for another number
				return nil, pe.store(ctx, sess, n)
			}
			return pe.Engine.Requests.Multi(ctx, sess, pe.setLimit(n, pe.Total),
				// Waiters watch the children, not the number.
				&zk.CreateRequest{Path: resized, Acl: pe.Engine.Directories.ACL},
				&zk.DeleteRequest{Path: resized, Version: -1})
		})
		if !isRewritten(err) {
			return err
		}
	}
}
