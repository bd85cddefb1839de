package queue

import (
	"math"
	"slices"

	"github.com/zklock-go/zklock/internal/node"
)

// nearestKept is how many of those in its way a waiter knows by name: the two that it watches, one
// after the other, and some before them, of which one has left the last note.
const nearestKept = 4

// nearest is what a waiter knows of those ahead of it. It keeps the nearest by name and counts the
// others, so it takes the same memory in a queue of ten and of ten thousand.
//
// Whoever may be in our way is in ahead or counted in beyond, until it is known to have left. For
// one of ahead an answer of a server tells that. For those beyond only two things do: a note that
// names one of ahead, because all before a holder have left, or another listing.
type nearest struct {
	ahead  []node.Entry // contains all that may be in our way, the nearest last, and perhaps some that have left; never fewer, but for those beyond and unless unsure
	beyond int          // at least as many as may be in our way before these
	window int          // how many of the nearest are kept
	seen   int          // how many were ahead in the last listing, in our way or not
	unsure bool         // one that has left may have another node in its place, which ahead lacks: see node.MayStay
	former []node.Entry // contains all that may and whose place cannot be told by a number
}

// others returns how many are in the way of the nearest.
func (n *nearest) others() int { return n.beyond + len(n.ahead) - 1 }

// strike takes the i-th contender ahead of us off, which has left, and notes whether it may have
// another node in its place.
func (n *nearest) strike(i int) {
	n.noticeFormer(n.ahead[i])
	n.ahead = slices.Delete(n.ahead, i, i+1)
}

// drop strikes e off if it is still among those ahead of us.
func (n *nearest) drop(e node.Entry) {
	if i := slices.Index(n.ahead, e); i >= 0 {
		n.strike(i)
	}
}

// dropUpTo takes off the i-th ahead, which has held, and with it all before it.
func (n *nearest) dropUpTo(i int) { n.ahead, n.beyond = slices.Delete(n.ahead, 0, i+1), 0 }

// noticeFormer notes that a contender ahead of us has left, which may have another node in its place.
func (n *nearest) noticeFormer(e node.Entry) {
	if !node.MayStay(e) {
		return
	}
	n.unsure = true
	if !node.IsPlain(e.Seq) {
		n.former = append(n.former, e)
	}
}

// replaceFormer gives the readers of other libraries the places of writers of their sessions that
// have left, where numbers do not tell them. It takes any reader for that of a writer whose session
// is not known: such a reader does not wait for us in any certain order.
func (n *nearest) replaceFormer(tied []*node.Entry) {
	for _, e := range tied {
		for _, f := range n.former {
			if e.Shared && e.Czxid != 0 && node.ClientOf(e.Name) != node.ClientZklock && (f.Owner == 0 || f.Owner == e.Owner) {
				e.Czxid = min(e.Czxid, max(f.Czxid, 1))
			}
		}
	}
}

// keep sets who is in our way from all that are ahead, which it does not change.
func (n *nearest) keep(rule node.Rule, ahead []node.Entry) {
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

// keepAll makes listings leave all, for a place that does not wait for long.
func (n *nearest) keepAll() { n.window = math.MaxInt }

// relist is called when another listing shows all that are ahead.
func (n *nearest) relist() {
	n.widen()
	n.unsure = false
}

// widen makes the next listing leave more of the nearest if all of them have left or let us pass,
// and others before them may be in our way. So also where many do, few listings find the way.
func (n *nearest) widen() {
	if len(n.ahead) == 0 && n.beyond > 0 {
		n.window = min(2*n.window, math.MaxInt32)
	}
}

// met is what a contender with a lock-delay has to know of those that are ahead at first: the
// nearest that does not stand in the lock's record, and those behind it. If all stand there, it is one of them.
type met []node.Entry

func newMet(ahead []node.Entry) met {
	i := len(ahead) - 1
	for j, e := range slices.Backward(ahead) {
		if isUnrecorded(e) {
			i = j
			break
		}
	}
	return append(met{}, ahead[max(0, i):]...)
}

// isUnrecorded reports whether a holder does not stand in the lock's record.
func isUnrecorded(e node.Entry) bool { return !e.Shared && !node.IsDelayed(e.Name) }

// unrecordedBehind returns the nearest that does not stand in the lock's record, "" for none. It
// looks no further than the one of that name.
func (m met) unrecordedBehind(name string) string {
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
