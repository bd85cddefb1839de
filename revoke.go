package zklock

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/go-zookeeper/zk"
)

// A request to let go is a mark in the data of the holder's node.
//
// Curator's Revoker writes its message in place of the data, and a Curator holder acts
// on exactly that message. In a node of ours the data stays readable: owner data says
// "revoke":true, anything else (the value of an election) gets the message as its first
// line. Where somebody has overwritten our data all the same, the holder puts it back.

// curatorRevocation is what Curator's Revoker writes.
var curatorRevocation = []byte("__REVOKE__")

// revocationLine precedes data of ours that is no owner data.
var revocationLine = []byte("__REVOKE__\n")

// isRevocation says whether a node's data asks its owner to let go.
func isRevocation(data []byte) bool {
	if bytes.Equal(data, curatorRevocation) || bytes.HasPrefix(data, revocationLine) {
		return true
	}
	var o owner
	return json.Unmarshal(data, &o) == nil && o.Revoke
}

// withRevocation adds the request to data of a node of ours.
func withRevocation(data []byte) []byte {
	if o, ok := readOwner(data); ok {
		o.Revoke = true
		return o.encode()
	}
	return append(bytes.Clone(revocationLine), data...)
}

// withoutRevocation returns data as it was before the request. Curator's leaves nothing of it.
func withoutRevocation(data []byte) []byte {
	if bytes.Equal(data, curatorRevocation) {
		return nil
	}
	if rest, ok := bytes.CutPrefix(data, revocationLine); ok {
		return rest
	}
	if o, ok := readOwner(data); ok && o.Revoke {
		o.Revoke = false
		return o.encode()
	}
	return data
}

// Revoke asks a contender, from Inspect, to let go of its lock. It is a request: the
// holder's Hold.Revoked is closed, whether and when it unlocks is up to it. A Curator
// holder with a RevocationListener is asked in the way it understands; other clients'
// holders have no ears for it. A contender that waits is told when it holds.
//
// ErrNotHeld: that contender is gone. ErrInvalid: it is a LeaderLatch's. Curator's
// latches that wait behind one look only for its end, and if its data changes instead,
// they never look again.
func (c *Client) Revoke(ctx context.Context, who Contender) error {
	inside, stop := either(ctx, c.life)
	defer stop()
	if err := c.revoke(inside, who); err != nil {
		return fmt.Errorf("zklock: revoke %s: %w", who.Node, c.explain(inside, err))
	}
	return nil
}

func (c *Client) revoke(ctx context.Context, who Contender) error {
	if err := who.check(); err != nil {
		return err
	}
	if strings.Contains(who.name(), "-latch-") {
		return fmt.Errorf("%w: a latch cannot be asked", ErrInvalid)
	}
	for {
		n, err := c.seek(ctx, who)
		if err != nil || isRevocation(n.data) {
			return err
		}
		mark := curatorRevocation
		if clientOf(who.name()) == ClientZklock {
			mark = withRevocation(n.data)
		}
		_, err = persist(ctx, c, func(s *session) (*zk.Stat, error) {
			return c.set(ctx, s, who.Node, mark, n.stat.Version)
		})
		if !errors.Is(err, zk.ErrBadVersion) { // else somebody wrote meanwhile, perhaps we, and the answer was lost
			return notHeldIfMissing(err)
		}
	}
}

// Evict removes a contender, from Inspect, whatever it is doing: for operators, where a
// process hangs and its lock must not wait for it. A holder of this library learns of
// it at once (ErrLost); one of another client may go on as if it held, so be sure that
// it is stopped. Only this very node is removed, and only while it belongs to the
// session in who. ErrNotHeld: there is no such contender any more.
func (c *Client) Evict(ctx context.Context, who Contender) error {
	inside, stop := either(ctx, c.life)
	defer stop()
	if err := c.evict(inside, who); err != nil {
		return fmt.Errorf("zklock: evict %s: %w", who.Node, c.explain(inside, err))
	}
	return nil
}

func (c *Client) evict(ctx context.Context, who Contender) error {
	if err := who.check(); err != nil {
		return err
	}
	if who.Session == 0 {
		return fmt.Errorf("%w: the contender's session is not given", ErrInvalid)
	}
	for {
		n, err := c.seek(ctx, who)
		if err != nil {
			return err
		}
		_, err = persist(ctx, c, func(s *session) (struct{}, error) {
			return struct{}{}, c.deleteVersion(ctx, s, who.Node, n.stat.Version)
		})
		switch {
		case errors.Is(err, zk.ErrNoNode): // gone since: by us, if an answer was lost
			return nil
		case !errors.Is(err, zk.ErrBadVersion): // else its data was written meanwhile
			return err
		}
	}
}

// seek reads a contender's node and makes sure that it is the one meant.
func (c *Client) seek(ctx context.Context, who Contender) (node, error) {
	n, err := persist(ctx, c, func(s *session) (node, error) { return c.get(ctx, s, who.Node) })
	switch {
	case err != nil:
		return node{}, notHeldIfMissing(err)
	case who.Session != 0 && n.stat.EphemeralOwner != who.Session:
		return node{}, fmt.Errorf("%w: the node is of session 0x%x, not 0x%x", ErrNotHeld, n.stat.EphemeralOwner, who.Session)
	case who.Token != 0 && n.stat.Czxid != who.Token:
		return node{}, fmt.Errorf("%w: the node is another one of the same name", ErrNotHeld)
	}
	return n, nil
}

func notHeldIfMissing(err error) error {
	if errors.Is(err, zk.ErrNoNode) {
		return fmt.Errorf("%w: the node is gone", ErrNotHeld)
	}
	return err
}

// inspect looks for a request to let go in our own node's data.
func (t *contender) inspect(n node) {
	if !isRevocation(n.data) {
		return
	}
	t.revoke.Do(func() { close(t.revoked) })
	t.putBack(n)
}

// putBack writes our own data again where a request has replaced it. An election's
// value comes back as it was, for that is what Curator's readers take for the leader's name.
//
// Not so a latch's: see Revoke.
func (t *contender) putBack(n node) {
	if t.recipe == latchRecipe {
		return
	}
	if !t.recipe.raw && !bytes.Equal(n.data, curatorRevocation) {
		return
	}
	var p pace
	for {
		mine := t.ownData()
		if !t.recipe.raw {
			mine = withRevocation(mine)
		}
		_, err := t.c.set(t.c.life, t.sess, t.path(), mine, n.stat.Version)
		if !isTransient(err) || !t.linger(p.longer()) {
			return // written; or somebody wrote since, which is looked at as well
		}
	}
}

// ownData is what our node's data should be.
func (t *contender) ownData() []byte {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	return t.data
}

// heed has revoked closed as soon as any part is asked for.
func (g *holding) heed() {
	if len(g.parts) == 1 {
		g.revoked = g.parts[0].revoked
		return
	}
	asked := make(chan struct{})
	var once sync.Once
	for _, t := range g.parts {
		// Owned by the holding; ends with its context, at the latest by Close, which waits.
		g.c.calls.run(func() {
			select {
			case <-t.revoked:
				once.Do(func() { close(asked) })
			case <-g.ctx.Done():
			}
		})
	}
	g.revoked = asked
}
