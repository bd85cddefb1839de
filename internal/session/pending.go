// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// A PendingCreate is a create whose reply was lost and whose node does not appear in a listing. It
// may still be executed: it can wait in a server that the client has left. That server refuses it
// while the session is at another server, and executes it when the session comes back. After such a
// listing the caller continues with another node. The client remembers the name of the lost node
// and searches for it after every reconnect, and once more a quarter of the session timeout later.
//
// The search ends when the create can certainly no longer be executed. All writes of one leader
// have the same epoch, and once a write of a later epoch has been answered, no earlier leader
// commits anything. The epoch of the leader that received the create is at most that of a write
// that was sent after the create and answered. Without such a write, the search ends some time
// after the session, because the node would end with the session.
//
// Other server implementations may just count their writes, and the bits that we read as an epoch
// are part of that count. There no session survives its connection, and a ZooKeeper server never
// keeps a connection when its leader changes. So we read an epoch only from what a session has seen
// after a reconnect.
type PendingCreate struct {
	Dir, Prefix string
	Sess        *Session        // the session under which the create was sent
	Owns        int             // how many bytes of what the session owns are counted for it
	Epoch       int32           // of a write sent after the create; zero if unknown
	Moved       <-chan struct{} // closed when the session has moved to another connection since
	over        time.Time
}

// PendingCreates remembers the pending creates of a client and searches for their nodes.
type PendingCreates struct {
	Requests *Requests

	mu  sync.Mutex
	all []*PendingCreate // guarded by mu
	// Guarded by mu: has a buffer for the notification of a new one; nil while there is no search.
	looking chan struct{}
}

// Add remembers a pending create and searches for its node until the outcome is certain.
func (pc *PendingCreates) Add(g *PendingCreate) {
	pc.mu.Lock()
	defer pc.mu.Unlock()
	pc.all = append(pc.all, g)
	if pc.looking != nil {
		select {
		case pc.looking <- struct{}{}:
		default:
		}
		return
	}
	more := make(chan struct{}, 1)
	pc.looking = more
	// Owned by the client; ends when none is left, or with the client's life; Close
	// waits for it.
	pc.Requests.Calls.Run(func() { pc.lookForAll(more) })
}

// lookForAll searches as long as there are pending creates. A value from more starts a search
// immediately.
func (pc *PendingCreates) lookForAll(more <-chan struct{}) {
	for looks := 0; ; {
		s, err := pc.Requests.Link.Attached(pc.Requests.Life)
		if err != nil {
			return
		}
		moved := s.Reattached()
		certain, err := pc.settleAll(pc.Requests.Life, s)
		if certain {
			return
		}
		var later <-chan time.Time
		looks++
		if looks < 2 || err != nil || pc.hasOrphans() {
			later = time.After(s.Lease.Term() / 4)
		}
		select {
		case <-later:
		case <-more:
			looks = 0
		case <-moved:
			looks = 0
		case <-s.Over():
			looks = 0
		case <-pc.Requests.Life.Done():
			return
		}
	}
}

// settleAll removes the nodes that exist, and forgets the creates that can no longer be executed.
// certain reports whether none is left.
func (pc *PendingCreates) settleAll(ctx context.Context, s *Session) (certain bool, err error) {
	if err := pc.Requests.askQuorum(ctx, s); err != nil {
		return false, err
	}
	epoch := s.Epoch() // the listings below are at least as new
	pc.mu.Lock()
	all := slices.Clone(pc.all)
	pc.mu.Unlock()
	listings := map[string][]string{}
	var gone []*PendingCreate
	for _, g := range all {
		names, known := listings[g.Dir]
		if !known {
			l, listErr := pc.Requests.List(ctx, s, g.Dir)
			if listErr != nil && !errors.Is(listErr, zk.ErrNoNode) {
				err = listErr
				continue
			}
			names = l.Names
			listings[g.Dir] = names
		}
		certain, lookErr := pc.settle(ctx, s, g, names, epoch)
		if lookErr != nil {
			err = lookErr
		} else if certain {
			gone = append(gone, g)
		}
	}
	return pc.forget(gone), err
}

// settle removes g's node if it is among names. certain reports whether it can no longer appear.
func (pc *PendingCreates) settle(ctx context.Context, s *Session, g *PendingCreate, names []string, epoch int32) (certain bool, err error) {
	name, err := pc.Requests.OwnAmong(ctx, s, g.Dir, names, g.Prefix, g.Sess)
	if err != nil {
		return false, err
	}
	if name != "" {
		pc.Requests.Log.Info("zklock: removing orphaned node", "path", pc.Requests.CallerPath(g.Dir), "node", name)
		if err := pc.Requests.Delete(ctx, s, g.Dir+"/"+name, -1); !errors.Is(err, zk.ErrNoNode) {
			return err == nil, err
		}
		return true, nil
	}
	return g.isOutdated(s, epoch) || g.isLongOver(), nil
}

// isOutdated reports whether a leader later than any that received the create has replied under s.
func (pc *PendingCreate) isOutdated(s *Session, epoch int32) bool {
	return s == pc.Sess && IsClosed(pc.Moved) && pc.Epoch != 0 && epoch > pc.Epoch
}

// isLongOver reports whether the session has been over for so long that the servers must have ended
// it.
func (pc *PendingCreate) isLongOver() bool {
	if !pc.Sess.IsOver() {
		return false
	}
	if pc.over.IsZero() {
		pc.over = time.Now()
	}
	return time.Since(pc.over) > 2*pc.Sess.Lease.Term()
}

func (pc *PendingCreates) hasOrphans() bool {
	pc.mu.Lock()
	defer pc.mu.Unlock()
	return slices.ContainsFunc(pc.all, func(g *PendingCreate) bool { return g.Sess.IsOver() })
}

// forget drops pending creates. It reports whether none is left, which ends the search.
func (pc *PendingCreates) forget(gone []*PendingCreate) bool {
	pc.mu.Lock()
	defer pc.mu.Unlock()
	for _, g := range gone {
		g.Sess.Own(-g.Owns, 0)
	}
	pc.all = slices.DeleteFunc(pc.all, func(g *PendingCreate) bool { return slices.Contains(gone, g) })
	if len(pc.all) > 0 {
		return false
	}
	pc.looking = nil
	return true
}
