package zklock

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/zklock-go/zklock/internal/lease"
	"github.com/zklock-go/zklock/observe"
)

// A tenure is a place in a queue that was granted to a process. Its goroutines hold there as
// guests, one after the other, or readers also at a time. The steward that has the tenure guards
// what changes in it.
//
// In a fenced cohort a tenure has one guest: the next one gets another node, in one transaction,
// and so a token and a guard of its own. In an unfenced cohort guests follow one another without
// a request, as long as nothing happens to the place and nobody else wants it.
type tenure struct {
	place  *place
	of     *holding        // of the place; the guests' contexts end with its own
	s      host            // of the guests
	moved  <-chan struct{} // closed when the connection is another than when the place was granted
	armed  chan *nodeWatch // receives the watch on the directory's children, nil if it cannot be set
	crowd  *nodeWatch      // that watch, while it stands
	guests []*guest        // those that hold; one at most unless they share the place
	idle   time.Time       // when the steward has noticed that there is none; zero before
	fresh  lease.Instant   // until when the lease is fresh, as far as was known when we last asked
	spent  bool            // no other guest may follow
	asked  bool            // armed will receive, or has received
	open   bool            // a guest may follow another on the same node
	lent   turn            // to the guests that came before others
}

// A turn is what guests that have asked before may still use when others want the place.
type turn struct {
	wanted bool
	left   int       // so many guests
	until  time.Time // before which they must begin
}

const (
	maxTurn  = 100 // guests
	turnTime = 100 * time.Millisecond
)

// begin lets a goroutine hold that has called with ctx.
func (n *tenure) begin(ctx context.Context, now lease.Instant) *Hold {
	g := &guest{hold: Hold{of: n.of, outer: HoldOf(ctx)}, n: n, stay: n.of.ctx, values: ctx, at: len(n.guests), since: now.Mono}
	g.hold.ctx, g.hold.visit = g, g
	n.guests, n.idle = append(n.guests, g), time.Time{}
	n.lent.left--
	return &g.hold
}

// end takes a guest from those that hold, if it is one of them.
func (n *tenure) end(g *guest) {
	last := len(n.guests) - 1
	if g.at > last || n.guests[g.at] != g {
		return
	}
	n.guests[g.at] = n.guests[last]
	n.guests[g.at].at = g.at
	n.guests[last] = nil
	n.guests = n.guests[:last]
}

// hasRoom reports whether a guest may hold beside those that do.
func (n *tenure) hasRoom() bool { return len(n.guests) == 0 || n.place.recipe.shared }

// A host has a tenure, and lets guests hold there.
type host interface {
	// left is told that a guest has given its hold up, which had not ended before.
	left(n *tenure, g *guest)
}

// guest is the hold of a goroutine in a tenure, and its context. That ends with the tenure's or
// when the guest leaves, and has the values of values. It is made when somebody first looks at
// it: it would be most of what a hold costs that nobody asks for its context.
type guest struct {
	hold   Hold
	n      *tenure
	stay   context.Context // the tenure's, which has no values
	values context.Context // the one that the goroutine has called with
	since  time.Time       // when it has begun
	at     int             // where it stands among the guests of n, which changes as they do

	mu     sync.Mutex
	inside context.Context         // guarded by mu: nil until somebody looks
	end    context.CancelCauseFunc // guarded by mu: of inside
	gone   bool                    // guarded by mu: it has left, before anything else ended its hold and before somebody looked
}

// context returns what the guest's context is derived from.
func (g *guest) context() context.Context {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.inside != nil:
	case g.gone:
		g.inside = over
	default:
		g.inside, g.end = context.WithCancelCause(g.stay)
	}
	return g.inside
}

func (g *guest) Deadline() (time.Time, bool) { return g.stay.Deadline() }

func (g *guest) Done() <-chan struct{} { return g.context().Done() }

func (g *guest) Err() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.inside != nil:
		return g.inside.Err()
	case g.gone:
		return context.Canceled
	}
	return g.stay.Err()
}

func (g *guest) Value(key any) any {
	if key == (holdKey{}) {
		return &g.hold
	}
	if v := g.context().Value(key); v != nil { // package context looks for the cause there
		return v
	}
	return g.values.Value(key)
}

// leave ends the guest's hold, and has the host let another one hold.
func (g *guest) leave() error {
	if end := g.depart(); end != nil {
		end(ErrReleased)
	}
	if g.stay.Err() != nil { // else nothing else can have ended it
		if why := context.Cause(g); !errors.Is(why, ErrReleased) {
			return why
		}
	}
	g.n.s.left(g.n, g)
	return nil
}

// depart has the guest's hold end. If it returns a function, that ends the context.
func (g *guest) depart() context.CancelCauseFunc {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.gone = g.inside == nil && g.stay.Err() == nil
	return g.end
}

// admits reports whether another guest may begin, of which so many wait.
func (n *tenure) admits(waiting int, now lease.Instant) bool {
	if !n.hasRoom() || n.spent || !n.open {
		return false
	}
	n.notice(waiting, now)
	n.spent = !n.isCertain(now) || n.lent.wanted && (n.lent.left <= 0 || !now.Mono.Before(n.lent.until))
	return !n.spent
}

// notice finds out whether others want the place. Then only those guests may still begin that
// wait by now: they have asked before. Readers do not mind others that read: a place that is
// shared is wanted once a listing shows anybody else.
func (n *tenure) notice(waiting int, now lease.Instant) {
	if n.crowd == nil || n.lent.wanted {
		return
	}
	switch quiet, _ := n.crowd.isQuiet(); {
	case quiet:
	case n.place.recipe.shared:
		n.crowd = nil
		n.arm(true)
	default:
		n.want(waiting, now)
	}
}

func (n *tenure) want(waiting int, now lease.Instant) {
	if !n.lent.wanted {
		n.lent = turn{true, min(waiting, maxTurn), now.Mono.Add(turnTime)}
	}
}

// isCertain reports whether the place is certainly still ours: the lease is fresh, and the watch
// on our node has not fired and stands on the connection that we have.
func (n *tenure) isCertain(now lease.Instant) bool {
	s := n.place.sess
	if carried := n.place.c.link.Carried(); carried != s || isClosed(n.moved) {
		return false
	}
	return !n.place.asked.heard.isSet() && n.place.sentinel.stands() && n.of.ctx.Err() == nil && n.isFresh(now)
}

// isFresh reports whether the lease is fresh. On one connection it only gets longer.
func (n *tenure) isFresh(now lease.Instant) bool {
	if now.Before(n.fresh) {
		return true
	}
	n.fresh = n.place.sess.Lease.FreshUntil()
	return now.Before(n.fresh)
}

// arm begins to watch the directory, which tells when others want the place, and sends the
// outcome to armed. A tenure that is to be open is armed only when our own node is watched too.
func (n *tenure) arm(opens bool) {
	n.asked = true
	// Owned by the tenure; ends with the requests or with the tenure; Close waits for it.
	if !n.place.c.calls.run(func() {
		w, err := n.watchCrowd()
		if err == nil && opens {
			_, err = n.place.sentinel.await(n.of.ctx)
		}
		if err != nil {
			w = nil
		}
		n.armed <- w
	}) {
		n.armed <- nil
	}
}

// watchCrowd returns a watch on the directory that was set when our node was there.
func (n *tenure) watchCrowd() (*nodeWatch, error) {
	t := n.place
	for {
		w, err := t.c.watchChildren(n.of.ctx, t.sess, t.dir)
		if err != nil || slices.Contains(w.names, t.name) {
			return w, err
		}
		// It is older than our node, or of a server that lags, and fires soon.
		if _, err := w.await(n.of.ctx, t.sess, t.gone.done()); err != nil {
			return nil, err
		}
	}
}

// stand takes the watch on the directory, nil if there is none. Guests may follow one another
// from now on if opens says so.
func (n *tenure) stand(w *nodeWatch, opens bool, waiting int, now lease.Instant) {
	if w == nil {
		n.spent = true
		return
	}
	n.crowd, n.open = w, opens
	ours := func(e entry) bool { return e.name == n.place.name || e.shared && n.place.recipe.shared }
	if len(slices.DeleteFunc(parseEntries(w.names), ours)) > 0 {
		n.want(waiting, now)
	}
}

// fired returns a channel that is closed when others want the place, as far as that is not known.
func (n *tenure) fired() <-chan struct{} {
	if n.crowd == nil || n.lent.wanted {
		return nil
	}
	return n.crowd.fired.done()
}

// tell tells the observer of a guest how its hold has ended.
func (n *tenure) tell(kind observe.Kind, since time.Time, why error) {
	if n.place.c.to == nil && kind != observe.Lost {
		return
	}
	ev := n.of.event(kind, why)
	ev.Elapsed = time.Since(since)
	n.place.c.observe(ev)
}

// depart ends the tenure's holding, without a guest and with its node left alone. It reports
// false if the holding has been lost.
func (n *tenure) depart() bool {
	if _, err := n.of.drop(); err != nil {
		return false
	}
	n.of.among.remove(n.of)
	n.of.released.set()
	n.place.c.beginRemoval(n.place.contender) // which another node's creation carries out
	return true
}

// endKind returns the kind of the event of a hold that has ended for the reason why.
func endKind(why error) observe.Kind {
	if errors.Is(why, ErrLost) {
		return observe.Lost
	}
	return observe.Ended
}
