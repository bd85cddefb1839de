// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/evidence/history"
	"github.com/zklock-go/zklock/operate"
)

// evict evicts all or some contenders of a lock, through a separate client, as an operator does.
func evict(f *fleet, r *rand.Rand) (hit reach) {
	hit = only("operator")
	l := f.plan.Locks[r.IntN(len(f.plan.Locks))].one()
	all, oneIn := r.IntN(2) == 0, 1+r.IntN(3)
	ctx, cancel := context.WithTimeout(f.end, f.plan.Timeout)
	defer cancel()
	operator, err := f.operator(ctx, "operator", f.plan.Timeout)
	if err != nil {
		return hit
	}
	defer operator.Close()
	f.evicts(l.Path, 1<<63-1)
	defer func() { f.evicts(l.Path, f.rec.Now()) }()
	// Inspect shows a semaphore's holders and its waiters, which are in another directory.
	if q, err := operate.Inspect(ctx, operator, l.Path); err == nil {
		who := slices.DeleteFunc(q.Contenders, func(zklock.Contender) bool { return !all && r.IntN(oneIn) > 0 })
		_, waiting := apart(who)
		for _, node := range nodesOf(who) {
			hit.only = append(hit.only, f.owner(node))
		}
		op := f.rec.Begin(history.Op{Kind: history.Evict, Recipe: l.Recipe, Path: l.Path, Client: "operator", Nodes: nodesOf(waiting)})
		op.Finished(history.Granted, operate.Evict(ctx, operator, "", who...)) // a contender may have left first
	}
	return hit
}

// curator acquires an RWMutex or a Mutex like a writer of Curator, and often downgrades like Curator: it creates a reader's node with
// the same number, and then deletes the writer's node.
func curator(f *fleet, r *rand.Rand) reach {
	locks := slices.DeleteFunc(slices.Clone(f.plan.Locks), func(l Lock) bool {
		return l.Recipe != history.RW && l.Recipe != history.Mutex
	})
	if len(locks) == 0 {
		return only(guestName)
	}
	conn, _, err := zk.Connect(f.srv.Addrs(), f.plan.Timeout, zk.WithDialer(f.srv.DialFrom("curator")), zk.WithLogInfo(false),
		zk.WithLogger(silent{}))
	if err != nil {
		return only(guestName)
	}
	defer conn.Close()
	g := &guest{f: f, conn: conn, lock: locks[r.IntN(len(locks))]}
	if g.enter() && g.awaitTurn(time.Now().Add(20*f.plan.Hold+f.plan.Timeout)) {
		g.use(r)
	}
	return only(guestName)
}

type silent struct{}

func (silent) Printf(string, ...any) {}

// guest is a writer of Curator.
type guest struct {
	f    *fleet
	conn *zk.Conn
	lock Lock
	node string
}

// enter creates the writer's node. The directory must exist.
func (g *guest) enter() bool {
	const name = "/_c_01234567-89ab-cdef-0123-456789abcdef-__WRIT__"
	node, err := g.conn.Create(g.lock.Path+name, nil, zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
	g.node = node
	_, plain := history.PlainNumber(node)
	return err == nil && plain
}

// awaitTurn waits until no contender is ahead.
func (g *guest) awaitTurn(until time.Time) bool {
	for time.Now().Before(until) {
		names, _, err := g.conn.Children(g.lock.Path)
		if err == zk.ErrNoNode || err == nil && !slices.Contains(names, path.Base(g.node)) {
			return false
		}
		if err == nil && !slices.ContainsFunc(names, g.isBehind) {
			return true
		}
		time.Sleep(g.f.plan.Tick)
	}
	return false
}

// isBehind reports whether our node is behind the named one.
func (g *guest) isBehind(name string) bool {
	number, plain := history.PlainNumber(name)
	own, _ := history.PlainNumber(g.node)
	return contends(g.lock.Path+"/"+name) && plain && number < own
}

// use holds the lock for a while. In the history, it relies on the hold only for an instant, because Curator has no lease.
func (g *guest) use(r *rand.Rand) {
	stat, err := g.conn.Set(g.node, nil, -1) // needs a quorum
	if err != nil || !g.isThere() {
		return
	}
	writer := g.note(history.Op{}, stat.Czxid)
	time.Sleep(around(r, g.f.plan.Hold/2))
	if r.IntN(4) > 0 {
		writing := g.node
		g.node = strings.Replace(writing, "__WRIT__", "__READ__", 1)
		// Curator does not check the writer's node. Without a check, it would hold together with the next writer if that node
		// was deleted.
		_, err := g.conn.Multi(&zk.CheckVersionRequest{Path: writing, Version: -1},
			&zk.CreateRequest{Path: g.node, Acl: zk.WorldACL(zk.PermAll), Flags: zk.FlagEphemeral})
		if err != nil || !g.isThere() {
			return
		}
		g.note(history.Op{Shared: true, Outer: writer.ID()}, stat.Czxid)
		_ = g.conn.Delete(writing, -1)
		time.Sleep(around(r, g.f.plan.Hold))
	}
	_ = g.conn.Delete(g.node, -1)
}

// isThere reports whether the node still exists. Curator does not check this, and can hold together with others after a late reply,
// which is not a violation of zklock's promises.
func (g *guest) isThere() bool {
	n, ok := g.f.srv.Node(g.node)
	return ok && n.EphemeralOwner == g.conn.SessionID()
}

func (g *guest) note(op history.Op, token int64) *history.Handle {
	op.Recipe, op.Path, op.Client = g.lock.Recipe, g.lock.Path, guestName
	h := g.f.rec.Begin(op)
	h.Granted(g.node, token)
	h.Ended()
	return h
}
