// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/conn"
	"github.com/zklock-go/zklock/internal/frames"
	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
)

// Directories creates the directories of queues.
type Directories struct {
	Requests *Requests
	ACL      []zk.ACL // of the nodes that belong to one lock
	Parents  []zk.ACL // of the nodes above these

	containers support // whether servers create container nodes
}

// MakeDir creates the directory of a queue and the nodes above it. They are container nodes, which
// ZooKeeper removes once they are empty, or persistent nodes if the server does not support
// containers. The last own elements of the path get the lock's ACL, those above them the parents'
// ACL.
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
			return NotPermitted("create", dir, err)
		default:
			if err := p.Next(ctx); err != nil {
				return err
			}
		}
	}
}

// NotPermitted returns err. If the servers refused permission, the error names the operation and the node's
// full path in ZooKeeper, because the ACL of a parent may be the reason.
func NotPermitted(do, path string, err error) error {
	if errors.Is(err, zk.ErrNoAuth) {
		return fmt.Errorf("no permission to %s %s: %w", do, node.Printable(path), err)
	}
	return err
}

func (d *Directories) makeNode(ctx context.Context, s *Session, dir string, acl []zk.ACL) error {
	if err := d.Requests.Ready(ctx, s); err != nil {
		return err
	}
	kind, on := int32(zk.FlagContainer), s.Attachment()
	plain, err := d.lacksContainers(ctx, s)
	if err != nil {
		return err
	}
	if plain {
		kind = zk.FlagPersistent
	}
	_, err = d.Requests.Create(ctx, s, dir, nil, kind, acl)
	if !plain {
		d.judge(err, on)
	}
	return err
}

// lacksContainers reports whether the servers are known to lack container nodes. Before the client's first request for one, it asks
// whether they are ClickHouse Keeper's.
func (d *Directories) lacksContainers(ctx context.Context, s *Session) (bool, error) {
	if missing := d.containers.isMissing(); missing || d.containers.isKnown() {
		return missing, nil
	}
	is, err := d.Requests.OnClickHouse(ctx, s)
	if is {
		d.judge(frames.ErrUnimplemented, s.Attachment())
	}
	return is, err
}

// judge handles the outcome of a request for a container node.
func (d *Directories) judge(err error, on *conn.Attachment) {
	if d.containers.judge(err, on) {
		d.Requests.Log.Info("zklock: server does not support container nodes; empty lock directories will not be removed")
	}
}
