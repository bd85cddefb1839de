package session

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// A PendingCreate is a create whose answer was lost and whose node a listing does not show. It may still run: it can
// wait in a server that the client has left. There it is refused as long as the session is at another server, and
// runs when the session comes back. The caller goes on with another node after such a listing. The client remembers
// the name of the lost one, and looks for it again after every reconnect and once more a heartbeat later.
//
// The search ends when the create certainly cannot run any more. All writes of one leader
// have the same epoch, and when a write of a later epoch has been answered, no earlier
// leader commits anything. The epoch of the leader that the create was sent to is at most
// that of a write that was sent after the create and answered. Without such a write, the
// search ends some time after the session, because the node would end with the session.
//
// A server of another make may just count its writes, and where we look for an epoch that
// count goes on. No session there survives its connection, and no ZooKeeper server goes on with
// a connection when its leader changes. So only what a session has seen after a reconnect is an
// epoch.
type PendingCreate struct {
	Dir, Prefix string
	Sess        *Session        // the create was sent under it
	Owns        int             // how many bytes of what the session owns are counted for it
	Epoch       int32           // of a write sent after the create; zero if that is not known
	Moved       <-chan struct{} // closed when the session was on another connection after that
	over        time.Time
}

// PendingCreates remembers the pending creates of a client and looks for them.
type PendingCreates struct {
	Requests *Requests

	mu      sync.Mutex
	all     []*PendingCreate // guarded by mu
	looking chan struct{}    // guarded by mu: has room for the news of another one; nil while none is looked for
}

// Add remembers a pending create, and looks for it until the outcome is certain.
func (h *PendingCreates) Add(g *PendingCreate) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, g)
	if h.looking != nil {
		select {
		case h.looking <- struct{}{}:
		default:
		}
		return
	}
	more := make(chan struct{}, 1)
	h.looking = more
	// Owned by the client; ends when none is left, or with the client's life; Close
	// waits for it.
	h.Requests.Calls.Run(func() { h.lookForAll(more) })
}

// lookForAll looks for them as long as there are any. It looks at once when more receives.
func (h *PendingCreates) lookForAll(more <-chan struct{}) {
	for looks := 0; ; {
		s, err := h.Requests.Link.Attached(h.Requests.Life)
		if err != nil {
			return
		}
		moved := s.Reattached()
		certain, err := h.settleAll(h.Requests.Life, s)
		if certain {
			return
		}
		var later <-chan time.Time
		if looks++; looks < 2 || err != nil || h.hasOrphans() {
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
		case <-h.Requests.Life.Done():
			return
		}
	}
}

// settleAll removes the nodes that exist, and forgets the creates that cannot appear
// any more. certain reports whether none is left.
func (h *PendingCreates) settleAll(ctx context.Context, s *Session) (certain bool, err error) {
	if err := h.Requests.askQuorum(ctx, s); err != nil {
		return false, err
	}
	epoch := s.Epoch() // the listings below are at least as new
	h.mu.Lock()
	all := slices.Clone(h.all)
	h.mu.Unlock()
	listings := map[string][]string{}
	var gone []*PendingCreate
	for _, g := range all {
		names, known := listings[g.Dir]
		if !known {
			l, listErr := h.Requests.List(ctx, s, g.Dir)
			if listErr != nil && !errors.Is(listErr, zk.ErrNoNode) {
				err = listErr
				continue
			}
			names = l.Names
			listings[g.Dir] = names
		}
		certain, lookErr := h.settle(ctx, s, g, names, epoch)
		if lookErr != nil {
			err = lookErr
		} else if certain {
			gone = append(gone, g)
		}
	}
	return h.forget(gone), err
}

// settle removes g's node if it is among names. certain reports whether it cannot appear any more.
func (h *PendingCreates) settle(ctx context.Context, s *Session, g *PendingCreate, names []string, epoch int32) (certain bool, err error) {
	name, err := h.Requests.OwnAmong(ctx, s, g.Dir, names, g.Prefix, g.Sess)
	if err != nil {
		return false, err
	}
	if name != "" {
		h.Requests.Log.Info("zklock: a node appeared that was given up", "node", g.Dir+"/"+name)
		if err := h.Requests.Delete(ctx, s, g.Dir+"/"+name, -1); !errors.Is(err, zk.ErrNoNode) {
			return err == nil, err
		}
		return true, nil
	}
	return g.isOutdated(s, epoch) || g.isLongOver(), nil
}

// isOutdated reports whether a leader later than any that was sent the create has answered under s.
func (g *PendingCreate) isOutdated(s *Session, epoch int32) bool {
	return s == g.Sess && IsClosed(g.Moved) && g.Epoch != 0 && epoch > g.Epoch
}

// isLongOver reports whether the session has been over for so long that the servers must have
// ended it.
func (g *PendingCreate) isLongOver() bool {
	if !g.Sess.IsOver() {
		return false
	}
	if g.over.IsZero() {
		g.over = time.Now()
	}
	return time.Since(g.over) > 2*g.Sess.Lease.Term()
}

func (h *PendingCreates) hasOrphans() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(h.all, func(g *PendingCreate) bool { return g.Sess.IsOver() })
}

// forget drops pending creates. It reports whether none is left, which ends the search.
func (h *PendingCreates) forget(gone []*PendingCreate) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, g := range gone {
		g.Sess.Own(-g.Owns, 0)
	}
	h.all = slices.DeleteFunc(h.all, func(g *PendingCreate) bool { return slices.Contains(gone, g) })
	if len(h.all) > 0 {
		return false
	}
	h.looking = nil
	return true
}
