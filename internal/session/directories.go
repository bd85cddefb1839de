package session

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/frames"
	"github.com/zklock-go/zklock/internal/outcome"
)

// Directories makes the directories of queues.
type Directories struct {
	Requests *Requests
	ACL      []zk.ACL // of the nodes that belong to one lock
	Parents  []zk.ACL // of the nodes above these

	mu      sync.Mutex      // guards what follows
	hangUps int             // connections in a row that ended on a request for a container node
	hungUp  <-chan struct{} // the last of them: what Reattached returned on it
	known   bool            // a server has answered such a request
}

// MakeDir creates the directory of a queue and the nodes above it. They are containers,
// which ZooKeeper removes when they have become empty, or plain nodes where the server does
// not know containers. The last own parts of the path get the lock's ACL, those above them
// the parents'.
func (d *Directories) MakeDir(ctx context.Context, s *Session, dir string, own int) error {
	acl := d.Parents
	if own > 0 {
		acl = d.ACL
	}
	var p Pace
	for {
		err := d.makeNode(ctx, s, dir, acl)
		switch {
		case err == nil || errors.Is(err, zk.ErrNodeExists):
			return nil
		case errors.Is(err, zk.ErrNoNode):
			if parent := dir[:strings.LastIndexByte(dir, '/')]; parent != "" {
				err = d.MakeDir(ctx, s, parent, own-1)
			}
			if err != nil {
				return err
			}
		case !outcome.IsTransient(err) || ctx.Err() != nil:
			return err
		default:
			if err := p.Next(ctx); err != nil {
				return err
			}
		}
	}
}

func (d *Directories) makeNode(ctx context.Context, s *Session, dir string, acl []zk.ACL) error {
	if err := d.Requests.Ready(ctx, s); err != nil {
		return err
	}
	kind, on := int32(zk.FlagContainer), s.Reattached()
	plain := d.isPlain()
	if plain {
		kind = zk.FlagPersistent
	}
	_, err := d.Requests.Create(ctx, s, dir, nil, kind, acl)
	if !plain && d.judgeContainers(err, on) {
		d.Requests.Log.Info("zklock: the server has no container nodes, directories of locks will stay")
	}
	return err
}

// enoughHangUps is how many connections in a row may end on a request for a container before the client stops asking
// for containers: some servers hang up on a request that they do not know. Those that have answered one do know it, and
// other servers take their place seldom, so that then it takes manyHangUps.
const (
	enoughHangUps = 2
	manyHangUps   = 10
)

// isPlain reports whether the servers have no containers.
func (d *Directories) isPlain() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.hangUps >= d.mostHangUps()
}

// mostHangUps must be called with mu held.
func (d *Directories) mostHangUps() int {
	if d.known {
		return manyHangUps
	}
	return enoughHangUps
}

// judgeContainers takes the outcome of a request for a container that was sent on a connection. It counts the
// connections that ended so, and reports whether it has just turned out that the servers do not have containers.
func (d *Directories) judgeContainers(err error, on <-chan struct{}) (plain bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	before := d.hangUps
	switch {
	case errors.Is(err, frames.ErrUnimplemented):
		d.hangUps, d.known = enoughHangUps, false
	case errors.Is(err, zk.ErrConnectionClosed), errors.Is(err, outcome.ErrSessionOver): // some give out another session as well
		if d.hungUp != on { // a connection takes all requests with it that are under way
			d.hangUps, d.hungUp = d.hangUps+1, on
		}
	case err == nil || outcome.IsRefusal(err):
		d.hangUps, d.known = 0, true
	}
	most := d.mostHangUps()
	return before < most && d.hangUps >= most
}
