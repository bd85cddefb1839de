package zklock

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// A ghost is a create whose answer was lost and whose node a listing does not show. It may
// still run: it can wait in a server that the client has left, where it is refused as long
// as the session is at another server, and run when the session comes back there. The caller
// goes on with another node after such a listing. The client remembers the name of the lost
// one, and looks for it again after every reconnect and once more a heartbeat later.
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
type ghost struct {
	dir, prefix string
	asked, last *session        // the create was sent under one of these, or between them
	epoch       int32           // of a write sent after the create; zero if that is not known
	moved       <-chan struct{} // closed when last was on another connection after that
	over        time.Time
}

// ghosts remembers the ghosts of a client and looks for them.
type ghosts struct {
	requests *requests

	mu      sync.Mutex
	all     []*ghost      // guarded by mu
	hunting chan struct{} // guarded by mu: has room for the news of another ghost; nil while none is looked for
}

// haunt remembers a ghost, and looks for it until the outcome is certain.
func (h *ghosts) haunt(g *ghost) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, g)
	if h.hunting != nil {
		select {
		case h.hunting <- struct{}{}:
		default:
		}
		return
	}
	more := make(chan struct{}, 1)
	h.hunting = more
	// Owned by the client; ends when no ghost is left, or with the client's life; Close
	// waits for it.
	h.requests.calls.run(func() { h.hunt(more) })
}

// hunt looks for ghosts as long as there are any. It looks at once when more receives.
func (h *ghosts) hunt(more <-chan struct{}) {
	for looks := 0; ; {
		s, err := h.requests.link.Attached(h.requests.life)
		if err != nil {
			return
		}
		moved := s.Reattached()
		certain, err := h.exorcise(h.requests.life, s)
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
		case <-h.requests.life.Done():
			return
		}
	}
}

// exorcise removes the nodes of ghosts that exist, and forgets the ghosts that cannot appear
// any more. certain reports whether none is left.
func (h *ghosts) exorcise(ctx context.Context, s *session) (certain bool, err error) {
	if err := h.requests.askQuorum(ctx, s); err != nil {
		return false, err
	}
	epoch := s.Epoch() // the listings below are at least as new
	h.mu.Lock()
	all := slices.Clone(h.all)
	h.mu.Unlock()
	listings := map[string][]string{}
	var gone []*ghost
	for _, g := range all {
		names, known := listings[g.dir]
		if !known {
			l, listErr := h.requests.list(ctx, s, g.dir)
			if listErr != nil && !errors.Is(listErr, zk.ErrNoNode) {
				err = listErr
				continue
			}
			names = l.names
			listings[g.dir] = names
		}
		certain, lookErr := h.lay(ctx, s, g, names, epoch)
		if lookErr != nil {
			err = lookErr
		} else if certain {
			gone = append(gone, g)
		}
	}
	return h.forget(gone), err
}

// lay removes g's node if it is among names. certain reports whether it cannot appear any more.
func (h *ghosts) lay(ctx context.Context, s *session, g *ghost, names []string, epoch int32) (certain bool, err error) {
	name, err := h.requests.ownAmong(ctx, s, g.dir, names, g.prefix, g.asked, g.last)
	if err != nil {
		return false, err
	}
	if name != "" {
		h.requests.log.Info("zklock: a node appeared that was given up", "node", g.dir+"/"+name)
		if err := h.requests.delete(ctx, s, g.dir+"/"+name); !errors.Is(err, zk.ErrNoNode) {
			return err == nil, err
		}
		return true, nil
	}
	return g.isOutdated(s, epoch) || g.isLongOver(), nil
}

// isOutdated reports whether a leader later than any that was sent the create has answered under s.
func (g *ghost) isOutdated(s *session, epoch int32) bool {
	return s == g.last && isClosed(g.moved) && g.epoch != 0 && epoch > g.epoch
}

// isLongOver reports whether the session has been over for so long that the servers must have
// ended it.
func (g *ghost) isLongOver() bool {
	if !g.last.IsOver() {
		return false
	}
	if g.over.IsZero() {
		g.over = time.Now()
	}
	return time.Since(g.over) > 2*g.last.Lease.Term()
}

func (h *ghosts) hasOrphans() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(h.all, func(g *ghost) bool { return g.last.IsOver() })
}

// forget drops ghosts. It reports whether none is left, which ends the hunt.
func (h *ghosts) forget(gone []*ghost) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = slices.DeleteFunc(h.all, func(g *ghost) bool { return slices.Contains(gone, g) })
	if len(h.all) > 0 {
		return false
	}
	h.hunting = nil
	return true
}
