package ways

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"
)

// zkRoot is the parent of all locks on ZooKeeper.
const zkRoot = "/compare"

type zkWay struct {
	plain
	servers []string
	make    func(conn *zk.Conn, path string) Locker
}

func newGoZooKeeper(at Endpoints) Way {
	return zkWay{plain{Info{"go-zookeeper", "ZooKeeper", "zk.Lock of the Go client: the reference", false, ""}}, at.ZooKeeper,
		func(conn *zk.Conn, path string) Locker {
			return &goZKLocker{zk.NewLock(conn, path, zk.WorldACL(zk.PermAll))}
		}}
}

// NewFloor is no lock at all: one ephemeral sequential node created and deleted again, the least that a lock on
// ZooKeeper can cost.
func NewFloor(at Endpoints) Way {
	return zkWay{plain{Info{"create+delete", "ZooKeeper", "no lock: one node created and deleted, the floor", false, ""}}, at.ZooKeeper,
		func(conn *zk.Conn, path string) Locker { return &floorLocker{conn: conn, path: path} }}
}

func (w zkWay) Open(ctx context.Context) (Session, error) {
	conn, err := zkConnect(ctx, w.servers)
	if err != nil {
		return nil, err
	}
	return zkSession{w, conn}, nil
}

// zkConnect connects and waits for the session, so that no figure contains it.
func zkConnect(ctx context.Context, servers []string) (*zk.Conn, error) {
	conn, events, err := zk.Connect(servers, Lease, zk.WithLogger(silentZK{}), zk.WithLogInfo(false))
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
			return nil, fmt.Errorf("no session from %v", servers)
		}
	}
}

type silentZK struct{}

func (silentZK) Printf(string, ...any) {}

type zkSession struct {
	way  zkWay
	conn *zk.Conn
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
	return s.way.make(s.conn, path), nil
}

type goZKLocker struct{ lock *zk.Lock }

func (l *goZKLocker) Lock(context.Context) error   { return l.lock.Lock() }
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
