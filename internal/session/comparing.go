package session

import (
	"errors"

	"github.com/go-zookeeper/zk"
)

// A server tells nobody of a change who may not read the node at that moment, and the watch is used
// up all the same. The client does not learn of that. So as long as somebody waits for a watch, the
// client compares its node with what the watch has shown, once per session timeout.

// comparedAtOnce bounds how many nodes are compared at a time: heartbeats go on beside them.
const comparedAtOnce = 8

// compare begins to compare the nodes of watches with what those have shown, and sends to done when
// that is over. Watches that have missed a change are woken. It reports false if there is nothing to compare.
func (r *Requests) compare(due []*NodeWatch, done chan<- struct{}, wake func(w *NodeWatch, disturbed bool)) bool {
	// Owned by the client; ends with the requests, at the latest when Close ends the connection and
	// then waits for it.
	return len(due) > 0 && r.Calls.Run(func() {
		SideBySide(r.Calls, len(due), comparedAtOnce, func(i int) error {
			if r.hasMissed(due[i]) {
				wake(due[i], true)
			}
			return nil
		})
		done <- struct{}{}
	})
}

// hasMissed reports whether a watch's node is not what the watch has shown, and notes that.
func (r *Requests) hasMissed(w *NodeWatch) bool {
	now, err := r.Stat(r.Afterlife, w.key.sess, w.key.path)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		w.found = NodeGone
	case err != nil || w.isAs(now):
		return false
	default:
		w.found = NodeChanged
	}
	return w.missed.Set()
}

// isAs reports whether a node in that state is as the watch has shown it. A number of children
// tells of those that a counter at its end did not count.
func (w *NodeWatch) isAs(now *zk.Stat) bool {
	if w.key.children {
		return now.Czxid == w.Stat.Czxid && now.Pzxid == w.Stat.Pzxid && now.NumChildren == w.Stat.NumChildren
	}
	return now.Czxid == w.Stat.Czxid && now.Mzxid == w.Stat.Mzxid
}
