package zklock

import (
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/lease"
)

// poll follows the session of a bare connection. timeout is the session's.
func (c *Client) poll(timeout time.Duration) {
	// Both are owned by the client and end with its life; Close waits for them.
	c.calls.run(func() { c.link.Follow(c.life, c.conn, timeout) })
	c.calls.run(func() { c.pollServer(timeout) })
}

// pollServer takes the place of the client library's pings, which are not seen: it provides
// answered requests that the next write can prove.
func (c *Client) pollServer(timeout time.Duration) {
	tick := time.NewTicker(timeout / 4)
	defer tick.Stop()
	for {
		if s, _ := c.link.State(); s != nil {
			c.stat(c.life, s, "/")
		}
		select {
		case <-tick.C:
		case <-c.life.Done():
			return
		}
	}
}

// witness takes a request of ours as evidence if the connection is a bare one.
func (c *Client) witness(sent lease.Instant, of lease.Evidence, err error) {
	if !c.link.IsBare() || err != nil && !isRefusal(err) {
		return
	}
	if errors.Is(err, zk.ErrNoAuth) || errors.Is(err, zk.ErrInvalidACL) || errors.Is(err, zk.ErrAuthFailed) {
		of = lease.OfServer // a server refuses this without asking the quorum
	}
	c.link.Witness(sent, of)
}
