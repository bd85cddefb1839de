package zklock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
)

// Queue is what stands below a lock's path, as Inspect found it.
type Queue struct {
	Path       string      // as it was given
	Contenders []Contender // in the order of their turns, holders first
	Permits    int         // of a Semaphore: how many there are; else zero
	// Issued is how many sequence numbers the directory has given out. Its counter ends
	// at 2147483647. Locks of this library stay right beyond that, slower; those of
	// other clients let several in at once. A new path starts at zero.
	Issued int64
}

// Contender is a node in a queue, of whatever client.
type Contender struct {
	Node    string // its full path in ZooKeeper
	Kind    Kind
	Client  string    // the library that made it, as its name shows; empty if unknown
	Holds   bool      // nobody stands in its way
	Token   int64     // what Hold.Token is for a holder of this library
	Session int64     // whose end ends it
	Since   time.Time // when it was made, by the server's clock
	Revoked bool      // it was asked to let go
	Data    []byte    // without such a request; of an election: the value

	// From the data, of contenders of this library.
	Host  string
	PID   int
	Label string
}

// Kind is what a contender wants.
type Kind string

const (
	KindLock   Kind = "lock"   // to be alone: a mutex, kazoo's write lock, an election
	KindWrite  Kind = "write"  // to be alone, where others read
	KindRead   Kind = "read"   // to share with other readers
	KindLatch  Kind = "latch"  // to lead, by Curator's LeaderLatch
	KindPermit Kind = "permit" // one permit of a semaphore, or a place in the queue for some
)

// Libraries that Inspect knows by their nodes' names.
const (
	ClientZklock  = "zklock"
	ClientCurator = "Curator"
	ClientKazoo   = "kazoo"
	ClientGo      = "go-zookeeper"
)

// Inspect tells who holds and who waits below a path, whatever library they use. It
// takes part in nothing and changes nothing. A path that nobody has used is an empty queue.
func (c *Client) Inspect(ctx context.Context, path string) (*Queue, error) {
	inside, stop := either(ctx, c.life)
	defer stop()
	if err := checkPath(path); err != nil {
		return nil, fmt.Errorf("zklock: inspect %s: %w", path, err)
	}
	q, err := persist(inside, c, func(s *session) (*Queue, error) { return c.look(inside, s, path) })
	if err != nil {
		return nil, fmt.Errorf("zklock: inspect %s: %w", path, c.explain(inside, err))
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

// lookAtPermits adds what is below a semaphore's path: the permits in order, then those
// who ask for some, of whom the first may have its nodes among the permits already.
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
	for _, sub := range []string{leasesDir, gateDir} {
		l, err := c.list(ctx, s, dir+sub)
		if errors.Is(err, zk.ErrNoNode) {
			continue
		}
		if err != nil {
			return err
		}
		entries := parseEntries(l.names)
		q.Issued = max(q.Issued, issued(l.stat, entries))
		who, err := c.readAll(ctx, s, dir+sub, entries)
		if err != nil {
			return err
		}
		for i := range who {
			who[i].Kind = KindPermit
			who[i].Holds = sub == leasesDir && (i < q.Permits || q.Permits == 0)
		}
		q.Contenders = append(q.Contenders, who...)
	}
	return nil
}

// freshList lists a directory as the quorum knows it: a server that lags would show what was.
func (c *Client) freshList(ctx context.Context, s *session, dir string) (listing, error) {
	if err := c.sync(ctx, s, dir); err != nil {
		return listing{}, err
	}
	return c.list(ctx, s, dir)
}

// issued is the directory's counter. ZooKeeper shows creations and deletions in one
// number, of which those children are missing that are there.
func issued(stat *zk.Stat, entries []entry) int64 {
	if slices.ContainsFunc(entries, func(e entry) bool { return e.seq < 0 }) {
		return 1<<31 - 1 // it has run over
	}
	return int64(uint32(stat.Cversion+stat.NumChildren) / 2)
}

// readAll reads the nodes of entries and puts them in order, without those gone meanwhile.
func (c *Client) readAll(ctx context.Context, s *session, dir string, entries []entry) ([]Contender, error) {
	plain := allPlain(entries)
	read := map[string]node{}
	var there []entry
	for _, e := range entries {
		n, err := c.get(ctx, s, dir+"/"+e.name)
		if errors.Is(err, zk.ErrNoNode) {
			continue
		}
		if err != nil {
			return nil, err
		}
		e.czxid, e.shared = n.stat.Czxid, e.shared || isDowngraded(n.data)
		read[e.name] = n
		there = append(there, e)
	}
	slices.SortFunc(there, order(plain))
	contenders := make([]Contender, len(there))
	for i, e := range there {
		contenders[i] = newContenderOf(dir, e, read[e.name])
		contenders[i].Holds = !blocked(there[:i], e)
	}
	return contenders, nil
}

// blocked says whether one of those ahead stands in e's way.
func blocked(ahead []entry, e entry) bool {
	if e.shared {
		return afterExclusive(ahead) >= 0
	}
	return afterAll(ahead) >= 0
}

// newContenderOf tells what a node is.
func newContenderOf(dir string, e entry, n node) Contender {
	who := Contender{
		Node: dir + "/" + e.name, Kind: kindOf(e.name), Client: clientOf(e.name),
		Token: n.stat.Czxid, Session: n.stat.EphemeralOwner, Since: time.UnixMilli(n.stat.Ctime),
		Revoked: isRevocation(n.data), Data: withoutRevocation(n.data),
	}
	var o owner
	if who.Client == ClientZklock && json.Unmarshal(n.data, &o) == nil {
		who.Host, who.PID, who.Label = o.Host, o.PID, o.Label
	}
	if e.shared {
		who.Kind = KindRead
	}
	return who
}

func kindOf(name string) Kind {
	switch {
	case strings.Contains(name, "__READ__"), strings.Contains(name, "__rlock__"):
		return KindRead
	case strings.Contains(name, "__WRIT__"):
		return KindWrite
	case strings.Contains(name, "-latch-"):
		return KindLatch
	}
	return KindLock
}

// clients are told by how they make a name unique.
var clients = []struct {
	name *regexp.Regexp
	is   string
}{
	{regexp.MustCompile(`^_c_` + guidMark + `[0-9a-f]{26}-`), ClientZklock},
	{regexp.MustCompile(`^_c_[0-9a-f]{32}-`), ClientGo},
	{regexp.MustCompile(`^_c_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-`), ClientCurator},
	{regexp.MustCompile(`^[0-9a-f]{32}__r?lock__`), ClientKazoo},
}

func clientOf(name string) string {
	for _, c := range clients {
		if c.name.MatchString(name) {
			return c.is
		}
	}
	return ""
}

func (who Contender) name() string { return who.Node[strings.LastIndexByte(who.Node, '/')+1:] }

// check refuses what is no contender's node: nothing else may be written to or removed.
func (who Contender) check() error {
	if err := checkPath(who.Node); err != nil {
		return err
	}
	if _, ok := parseEntry(who.name()); !ok {
		return fmt.Errorf("%w: %q is no contender's node", ErrInvalid, who.Node)
	}
	return nil
}
