package queue

import (
	"math"
	"slices"

	"github.com/zklock-go/zklock/internal/node"
)

// nearestKept is how many of those in its way a waiter knows by name: the two that it watches, one
// after the other, and some before them, of which one has left the last note.
const nearestKept = 4

// keepNearest sets who is in our way from all that are ahead, and keeps the nearest of these. It
// only counts the others, so a waiter takes the same memory in a queue of ten and of ten thousand.
//
// Whoever may be in our way is in ahead or counted in beyond, until it is known to have left. For
// one of ahead an answer of a server tells that. For those beyond only two things do: a note that
// names one of ahead, because all before a holder have left, or another listing.
func (t *place) keepNearest(ahead []node.Entry) {
	t.seen, t.ahead, t.beyond = len(ahead), make([]node.Entry, 0, min(t.window, len(ahead))), 0
	for i := t.recipe.Rule(ahead); i >= 0; i = t.recipe.Rule(ahead) {
		if len(t.ahead) == t.window {
			t.beyond = i + 1
			break
		}
		t.ahead = append(t.ahead, ahead[i])
		ahead = ahead[:i]
	}
	slices.Reverse(t.ahead)
}

// widen makes the next listing leave more of the nearest if all of them have left or let us pass,
// and others before them may be in our way. So also where many do, few listings find the way.
func (t *place) widen() {
	if len(t.ahead) == 0 && t.beyond > 0 {
		t.window = min(2*t.window, math.MaxInt32)
	}
}

// meet keeps what unreleased has to know of those that are ahead at first: the nearest that does not
// stand in the lock's record, and those behind it. If all stand there, it keeps one.
func (t *place) meet(ahead []node.Entry) {
	i := len(ahead) - 1
	for j, e := range slices.Backward(ahead) {
		if isUnrecorded(e) {
			i = j
			break
		}
	}
	t.met = append([]node.Entry{}, ahead[max(0, i):]...)
}

// isUnrecorded reports whether a holder does not stand in the lock's record.
func isUnrecorded(e node.Entry) bool { return !e.Shared && !node.IsDelayed(e.Name) }

// unrecordedBehind returns the nearest of those that were ahead at first and do not stand in the
// lock's record, "" for none. It looks no further than the one of that name.
func (t *place) unrecordedBehind(name string) string {
	for _, e := range slices.Backward(t.met) {
		switch {
		case e.Name == name:
			return ""
		case isUnrecorded(e):
			return e.Name
		}
	}
	return ""
}
