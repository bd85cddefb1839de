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
	ahead  []node.Entry // in our way, the nearest last
	beyond int          // how many more may be in our way before these
	window int          // how many of the nearest are kept
	seen   int          // how many were ahead in the last listing, in our way or not
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
