// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/conn"
	"github.com/zklock-go/zklock/internal/outcome"
)

// A PendingCreate is a create whose reply was lost and whose node does not appear in a listing. It
// may still be executed: it can wait in a server that the client has left. That server refuses it
// while the session is at another server, and executes it when the session comes back. After such a
// listing the caller continues with another node. The connection's PendingCreates remember the name of the
// lost node and search for it after every reconnect, and once more a quarter of the session timeout later.
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
	By          *Requests // of the client that has sent it, for log lines
	Dir, Prefix string
	Sess        *Session        // the session under which the create was sent
	Owns        int             // how many bytes of what the session owns are counted for it
	Epoch       int32           // of a write sent after the create; zero if unknown
	Moved       <-chan struct{} // closed when the session has moved to another connection since
	over        time.Time
}

// PendingCreates remembers the pending creates of a connection's clients and searches for their nodes, also after a client is closed.
type PendingCreates struct {
	requests *Requests // which belong to no client
	sweeper  *Sweeper

	mu    sync.Mutex
	all   []*PendingCreate // guarded by mu
	at    *conn.Attachment // guarded by mu: during which the last search was; nil if a create was added since
	first time.Time        // guarded by mu: when the first search during it began
}

func newPendingCreates(h *Hub, r *Requests) *PendingCreates {
	pc := &PendingCreates{requests: r}
	pc.sweeper = h.NewSweeper(pc.isAny, pc.look)
	return pc
}

func (pc *PendingCreates) isAny() bool {
	pc.mu.Lock()
	defer pc.mu.Unlock()
	return len(pc.all) > 0
}

// Add remembers a pending create and searches for its node until the outcome is certain.
func (pc *PendingCreates) Add(g *PendingCreate) {
	pc.mu.Lock()
	pc.all, pc.at = append(pc.all, g), nil
	pc.mu.Unlock()
	pc.sweeper.Wake()
}

// look searches once, and returns the time until the next search, or zero if no pending create is left. The Sweeper may call it
// early, so the second search that is due is one that begins late enough.
func (pc *PendingCreates) look(ctx context.Context, s *Session) time.Duration {
	again := s.Lease.Term() / 4
	since := pc.beginLook(s.Attachment())
	certain, err := pc.settleAll(ctx, s)
	pc.mu.Lock()
	defer pc.mu.Unlock()
	switch {
	case certain:
		return 0
	case err != nil || since < again || pc.hasOrphans():
		return again
	}
	return never // until the session moves
}

// beginLook returns the time since the first search on the connection, also since the last Add.
func (pc *PendingCreates) beginLook(at *conn.Attachment) time.Duration {
	pc.mu.Lock()
	defer pc.mu.Unlock()
	if pc.at != at {
		pc.at, pc.first = at, time.Now()
	}
	return time.Since(pc.first)
}

// settleAll removes the nodes that exist, and forgets the creates that can no longer be executed.
// certain reports whether none is left.
func (pc *PendingCreates) settleAll(ctx context.Context, s *Session) (certain bool, err error) {
	if err := pc.requests.askQuorum(ctx, s); err != nil {
		return false, err
	}
	epoch := s.Epoch() // the listings below are at least as new
	pc.mu.Lock()
	all := slices.Clone(pc.all)
	pc.mu.Unlock()
	listings := map[string]listingOrErr{} // also those that failed: many creates can be pending in a directory
	var gone []*PendingCreate
	for _, g := range all {
		l, known := listings[g.Dir]
		if !known {
			l = pc.list(ctx, s, g.Dir)
			listings[g.Dir] = l
		}
		if l.err != nil {
			err = l.err
			continue
		}
		certain, lookErr := pc.settle(ctx, s, g, l.names, epoch)
		if lookErr != nil {
			err = lookErr
		} else if certain {
			gone = append(gone, g)
		}
	}
	return pc.forget(gone), err
}

// listingOrErr is the result of listing a directory in a search.
type listingOrErr struct {
	names []string
	err   error
}

// list lists a directory. A missing one has no children.
func (pc *PendingCreates) list(ctx context.Context, s *Session, dir string) listingOrErr {
	l, err := pc.requests.ListAlone(ctx, s, dir)
	return listingOrErr{l.Names, outcome.IgnoreMissing(err)}
}

// settle removes g's node if it is among names. certain reports whether it can no longer appear.
func (pc *PendingCreates) settle(ctx context.Context, s *Session, g *PendingCreate, names []string, epoch int32) (certain bool, err error) {
	name, err := pc.requests.OwnAmong(ctx, s, g.Dir, names, g.Prefix, g.Sess)
	if err != nil {
		return false, err
	}
	if name != "" {
		g.By.Log.Info("zklock: removing orphaned node", "path", g.By.CallerPath(g.Dir), "node", name)
		if err := pc.requests.Delete(ctx, s, g.Dir+"/"+name, -1); !errors.Is(err, zk.ErrNoNode) {
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

// hasOrphans must be called with mu held.
func (pc *PendingCreates) hasOrphans() bool {
	return slices.ContainsFunc(pc.all, func(g *PendingCreate) bool { return g.Sess.IsOver() })
}

// forget drops pending creates. It reports whether none is left.
func (pc *PendingCreates) forget(gone []*PendingCreate) bool {
	pc.mu.Lock()
	defer pc.mu.Unlock()
	for _, g := range gone {
		g.Sess.Own(-g.Owns, 0)
	}
	pc.all = slices.DeleteFunc(pc.all, func(g *PendingCreate) bool { return slices.Contains(gone, g) })
	return len(pc.all) == 0
}
