package zklock

import (
	"errors"
	"time"

	"github.com/go-zookeeper/zk"
)

// A bare connection is one that we do not see the wire of. Its session is learnt by
// asking again and again, and evidence comes from our own requests: they are sent no
// earlier than they are handed over, and answered no later than they return.

// poll follows a bare connection's session of the given timeout.
func (c *Client) poll(timeout time.Duration) {
	// Both are owned by the client and end with its life; Close waits for them.
	c.calls.run(func() { c.pollState(timeout) })
	c.calls.run(func() { c.pollServer(timeout) })
}

func (c *Client) pollState(timeout time.Duration) {
	tick := time.NewTicker(max(timeout/40, 20*time.Millisecond))
	defer tick.Stop()
	var last int64
	for {
		id, up := c.conn.SessionID(), c.conn.State() == zk.StateHasSession
		attached, _ := c.link.state()
		switch {
		case up && id != 0 && (attached == nil || id != last):
			c.link.establish(id, timeout, instant{})
			last = id
		case id == 0 && last != 0:
			c.link.establish(0, 0, instant{})
			last = 0
		case !up:
			c.link.disconnect()
		}
		select {
		case <-tick.C:
		case <-c.life.Done():
			return
		}
	}
}

// pollServer does what the client library's pings do where we see them: it leaves
// answered operations for the next write to prove.
func (c *Client) pollServer(timeout time.Duration) {
	tick := time.NewTicker(timeout / 4)
	defer tick.Stop()
	for {
		if s, _ := c.link.state(); s != nil {
			c.stat(c.life, s, "/")
		}
		select {
		case <-tick.C:
		case <-c.life.Done():
			return
		}
	}
}

// witness takes our own request as evidence where the wire is not seen.
func (c *Client) witness(sent instant, of evidence, err error) {
	if c.link.bare == nil || err != nil && !isRefusal(err) {
		return
	}
	if errors.Is(err, zk.ErrNoAuth) || errors.Is(err, zk.ErrInvalidACL) || errors.Is(err, zk.ErrAuthFailed) {
		of = ofServer // one server can say so without asking anybody
	}
	s := c.link.latest()
	if s != nil && c.link.bare() == s.id {
		s.lease.note(sent, of)
	}
}
