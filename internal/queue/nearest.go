// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"math"
	"slices"

	"github.com/zklock-go/zklock/internal/node"
)

// nearestKept is how many of the blocking contenders a waiter knows by name: the two that it
// watches one after the other, and some before them, one of which wrote the last note.
const nearestKept = 4

// nearest is what a waiter knows about the contenders ahead of it. It keeps the nearest by name and
// counts the others, so its size does not depend on the length of the queue.
//
// Every contender that might block us is either in ahead or counted in beyond, until it is known to
// have left. For a contender in ahead, a server's reply shows that. For those in beyond, only two
// things do: another listing, or a note that names a contender in ahead, because all contenders
// before a holder have left.
type nearest struct {
	// ahead contains all contenders that may block us, the nearest last, and perhaps some that have
	// left. It never lacks one, except those counted in beyond, and unless unsure is set.
	ahead []node.Entry
	// beyond is at least the number of contenders before those in ahead that may block us.
	beyond int
	window int // how many of the nearest are kept
	seen   int // how many were ahead in the last listing, blocking or not
	// unsure means that a contender that has left may have another node in its place, which ahead
	// lacks: see node.MayStay.
	unsure bool
	// replaced contains those of these contenders whose position sequence numbers do not show.
	replaced []node.Entry
}

// others returns how many contenders are ahead of the nearest blocking one.
func (n *nearest) others() int { return n.beyond + len(n.ahead) - 1 }

// removeAt removes the contender ahead[i], which has left, and records whether it may have another
// node in its place.
func (n *nearest) removeAt(i int) {
	n.noticeReplaced(n.ahead[i])
	n.ahead = slices.Delete(n.ahead, i, i+1)
}

// remove removes e if it is still in ahead.
func (n *nearest) remove(e node.Entry) {
	if i := slices.Index(n.ahead, e); i >= 0 {
		n.removeAt(i)
	}
}

// dropUpTo removes ahead[i], which has held the lock, and all contenders before it.
func (n *nearest) dropUpTo(i int) { n.ahead, n.beyond = slices.Delete(n.ahead, 0, i+1), 0 }

// noticeReplaced records that a contender ahead of us has left if it may have another node in its
// place.
func (n *nearest) noticeReplaced(e node.Entry) {
	if !node.MayStay(e) {
		return
	}
	n.unsure = true
	if !node.IsPlain(e.Seq) {
		n.replaced = append(n.replaced, e)
	}
}

// positionReplaced gives readers of other libraries the positions of writers of the same sessions that
// have left, if sequence numbers do not show the order. If a writer's session is unknown, any such
// reader takes its position: these readers do not wait for us in any certain order.
func (n *nearest) positionReplaced(tied []*node.Entry) {
	for _, e := range tied {
		for _, f := range n.replaced {
			if e.Shared && e.Czxid != 0 && node.ClientOf(e.Name) != node.ClientZklock && (f.Owner == 0 || f.Owner == e.Owner) {
				e.Czxid = min(e.Czxid, max(f.Czxid, 1))
			}
		}
	}
}

// selectBlockers selects the contenders that block us from ahead, which it does not modify.
func (n *nearest) selectBlockers(rule node.Rule, ahead []node.Entry) {
	n.seen, n.ahead, n.beyond = len(ahead), make([]node.Entry, 0, min(n.window, len(ahead))), 0
	for i := rule(ahead); i >= 0; i = rule(ahead) {
		if len(n.ahead) == n.window {
			n.beyond = i + 1
			break
		}
		n.ahead = append(n.ahead, ahead[i])
		ahead = ahead[:i]
	}
	slices.Reverse(n.ahead)
}

// keepAll removes the limit on the contenders kept, for a waiter that does not wait for long.
func (n *nearest) keepAll() { n.window = math.MaxInt }

// beginListing is called when another listing shows all contenders ahead.
func (n *nearest) beginListing() {
	n.growWindow()
	n.unsure = false
}

// growWindow doubles the window for the next listing if all contenders in ahead have left or do not
// block us, and others before them may. Doubling keeps the number of listings logarithmic.
func (n *nearest) growWindow() {
	if len(n.ahead) == 0 && n.beyond > 0 {
		n.window = min(2*n.window, math.MaxInt32)
	}
}

// initialAhead is what a contender with a lock-delay must know about the contenders that were ahead in the
// first listing: the nearest that does not appear in the lock's record, and those behind it. If all
// of them appear in the record, it is just the nearest.
type initialAhead []node.Entry

func newInitialAhead(ahead []node.Entry) initialAhead {
	i := len(ahead) - 1
	for j, e := range slices.Backward(ahead) {
		if isUnrecorded(e) {
			i = j
			break
		}
	}
	return append(initialAhead{}, ahead[max(0, i):]...)
}

// isUnrecorded reports whether a contender does not appear in the lock's record when it holds.
func isUnrecorded(e node.Entry) bool { return !e.Shared && !node.HasDelayMark(e.Name) }

// unrecordedBehind returns the name of the nearest contender that does not appear in the lock's
// record, or "" if there is none. It stops at the contender with the given name.
func (m initialAhead) unrecordedBehind(name string) string {
	for _, e := range slices.Backward(m) {
		switch {
		case e.Name == name:
			return ""
		case isUnrecorded(e):
			return e.Name
		}
	}
	return ""
}
