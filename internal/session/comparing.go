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
// that is over. Watches that have missed a change fire. It reports false if there is nothing to compare.
func (r *Requests) compare(due []*NodeWatch, done chan<- struct{}, fire func(w *NodeWatch, saw Change)) bool {
	// Owned by the client; ends with the requests, at the latest when Close ends the connection and
	// then waits for it.
	return len(due) > 0 && r.Calls.Run(func() {
		SideBySide(r.Calls, len(due), comparedAtOnce, func(i int) error {
			if missed := r.missedBy(due[i]); missed != 0 {
				fire(due[i], missed)
			}
			return nil
		})
		done <- struct{}{}
	})
}

// missedBy returns what a watch has not been told of, zero for nothing: its node is not what the watch has shown.
func (r *Requests) missedBy(w *NodeWatch) Change {
	now, err := r.Stat(r.Afterlife, w.key.sess, w.key.path)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return NodeGone
	case err != nil || w.isAs(now):
		return 0
	}
	return NodeChanged
}

// isAs reports whether a node in that state is as the watch has shown it. A number of children
// tells of those that a counter at its end did not count.
func (w *NodeWatch) isAs(now *zk.Stat) bool {
	if w.key.children {
		return now.Czxid == w.Stat.Czxid && now.Pzxid == w.Stat.Pzxid && now.NumChildren == w.Stat.NumChildren
	}
	return now.Czxid == w.Stat.Czxid && now.Mzxid == w.Stat.Mzxid
}
