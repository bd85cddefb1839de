package zklock

import (
	"context"
	"errors"
	"slices"
	"strings"
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
type ghost struct {
	dir, prefix string
	asked, last *session // the create was sent under one of these, or between them
	epoch       int32    // of a write sent after the create; zero if that is not known
	over        time.Time
}

// haunt remembers a ghost, and looks for it until the outcome is certain.
func (c *Client) haunt(g *ghost) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ghosts = append(c.ghosts, g)
	if c.hunting != nil {
		select {
		case c.hunting <- struct{}{}:
		default:
		}
		return
	}
	more := make(chan struct{}, 1)
	c.hunting = more
	// Owned by the client; ends when no ghost is left, or with the client's life; Close
	// waits for it.
	c.calls.run(func() { c.hunt(more) })
}

// hunt looks for ghosts as long as there are any. It looks at once when more receives.
func (c *Client) hunt(more <-chan struct{}) {
	for looks := 0; ; {
		s, err := c.link.Attached(c.life)
		if err != nil {
			return
		}
		moved := s.Reattached()
		certain, err := c.exorcise(c.life, s)
		if certain {
			return
		}
		var later <-chan time.Time
		if looks++; looks < 2 || err != nil || c.hasOrphans() {
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
		case <-c.life.Done():
			return
		}
	}
}

// exorcise removes the nodes of ghosts that exist, and forgets the ghosts that cannot appear
// any more. certain reports whether none is left.
func (c *Client) exorcise(ctx context.Context, s *session) (certain bool, err error) {
	if err := c.confirm(ctx, s, nil); err != nil {
		return false, err
	}
	epoch := s.Epoch() // the listings below are at least as new
	c.mu.Lock()
	ghosts := slices.Clone(c.ghosts)
	c.mu.Unlock()
	listings := map[string][]string{}
	var gone []*ghost
	for _, g := range ghosts {
		names, known := listings[g.dir]
		if !known {
			l, listErr := c.list(ctx, s, g.dir)
			if listErr != nil && !errors.Is(listErr, zk.ErrNoNode) {
				err = listErr
				continue
			}
			names = l.names
			listings[g.dir] = names
		}
		certain, lookErr := c.lay(ctx, s, g, names, epoch)
		if lookErr != nil {
			err = lookErr
		} else if certain {
			gone = append(gone, g)
		}
	}
	return c.forget(gone), err
}

// lay removes g's node if it is among names. certain reports whether it cannot appear any more.
func (c *Client) lay(ctx context.Context, s *session, g *ghost, names []string, epoch int32) (certain bool, err error) {
	name, err := c.ownAmong(ctx, s, g.dir, names, g.prefix, g.asked, g.last)
	if err != nil {
		return false, err
	}
	if name != "" {
		c.log.Info("zklock: a node appeared that was given up", "node", g.dir+"/"+name)
		if err := c.delete(ctx, s, g.dir+"/"+name); !errors.Is(err, zk.ErrNoNode) {
			return err == nil, err
		}
		return true, nil
	}
	return g.epoch != 0 && epoch > g.epoch || g.isLongOver(), nil
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

func (c *Client) hasOrphans() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.ghosts, func(g *ghost) bool { return g.last.IsOver() })
}

// forget drops ghosts. It reports whether none is left, which ends the hunt.
func (c *Client) forget(gone []*ghost) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ghosts = slices.DeleteFunc(c.ghosts, func(g *ghost) bool { return slices.Contains(gone, g) })
	if len(c.ghosts) > 0 {
		return false
	}
	c.hunting = nil
	return true
}

// ownAmong returns the name that begins with prefix, which contains our guid, if its node was
// created under one of the sessions. It checks the session because anybody can imitate a name.
func (c *Client) ownAmong(ctx context.Context, s *session, dir string, names []string, prefix string, sessions ...*session) (string, error) {
	for _, name := range names {
		if !strings.HasPrefix(name, prefix+"-") {
			continue
		}
		stat, err := c.stat(ctx, s, dir+"/"+name)
		switch {
		case errors.Is(err, zk.ErrNoNode):
		case err != nil:
			return "", err
		case slices.ContainsFunc(sessions, func(o *session) bool { return o.ID == stat.EphemeralOwner }):
			return name, nil
		}
	}
	return "", nil
}
