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

	mu      sync.Mutex
	hangUps int // guarded by mu: connections in a row that ended on a request for a container node
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
	d.mu.Lock()
	plain := d.hangUps >= enoughHangUps
	d.mu.Unlock()
	kind := int32(zk.FlagContainer)
	if plain {
		kind = zk.FlagPersistent
	}
	_, err := d.Requests.Create(ctx, s, dir, nil, kind, acl)
	if !plain {
		d.judgeContainers(err)
	}
	return err
}

// enoughHangUps is how many requests for a container in a row may end with a lost
// connection before the client stops asking for containers: some servers hang up on a
// request that they do not know.
const enoughHangUps = 2

// judgeContainers counts the hang-ups on requests for a container, and notes when the server
// does not have them.
func (d *Directories) judgeContainers(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case errors.Is(err, frames.ErrUnimplemented):
		d.hangUps = enoughHangUps
	case errors.Is(err, zk.ErrConnectionClosed), errors.Is(err, outcome.ErrSessionOver): // some give out another session as well
		d.hangUps++
	case err == nil || outcome.IsRefusal(err):
		d.hangUps = 0
	}
	if d.hangUps == enoughHangUps {
		d.Requests.Log.Info("zklock: the server has no container nodes, directories of locks will stay")
	}
}
