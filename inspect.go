package zklock

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
)

// Queue is the state of a lock, as Inspect has found it.
type Queue struct {
	Path       string      // as it was given to the client
	Contenders []Contender // in the order of their turns, holders first
	Permits    int         // the number of permits of a Semaphore, otherwise zero
	// Issued is the number of sequence numbers that the directory has given out. Its counter
	// ends at 2147483647. Beyond that, locks of this library stay correct and become slower;
	// those of other libraries admit several holders at once. A new path begins at zero.
	Issued int64
}

// Contender is a node in a queue, of any library.
type Contender struct {
	Node    string    // the full path in ZooKeeper
	Kind    Kind      // what it asks for
	Client  string    // the library that created it, as its name shows; empty if unknown
	Holds   bool      // whether it holds
	Token   int64     // Hold.Token, if it is a holder of this library
	Session int64     // the session that it belongs to, zero if no session ends it
	Since   time.Time // when it was created, by the server's clock
	Revoked bool      // whether it was asked to let go
	Data    []byte    // the node's data without such a request; of an election, the value
	Omitted int       // the number of bytes that Inspect has cut off Data, which it limits to 4 KiB

	Anonymous bool // created with Options.Anonymous: without host and process number

	// What a contender of this library says about itself, in its data.
	Host  string
	PID   int
	Label string
}

// Kind is what a contender asks for.
type Kind string

const (
	KindLock   Kind = "lock"   // to be the only one: a mutex, kazoo's write lock, an election
	KindWrite  Kind = "write"  // to be the only one, where others read
	KindRead   Kind = "read"   // to share with other readers
	KindLatch  Kind = "latch"  // to lead, as Curator's LeaderLatch
	KindPermit Kind = "permit" // a permit of a semaphore, or a place in the queue for some
)

// Inspect returns the holders and waiters of the lock at path, whatever library they use. It
// creates no node and changes nothing. For a path that nobody has used, the queue is empty.
func (c *Client) Inspect(ctx context.Context, path string) (*Queue, error) {
	inside, stop := either(ctx, c.life)
	defer stop()
	if err := checkPath(path); err != nil {
		return nil, fmt.Errorf("zklock: inspect %s: %w", printable(path), err)
	}
	q, err := persist(inside, c.requests, func(s *session) (*Queue, error) { return c.look(inside, s, path) })
	if err != nil {
		return nil, fmt.Errorf("zklock: inspect %s: %w", printable(path), c.explain(inside, err))
	}
	return q, nil
}

func (c *Client) look(ctx context.Context, s *session, path string) (*Queue, error) {
	dir := c.root + path
	q := &Queue{Path: path}
	l, err := c.freshList(ctx, s, dir)
	if errors.Is(err, zk.ErrNoNode) {
		return q, nil
	}
	if err != nil {
		return nil, err
	}
	entries := parseEntries(l.names)
	q.Issued = issued(l.stat, entries)
	q.Contenders, err = c.readAll(ctx, s, dir, entries)
	if err == nil && slices.Contains(l.names, leasesDir[1:]) {
		err = c.lookAtPermits(ctx, s, dir, q)
	}
	return q, err
}

// lookAtPermits adds the contenders of a semaphore: the permits that are held, in order, and
// then the places in the queue of those that ask for some. The first of these may have
// created its permits already; only its place in the queue is shown.
func (c *Client) lookAtPermits(ctx context.Context, s *session, dir string, q *Queue) error {
	n, err := c.get(ctx, s, dir+leasesDir)
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	if limit, err := parseLimit(n.data); err == nil { // Curator stores none
		q.Permits = limit
	}
	asking, err := c.lookAtPermitsIn(ctx, s, dir+gateDir, q)
	if err != nil {
		return err
	}
	permits, err := c.lookAtPermitsIn(ctx, s, dir+leasesDir, q)
	if err != nil {
		return err
	}
	q.Contenders = append(q.Contenders, showPermits(permits, asking, q.Permits)...)
	return nil
}

// lookAtPermitsIn reads one of a semaphore's directories.
func (c *Client) lookAtPermitsIn(ctx context.Context, s *session, dir string, q *Queue) ([]Contender, error) {
	l, err := c.list(ctx, s, dir)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	entries := parseEntries(l.names)
	q.Issued = max(q.Issued, issued(l.stat, entries))
	found, err := c.readAll(ctx, s, dir, entries)
	for i := range found {
		found[i].Kind = KindPermit
	}
	return found, err
}

// showPermits returns the nodes of permits that are held, and after them one node for each
// acquire that waits for some. The names of this library's nodes show which belong to one
// acquire: it waits as long as its place in the queue exists and its permits are not all
// within the limit. All other permits of this library are held, even if they are more than
// the limit after a Resize. Permits of other libraries are held if they are within the limit.
func showPermits(permits, asking []Contender, limit int) []Contender {
	asks, made, unfit := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, gate := range asking {
		asks[groupOf(gate.name())] = true
	}
	within := func(i int) bool { return limit == 0 || i < limit }
	for i, p := range permits {
		group := groupOf(p.name())
		made[group] = true
		unfit[group] = unfit[group] || !within(i)
	}
	var shown []Contender
	for i, p := range permits {
		group := groupOf(p.name())
		switch waits := asks[group] && unfit[group]; {
		case group == "":
			p.Holds = within(i)
		case waits:
			continue // its place in the queue is shown instead
		default:
			p.Holds = true
		}
		shown = append(shown, p)
	}
	for _, gate := range asking {
		group := groupOf(gate.name())
		if group != "" && made[group] && !unfit[group] {
			continue // it holds and is about to leave the queue
		}
		gate.Holds = false
		shown = append(shown, gate)
	}
	return shown
}

// issued returns the number of children that a directory has ever had. Cversion counts
// creations plus deletions; adding the children that still exist gives twice the number of
// creations.
func issued(stat *zk.Stat, entries []entry) int64 {
	if slices.ContainsFunc(entries, func(e entry) bool { return e.seq < 0 }) {
		return 1<<31 - 1 // the counter is exhausted
	}
	return int64(uint32(stat.Cversion+stat.NumChildren) / 2)
}

// readersAtOnce bounds how many requests Inspect sends at once, and with that the memory for
// the nodes' data, which can be a megabyte each.
const readersAtOnce = 16

// readAll reads the nodes of entries and returns them in order, without those that are gone.
func (c *Client) readAll(ctx context.Context, s *session, dir string, entries []entry) ([]Contender, error) {
	type found struct {
		entry
		who Contender
	}
	all := make([]*found, len(entries))
	err := sideBySide(c.calls, len(entries), readersAtOnce, func(i int) error {
		e := entries[i]
		n, err := c.get(ctx, s, dir+"/"+e.name)
		if err != nil {
			return ignoreMissing(err)
		}
		e.czxid, e.shared = n.stat.Czxid, e.shared || isDowngraded(n.data)
		all[i] = &found{e, shortened(newContenderOf(dir, e, n))}
		return nil
	})
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(f *found) bool { return f == nil })
	slices.SortFunc(all, func(a, b *found) int { return order(a.entry, b.entry) })
	contenders := make([]Contender, len(all))
	exclusive := false // one of those ahead excludes others
	for i, f := range all {
		contenders[i] = f.who
		contenders[i].Holds = i == 0 || f.shared && !exclusive
		exclusive = exclusive || !f.shared
	}
	return contenders, nil
}

// maxShown is how much of a node's data Inspect keeps.
const maxShown = 4 << 10

// shortened returns who with its data cut to maxShown, and a copy, so that the rest can be
// freed.
func shortened(who Contender) Contender {
	if len(who.Data) > maxShown {
		who.Omitted = len(who.Data) - maxShown
		who.Data = bytes.Clone(who.Data[:maxShown])
	}
	return who
}

// beginning returns as much of text as a label may be long.
func beginning(text string) string {
	if len(text) <= maxLabel {
		return text
	}
	return strings.Clone(strings.ToValidUTF8(text[:maxLabel], "")) // the last character may be cut
}

// newContenderOf returns the Contender that a node is.
func newContenderOf(dir string, e entry, n node) Contender {
	who := Contender{
		Node: dir + "/" + e.name, Kind: kindOf(e.name), Client: clientOf(e.name),
		Token: n.stat.Czxid, Session: n.stat.EphemeralOwner, Since: time.UnixMilli(n.stat.Ctime),
		Revoked: isRevocation(n.data), Data: withoutRevocation(n.data),
	}
	o, ok := readOwner(who.Data)
	who.Anonymous = ok && o.PID == nobody
	if who.Client == ClientZklock && json.Unmarshal(n.data, &o) == nil {
		who.Host, who.PID, who.Label = beginning(o.Host), max(0, o.PID), beginning(o.Label)
	}
	if e.shared {
		who.Kind = KindRead
	}
	return who
}

func kindOf(name string) Kind {
	switch {
	case strings.Contains(name, readerInfix[1:]), strings.Contains(name, kazooReadInfix):
		return KindRead
	case strings.Contains(name, writerInfix[1:]):
		return KindWrite
	case strings.Contains(name, latchInfix):
		return KindLatch
	}
	return KindLock
}

func (who Contender) name() string { return who.Node[strings.LastIndexByte(who.Node, '/')+1:] }

// check returns ErrInvalid if the node is not a contender's: no other node may be written to
// or removed.
func (who Contender) check() error {
	if err := checkPath(who.Node); err != nil {
		return err
	}
	if _, ok := parseEntry(who.name()); !ok {
		return fmt.Errorf("%w: %q is not the node of a contender", ErrInvalid, who.Node)
	}
	return nil
}
