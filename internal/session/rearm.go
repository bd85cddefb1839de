// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/conn"
	"github.com/zklock-go/zklock/internal/frames"
)

// One SetWatches request serves many watches. A server sets each of them again, or sends an event
// for it if its node is missing or has changed since a given transaction. It is used for two things.
//
// After a reconnect, watches are gone: they belong to a connection. The transaction is the newest
// one that a reply on the last connection has shown. Events of earlier transactions arrived before
// that reply.
//
// While a connection lasts, a watch can be used up without an event: a server does not notify a
// client that may not read the node at the moment it changes. So watches with waiters are checked
// once per session timeout. The transaction is the newest one that had been seen when the last check
// began. A watch without an earlier check is compared with its node by a read of its own: no single
// transaction suits many new watches, because each node may have changed up to the moment its watch
// was set.

const (
	comparedAtOnce = 8         // nodes that are compared at the same time, because heartbeats use the same connection
	maxWatchBytes  = 128 << 10 // size of a SetWatches request; the largest frame that a server accepts is eight times as long
)

// rearming sets watches of a connection again, and checks them.
type rearming struct {
	requests *Requests
	fire     func(w *watch, saw State)
	sets     support // whether servers know SetWatches
}

// renew sets those of the watches again that were set on an earlier connection. It fires watches
// without waiters; a later caller sets a new one.
func (r *rearming) renew(s *Session, watches []*watch) {
	lapsed := map[int64][]*watch{} // by the newest transaction whose events have arrived
	for _, w := range watches {
		since, ok := w.lapsed()
		switch {
		case !ok: // it was set on the current connection
		case w.isAwaited() && w.isListed() && !r.sets.isMissing():
			lapsed[since] = append(lapsed[since], w)
		default:
			r.fire(w, Changed)
		}
	}
	for since, of := range lapsed {
		for chunk := range inChunks(of) {
			on, err := r.setWatches(s, since, chunk)
			for _, w := range chunk {
				if !w.renewed(on, err) {
					r.fire(w, Changed)
				}
			}
		}
	}
}

// setWatches sends a SetWatches request and waits for the reply. It returns the attachment on which
// it was sent, or an earlier one.
func (r *rearming) setWatches(s *Session, since int64, watches []*watch) (*conn.Attachment, error) {
	var data, children []string
	for _, w := range watches {
		if w.key.children {
			children = append(children, w.key.path)
		} else {
			data = append(data, w.key.path)
		}
	}
	on := s.Attachment()
	_, err := Ask(r.requests.Life, r.requests, s, frames.SetWatches(since, data, children), readNothing)
	r.sets.judge(err, on)
	return on, err
}

// inChunks yields watches in parts that fit into a request.
func inChunks(watches []*watch) func(yield func([]*watch) bool) {
	return func(yield func([]*watch) bool) {
		first, size := 0, 0
		for i, w := range watches {
			more := len(w.key.path) + 4
			if i > first && size+more > maxWatchBytes {
				if !yield(watches[first:i]) {
					return
				}
				first, size = i, 0
			}
			size += more
		}
		if first < len(watches) {
			yield(watches[first:])
		}
	}
}

// check starts checking those of the watches that are due, and sends to done when it is finished.
// Watches that missed a change fire. It returns false if no watch is due.
func (r *rearming) check(s *Session, watches []*watch, done chan<- struct{}) bool {
	now := s.Seen()
	alone, together := r.due(watches)
	if len(alone)+len(together) == 0 {
		return false
	}
	// Owned by the Shared; ends with the requests, or with its life; the last client that leaves waits for it.
	return r.requests.Calls.Run(func() {
		for since, of := range together {
			for chunk := range inChunks(of) {
				if _, err := r.setWatches(s, since, chunk); err == nil {
					confirm(chunk, now)
				}
			}
		}
		SideBySide(r.requests.Calls, len(alone), comparedAtOnce, func(i int) error {
			r.compare(alone[i], now)
			return nil
		})
		done <- struct{}{}
	})
}

// confirm records that watches have missed no change up to the transaction now.
func confirm(watches []*watch, now int64) {
	for _, w := range watches {
		w.confirm(now)
	}
}

// due returns the watches that should be checked now: those that need a read of their own, and those
// that a SetWatches request can check, by the transaction up to which they have missed no change.
func (r *rearming) due(watches []*watch) (alone []*watch, together map[int64][]*watch) {
	together = map[int64][]*watch{}
	known := r.sets.isKnown()
	for _, w := range watches {
		since, due := w.isDue()
		switch {
		case !due:
		case known && since > 0 && w.isListed():
			together[since] = append(together[since], w)
		default:
			alone = append(alone, w)
		}
	}
	return alone, together
}

// compare compares a watch's node with what the watch has shown. now is a transaction that had been
// seen before.
func (r *rearming) compare(w *watch, now int64) {
	stat, err := r.requests.Stat(r.requests.CleanupCtx, w.key.sess, w.key.path)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		r.fire(w, Gone)
	case err != nil:
	case w.isAs(stat):
		w.confirm(now)
	default:
		r.fire(w, Changed)
	}
}
