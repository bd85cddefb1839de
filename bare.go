package zklock

import (
	"errors"
	"time"

	"github.com/go-zookeeper/zk"
)

// A bare connection is one whose traffic the client does not see. The client polls it for its
// session, and takes its own requests as evidence: each was sent after it was handed to the
// client library, and answered before it returned.

// poll follows the session of a bare connection. timeout is the session's.
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

// pollServer takes the place of the client library's pings, which are not seen: it provides
// answered requests that the next write can prove.
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

// witness takes a request of ours as evidence if the connection is a bare one.
func (c *Client) witness(sent instant, of evidence, err error) {
	if c.link.bare == nil || err != nil && !isRefusal(err) {
		return
	}
	if errors.Is(err, zk.ErrNoAuth) || errors.Is(err, zk.ErrInvalidACL) || errors.Is(err, zk.ErrAuthFailed) {
		of = ofServer // a server refuses this without asking the quorum
	}
	s := c.link.latest()
	if s != nil && c.link.bare() == s.id {
		s.lease.note(sent, of)
	}
}
