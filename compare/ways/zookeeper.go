// SPDX-License-Identifier: Apache-2.0

package ways

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/go-zookeeper/zk"
)

// zkRoot is the parent of all locks on ZooKeeper.
const zkRoot = "/compare"

type zkWay struct {
	plain
	at   Endpoints
	make func(conn *zk.Conn, path string, signs *signs) Locker
}

func newGoZooKeeper(at Endpoints) Way {
	return zkWay{plain{Info{"go-zookeeper", "ZooKeeper", "zk.Lock of the Go client: the reference", false, ""}}, at,
		func(conn *zk.Conn, path string, signs *signs) Locker {
			return &goZKLocker{lock: zk.NewLock(conn, path, zk.WorldACL(zk.PermAll)), signs: signs}
		}}
}

// NewFloor returns a way that only creates and deletes one ephemeral sequential node. It is not a lock, but shows the lowest
// cost that a lock on ZooKeeper can have.
func NewFloor(at Endpoints) Way {
	return zkWay{plain{Info{"create+delete", "ZooKeeper", "no lock: one node created and deleted, the floor", false, ""}}, at,
		func(conn *zk.Conn, path string, _ *signs) Locker { return &floorLocker{conn: conn, path: path} }}
}

// HandOffFloor is not a lock, either. One client deletes a node, and another receives the event of its watch. That is the
// lowest cost that a hand-off on ZooKeeper can have.
type HandOffFloor struct{ zkWay }

// NewHandOffFloor returns the floor of hand-offs.
func NewHandOffFloor(at Endpoints) HandOffFloor {
	w := NewFloor(at).(zkWay)
	w.info = Info{"delete+event", "ZooKeeper", "no lock: from one client's delete of a node to the event at another one, the floor of a hand-off", false, ""}
	return HandOffFloor{w}
}

// Pair opens two clients for hand-offs with nodes in the directory of that name.
func (w HandOffFloor) Pair(ctx context.Context, name string) (*HandOffPair, error) {
	deleter, err := w.Open(ctx)
	if err != nil {
		return nil, err
	}
	p := &HandOffPair{deleter: deleter.(zkSession).conn, path: zkRoot + "/" + name}
	if _, err := deleter.Locker(ctx, name); err != nil { // creates the directory
		p.Close()
		return nil, err
	}
	watcher, err := w.Open(ctx)
	if err != nil {
		p.Close()
		return nil, err
	}
	p.watcher = watcher.(zkSession).conn
	return p, nil
}

// HandOffPair has two clients: one deletes nodes, and the other watches them. It is not safe for concurrent use.
type HandOffPair struct {
	deleter, watcher *zk.Conn
	path             string
}

// Close closes both clients.
func (p *HandOffPair) Close() {
	p.deleter.Close()
	if p.watcher != nil {
		p.watcher.Close()
	}
}

// HandOff creates and deletes a node, and returns the time from the start of its deletion to the event.
func (p *HandOffPair) HandOff(ctx context.Context) (time.Duration, error) {
	node, err := p.deleter.Create(p.path+"/n-", nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
	if err != nil {
		return 0, err
	}
	gone, err := p.watch(ctx, node)
	if err != nil {
		return 0, err
	}
	deleted := make(chan error, 1)
	began := time.Now()
	// Ends when Delete returns, at the latest when the pair is closed.
	go func() { deleted <- p.deleter.Delete(node, -1) }()
	for {
		select {
		case e := <-gone:
			return time.Since(began), e.Err
		case err := <-deleted:
			if err != nil {
				return 0, err
			}
			deleted = nil
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// watch sets a watch on a node. If the watcher's server does not have the node yet, it waits for it.
func (p *HandOffPair) watch(ctx context.Context, node string) (<-chan zk.Event, error) {
	for {
		there, _, events, err := p.watcher.ExistsW(node)
		if err != nil || there {
			return events, err
		}
		select {
		case <-events:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (w zkWay) Open(ctx context.Context) (Session, error) {
	told := &signs{more: make(chan struct{})}
	conn, err := zkConnect(ctx, w.at, told)
	if err != nil {
		return nil, err
	}
	return zkSession{w, conn, told}, nil
}

// zkConnect connects and waits for the session, so that no figure includes this time.
func zkConnect(ctx context.Context, at Endpoints, told *signs) (*zk.Conn, error) {
	dial := zk.WithDialer(net.DialTimeout)
	if at.TLS != nil {
		dial = zk.WithDialer(func(network, address string, timeout time.Duration) (net.Conn, error) {
			return tls.DialWithDialer(&net.Dialer{Timeout: timeout}, network, address, at.TLS)
		})
	}
	conn, events, err := zk.Connect(at.ZooKeeper, Lease, dial, zk.WithLogger(silentZK{}), zk.WithLogInfo(false), zk.WithEventCallback(told.event))
	if err != nil {
		return nil, err
	}
	timeout := time.NewTimer(20 * time.Second)
	defer timeout.Stop()
	for {
		select {
		case e := <-events:
			if e.State == zk.StateHasSession {
				return conn, nil
			}
		case <-ctx.Done():
			conn.Close()
			return nil, ctx.Err()
		case <-timeout.C:
			conn.Close()
			return nil, fmt.Errorf("no session from %v", at.ZooKeeper)
		}
	}
}

type silentZK struct{}

func (silentZK) Printf(string, ...any) {}

// event adds the sign that a change of the connection's state is for a holder.
func (s *signs) event(e zk.Event) {
	if e.Type != zk.EventSession {
		return
	}
	switch e.State {
	case zk.StateDisconnected:
		s.add(Doubt)
	case zk.StateHasSession:
		s.add(Trust)
	case zk.StateExpired:
		s.add(Loss)
	}
}

type zkSession struct {
	way   zkWay
	conn  *zk.Conn
	signs *signs
}

func (s zkSession) Close() error {
	s.conn.Close()
	return nil
}

func (s zkSession) Locker(_ context.Context, name string) (Locker, error) {
	path := zkRoot + "/" + name
	for _, p := range []string{zkRoot, path} {
		if _, err := s.conn.Create(p, nil, 0, zk.WorldACL(zk.PermAll)); err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return nil, err
		}
	}
	return s.way.make(s.conn, path, s.signs), nil
}

type goZKLocker struct {
	lock  *zk.Lock
	signs *signs
	told  int // number of signs that the holder has received
}

func (l *goZKLocker) Lock(context.Context) error {
	err := l.lock.Lock()
	l.told = l.signs.count()
	return err
}

func (l *goZKLocker) Sign(ctx context.Context) (Sign, error) {
	l.told++
	return l.signs.await(ctx, l.told-1)
}

func (l *goZKLocker) Unlock(context.Context) error { return l.lock.Unlock() }
func (l *goZKLocker) Held(context.Context) bool    { return true }
func (l *goZKLocker) Token() int64                 { return 0 }
func (l *goZKLocker) Close() error                 { return nil }

type floorLocker struct {
	conn *zk.Conn
	path string
	node string
}

func (l *floorLocker) Lock(context.Context) (err error) {
	l.node, err = l.conn.Create(l.path+"/n-", nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
	return err
}

func (l *floorLocker) Unlock(context.Context) error { return l.conn.Delete(l.node, -1) }
func (l *floorLocker) Held(context.Context) bool    { return true }
func (l *floorLocker) Token() int64                 { return 0 }
func (l *floorLocker) Close() error                 { return nil }
