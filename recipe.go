package zklock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// A rule is what one recipe makes of the contenders ahead of one of its own: the index
// of the one to wait for, negative when there is none and the lock is ours.
type rule func(ahead []entry) int

// afterAll waits for everybody ahead: a mutex, a writer.
func afterAll(ahead []entry) int { return len(ahead) - 1 }

// afterExclusive waits for the nearest writer ahead: a reader.
func afterExclusive(ahead []entry) int {
	for i := len(ahead) - 1; i >= 0; i-- {
		if !ahead[i].shared {
			return i
		}
	}
	return -1
}

// A recipe is what differs between the recipes that stand in one queue.
type recipe struct {
	name    string // for errors and observers
	infix   string // of its nodes' names
	rule    rule
	raw     bool // its nodes' data is the caller's, not owner data
	below   bool // its nodes are in a directory below the lock's path, not in that itself
	limited bool // its directory's data is a number of permits
	// passes, if set, looks at the data of one who stands in our way: true means that it
	// no longer does (a writer that became a reader).
	passes func(data []byte) bool
}

var mutexRecipe = &recipe{name: "mutex", infix: lockInfix, rule: afterAll}

// depth returns how many of the last parts of a queue's directory belong to the lock alone.
func (r *recipe) depth() int {
	if r.below {
		return 2
	}
	return 1
}

// exclusive says that a holder by this recipe had nobody ahead of it.
func (r *recipe) exclusive() bool { return r.infix != readerInfix }

// contender is a node of ours in a queue, from before it is asked for until it is
// certainly gone. One goroutine has it at any time: the acquiring caller, then the hold
// or the clean-up. What its sentinel shares with them is closed channels.
type contender struct {
	c      *Client
	recipe *recipe
	dir    string
	data   []byte   // guarded by c.mu once the node was asked for
	sess   *session // the one it was asked for under

	with []*contender // the others that were made in the same transaction: see newBatch
	led  bool         // it is one of those: its leader removes it

	group     string // the first digits of its guid, if those are given
	guid      string
	created   chan struct{} // closed when the create has its outcome, which is the next two
	name      string        // once known
	createErr error
	entered   bool // the node is certainly of session sess

	ahead      []entry   // who was ahead when we last looked, without those known to be gone
	unsure     bool      // one of those may have left another node in its place: see mayStay
	listed     int64     // when the directory's data was last written before that, by its zxid
	looked     time.Time // when the listing came in which our node was there
	note       note
	standing   *nodeWatch // on one of those ahead, from before it is waited for; nil for none
	standingOn string     // its name
	token      int64
	held       bool   // it was first once
	counted    *count // of the create; nil if that does not count

	sentinel  *sentinel
	vanish    sync.Once
	gone      chan struct{} // closed when our node was found missing, or is of no use
	why       error         // set before gone is closed: what is wrong, unless it was deleted
	asked     *revocation
	unread    int32         // the version of the node's data behind which nobody has asked us; -1 for any
	departed  chan struct{} // closed when nobody needs the node any more
	departure sync.Once
}

func (c *Client) newContender(r *recipe, dir string, data []byte) *contender {
	return &contender{
		c: c, recipe: r, dir: dir, data: data,
		gone: make(chan struct{}), asked: newRevocation(), unread: -1, departed: make(chan struct{}),
	}
}

func (t *contender) prefix() string { return namePrefix + t.guid }

// path is the node's, valid once its name is known.
func (t *contender) path() string { return t.dir + "/" + t.name }

// forsake tells everybody that our node is gone, or of no use for that reason.
func (t *contender) forsake(why error) {
	t.vanish.Do(func() {
		t.why = why
		close(t.gone)
	})
}

// because puts the reason why our node is of no use, if that is another than that it was
// deleted, in the place of errGone.
func (t *contender) because(err error) error {
	if errors.Is(err, errGone) && t.isGone() && t.why != nil {
		return t.why
	}
	return err
}

// errForged ends what was made a reader's, and not by us: others may have been let in.
var errForged = fmt.Errorf("%w: somebody else has made it a reader's", errGone)

// errUnreadable ends what needs a look at a node that we have made ourselves.
var errUnreadable = fmt.Errorf("our own node cannot be read, its ACL must let us: %w", zk.ErrNoAuth)

func (t *contender) isGone() bool { return isClosed(t.gone) }

func (t *contender) depart() { t.departure.Do(func() { close(t.departed) }) }

// enter puts the contender at the end of the queue, under session s. The listing that
// tells our place is asked for together with the create: the server keeps their order,
// and the client library nearly always does.
func (t *contender) enter(ctx context.Context, s *session) error {
	var p pace
	for {
		t.expectNobody()
		t.send(s)
		l, listErr := listing{}, error(zk.ErrNoNode)
		if t.counted == nil {
			yield()
			l, listErr = t.c.list(ctx, s, t.dir)
		}
		if err := t.settle(ctx); err != nil {
			return err
		}
		switch {
		case !t.c.link.Carries(s):
			// A create may have waited in the client library and been sent on a
			// later session; what it made is not ours to hold.
			return errSessionOver
		case t.name != "":
			for _, x := range t.whole() {
				x.entered = true
			}
			if t.isAlone() {
				return nil
			}
			return t.findPlace(ctx, l, listErr)
		case t.counted != nil && isRefusal(t.createErr): // again, without counting
		case errors.Is(t.createErr, zk.ErrNoNode):
			if err := t.c.makeDir(ctx, s, t.dir, t.recipe.depth()); err != nil {
				return err
			}
		case isRefusal(t.createErr):
			return t.createErr
		default:
			if err := p.next(ctx); err != nil {
				return err
			}
		}
	}
}

// send asks for the node under a name that nobody else can have. From here on the
// contender has to be settled, whatever happens.
func (t *contender) send(s *session) {
	t.created, t.createErr = make(chan struct{}), nil
	guids := t.newGUIDs()
	for i, x := range t.whole() {
		x.sess, x.guid, x.name = s, guids[i], ""
	}
	created, data := t.created, t.shown(t.ownData())
	ok := t.c.calls.run(func() {
		defer close(created)
		sent := t.c.link.Now()
		names, err := t.create(data)
		t.c.witness(sent, isWrite, err)
		if err == nil {
			for i, x := range t.whole() {
				x.name = names[i]
			}
		}
		t.createErr = err
	})
	if !ok {
		t.createErr = ErrClosed
		close(created)
	}
}

// settle waits until it is known whether the node was made; then it has a name or not. A
// create whose answer was lost is looked for.
func (t *contender) settle(ctx context.Context) error {
	select {
	case <-t.created:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if t.name != "" || wasNotSent(t.createErr) {
		return nil
	}
	var p pace
	for {
		found, err := t.find(ctx)
		switch {
		case err == nil:
			t.name = found
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case isRefusal(err) || errors.Is(err, ErrClosed):
			return err
		}
		if err := p.next(ctx); err != nil {
			return err
		}
	}
}

// find looks for our node by its guid, as the quorum knows it. Where there is none, the
// caller may go on, and the client looks again: see ghost.
func (t *contender) find(ctx context.Context) (string, error) {
	s, err := t.c.link.Attached(ctx)
	if err != nil {
		return "", err
	}
	l, err := upToDate(ctx, t.c.requests, s, func() (listing, error) { return t.c.list(ctx, s, t.dir) })
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return "", err
	}
	genuine, err := t.genuine(ctx, s, l.names)
	if err != nil {
		return "", err
	}
	t.recognise(genuine)
	if t.name == "" {
		for _, x := range t.whole() {
			t.c.haunt(&ghost{dir: t.dir, prefix: x.prefix(), asked: t.sess, last: s, epoch: s.Epoch()})
		}
	}
	return t.name, nil
}

// genuine returns those of names that have a guid of ours and are of a session of ours:
// a name alone can be imitated. All of a batch are there if one is, so for the others the
// session decides only between several.
func (t *contender) genuine(ctx context.Context, s *session, names []string) (found []string, err error) {
	named := map[string][]string{} // by prefix
	for _, name := range names {
		prefix := name[:min(len(name), len(t.prefix()))]
		named[prefix] = append(named[prefix], name)
	}
	for _, x := range t.whole() {
		these := named[x.prefix()]
		if x == t || len(these) > 1 {
			name, err := t.c.ownAmong(ctx, s, t.dir, these, x.prefix(), t.sess, s)
			if err != nil {
				return nil, err
			}
			these = []string{name}
		}
		found = append(found, these...)
	}
	return found, nil
}

// findPlace learns who is ahead from a listing, which is asked for again if it was
// taken before the node was there.
func (t *contender) findPlace(ctx context.Context, l listing, err error) error {
	if err != nil || !t.complete(l.names) {
		l, err = t.c.listAgain(ctx, t.sess, t.dir)
	}
	switch {
	case errors.Is(err, zk.ErrNoNode) || err == nil && !t.complete(l.names):
		return errGone
	case err != nil:
		return err
	}
	if err := t.c.notASemaphore(ctx, t.sess, t.dir, l.names); err != nil {
		return err
	}
	t.unsure, t.listed = false, l.stat.Mzxid
	t.noticeSolitude(l)
	t.looked = l.at
	entries := parseEntries(l.names)
	own, _ := parseEntry(t.name)
	if entries, err = t.askCzxids(ctx, entries, &own); err != nil {
		return err
	}
	t.ahead = ahead(entries, own)
	if t.token == 0 {
		t.token = own.czxid
	}
	if t.token == 0 && len(t.ahead) == len(entries)-1 {
		// We are the last: what has changed the directory until this listing is not
		// older than us and not younger than whoever comes after us. (The exhausted
		// counter, with which this stands still, has made us ask for czxids.)
		t.token = l.stat.Pzxid
	}
	t.ahead = t.notOurs(t.ahead)
	return nil
}

// czxidsAtOnce is how many nodes are asked for at a time.
const czxidsAtOnce = 16

// askCzxids completes the entries whose place their numbers do not tell, and own. Those
// that are gone meanwhile are dropped. Our own node comes last: that it was there before
// one of the others went says nothing.
func (t *contender) askCzxids(ctx context.Context, entries []entry, own *entry) ([]entry, error) {
	var tied []*entry
	for i := range entries {
		if e := &entries[i]; e.name != own.name && needCzxid(*e, *own) {
			tied = append(tied, e)
		}
	}
	if len(tied) == 0 && isPlain(own.seq) {
		return entries, nil
	}
	err := sideBySide(t.c.calls, len(tied), czxidsAtOnce, func(i int) (err error) {
		tied[i].czxid, err = t.askCzxid(ctx, tied[i].name)
		return ignoreMissing(err)
	})
	if err != nil {
		return nil, err
	}
	if own.czxid, err = t.askCzxid(ctx, own.name); err != nil {
		return nil, goneIfMissing(err)
	}
	return slices.DeleteFunc(entries, func(e entry) bool {
		missing := e.name != own.name && e.czxid == 0 && needCzxid(e, *own)
		t.unsure = t.unsure || missing && mayStay(e)
		return missing
	}), nil
}

func (t *contender) askCzxid(ctx context.Context, name string) (int64, error) {
	stat, err := again(ctx, func() (*zk.Stat, error) { return t.c.stat(ctx, t.sess, t.dir+"/"+name) })
	if err != nil {
		return 0, err
	}
	return stat.Czxid, nil
}

// obstacle returns the index of the one among ahead that stands in the way of a
// newcomer, negative for none.
func (c *Client) obstacle(ctx context.Context, s *session, r *recipe, dir string, ahead []entry) (int, error) {
	for {
		i := r.rule(ahead)
		if i < 0 || r.passes == nil {
			return i, nil
		}
		n, err := c.get(ctx, s, dir+"/"+ahead[i].name)
		switch {
		case err == nil && !r.passes(n.data):
			return i, nil
		case err != nil && !errors.Is(err, zk.ErrNoNode):
			return i, err
		}
		ahead = ahead[:i]
	}
}

// grant makes a hold of being first, or says why it is not one: our node must be
// there, under the session that we are on, and that session certainly alive.
func (t *contender) grant(ctx context.Context) error {
	t.held = true
	if !t.c.readable.Load() {
		t.guard(0)
	}
	unwatched := slices.ContainsFunc(t.whole(), func(x *contender) bool { return x.sentinel == nil })
	if unwatched && !t.led && time.Since(t.looked) > aloneGrace {
		if err := t.lookAgain(ctx); err != nil {
			return t.because(err)
		}
	}
	return t.because(t.vouch(ctx))
}

// lookAgain makes sure that our node, and those that it was made with, are still there.
func (t *contender) lookAgain(ctx context.Context) error {
	_, err := again(ctx, func() (none struct{}, err error) { return none, t.c.confirmAll(ctx, t.sess, t.whole()) })
	return err
}

// vouch makes certain what a grant needs.
func (t *contender) vouch(ctx context.Context) error {
	if t.sentinel != nil {
		if err := t.sentinel.await(ctx, t); err != nil {
			return err
		}
	}
	if t.token == 0 {
		czxid, err := t.askCzxid(ctx, t.name)
		if err != nil {
			return goneIfMissing(err)
		}
		t.token = czxid
	}
	t.c.keep(t)
	if err := t.freshen(ctx); err != nil {
		return err
	}
	if t.isGone() {
		return errGone
	}
	if !t.c.link.Carries(t.sess) {
		return errSessionOver
	}
	return nil
}

// freshen asks the quorum whether the session lives and our node with it, unless that
// is certain. A lagging server can show us first in line after our session has ended.
// Only an answer of its own will do: another heartbeat's says something of the session,
// and perhaps that our node is gone.
func (t *contender) freshen(ctx context.Context) error {
	if t.sess.Lease.Fresh() {
		return nil
	}
	began := time.Now()
	p := pace{most: t.sess.Lease.Term() / 16} // what is confirmed again a moment later counts: see lease
	for {
		err := t.c.confirmAll(ctx, t.sess, t.whole())
		switch {
		case err == nil && t.sess.Lease.Fresh():
			return nil
		case err != nil && (!isTransient(err) || ctx.Err() != nil):
			return err
		case err == nil && time.Since(began) > t.sess.Lease.Term():
			t.c.link.MoveOn(t.sess)
		}
		if err := p.next(ctx); err != nil {
			return err
		}
	}
}
