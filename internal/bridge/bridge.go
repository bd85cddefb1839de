// SPDX-License-Identifier: Apache-2.0

// Package bridge gives packages operate, shards and slots access to the unexported parts of a Client, a
// Hold and Options.
package bridge

import (
	"context"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/conn"
	"github.com/zklock-go/zklock/internal/frames"
	"github.com/zklock-go/zklock/internal/queue"
	"github.com/zklock-go/zklock/internal/session"
)

// Client contains the parts of a *zklock.Client.
type Client struct {
	*queue.Engine
	Root     string // the prefix of every path
	Identity []byte // the data with which its nodes identify it
}

// Hold contains the parts of a *zklock.Hold.
type Hold struct {
	Engine *queue.Engine
	Nodes  []*session.OwnNode
}

// Target contains what a client would connect to, and how.
type Target struct {
	Servers                  []string
	Chroot                   string // of the list of servers
	Root                     string // the prefix of every path; begins with Chroot
	Dial                     zk.Dialer
	Login                    *conn.Login      // nil: none
	Credentials              []frames.Request // without that of a login
	SessionTimeout, TickTime time.Duration
	ACL                      []zk.ACL
}

// Package zklock sets these.
var (
	TargetOf func(servers []string, opts any) (Target, error) // takes a *zklock.Options
	ClientOf func(client any) Client                          // takes a *zklock.Client
	HoldOf   func(hold any) Hold                              // takes a *zklock.Hold
	// Join takes a *zklock.Client, and acquires a place at path that nothing but a lock for writing
	// there excludes. data is the content of its node. The hold is a *zklock.Hold.
	Join func(ctx context.Context, client any, path string, data []byte) (hold any, err error)
)
