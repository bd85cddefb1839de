// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zkcontainer"
)

// TestLostCreateReplyAndDeposedLeader commits a contender's node but drops the reply. The client then reconnects to a leader
// that was replaced without noticing it. This leader has never seen the node, and answers every sync. If the client believed
// it, it would create a second node, which would wait behind the first forever.
//
//zklock:promise P5.1
func TestLostCreateReplyAndDeposedLeader(t *testing.T) {
	t.Parallel()
	part(t)
	ensemble := start(t, zkcontainer.Options{
		Servers: 3, SyncLimit: 120, // the old leader acts as leader for a minute
		MaxSessionTimeout: time.Minute,
	})
	needsNetworks(t, ensemble)
	ctx := soon(t)
	leader, err := ensemble.Leader(ctx)
	require.NoError(t, err)
	followers, err := ensemble.Followers(ctx)
	require.NoError(t, err)
	way := &steered{to: leader.Addr}
	client := connect(t, &zklock.Options{SessionTimeout: time.Minute, Dialer: way.dial}, leader.Addr)
	path := root(t)
	hold, err := client.Mutex(path).Lock(ctx) // creates the directory, and makes the session known to all servers
	require.NoError(t, err)
	require.NoError(t, hold.Unlock(ctx))

	require.NoError(t, leader.CutOff(ctx))
	healed := false
	heal := func() {
		if !healed {
			healed = true
			assert.NoError(t, leader.Rejoin(context.Background()))
		}
	}
	t.Cleanup(heal)
	require.NoError(t, followers[0].Stop(ctx))
	require.NoError(t, followers[1].Stop(ctx))
	back := make(chan error, len(followers))
	for _, f := range followers {
		// Owned by this test, which waits for it: neither serves before both are back.
		go func() { back <- f.Start(context.Background()) }()
	}
	for range followers {
		require.NoError(t, await(t, back, "a new leader"))
	}

	way.steer(followers[0].Addr, true) // from now on, only the reply to the connect request gets through
	// Lock only after the reconnect: a create that was sent on the broken connection would not reach the server.
	require.NoError(t, way.answered(ctx, 1), "a server of the new leader resumes the session")
	granted := make(chan error, 1)
	var lock *zklock.Hold
	// Owned by this test: ends with the grant or with ctx.
	go func() {
		var err error
		lock, err = client.Mutex(path).Lock(ctx)
		granted <- err
	}()
	waitForChildren(t, followers[1].Addr, path, 1)
	require.Equal(t, zkcontainer.Leader, leader.Mode(ctx), "the old leader must still act as leader")
	way.steer(leader.Addr, false)
	require.NoError(t, way.answered(ctx, 1), "the old leader resumes the session")
	require.NoError(t, leader.WaitBusy(ctx), "the client sends it a request that needs a quorum")
	heal()
	way.steer(followers[1].Addr, false)

	require.NoError(t, await(t, granted, "the grant: a node of the client blocks it"))
	waitForChildren(t, followers[1].Addr, path, 1)
	require.NoError(t, lock.Confirm(ctx))
	require.NoError(t, lock.Unlock(ctx))
	waitForChildren(t, followers[1].Addr, path, 0)
}

// steered is a dialer that connects a client to a chosen server. It can drop all replies on a connection but the first.
type steered struct {
	mu      sync.Mutex
	to      string     // guarded by mu
	mute    bool       // guarded by mu
	conns   []net.Conn // guarded by mu: the connections to the current server
	answers int        // guarded by mu: the number of replies from the current server
}

// steer directs new connections to a server and closes the existing ones.
func (s *steered) steer(to string, mute bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.to, s.mute, s.answers = to, mute, 0
	for _, c := range s.conns {
		_ = c.Close()
	}
	s.conns = nil
}

// answered waits until the current server has sent n replies.
func (s *steered) answered(ctx context.Context, n int) error {
	for {
		s.mu.Lock()
		enough := s.answers >= n
		s.mu.Unlock()
		if enough {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// count counts a reply if it is from the current server.
func (s *steered) count(from *steeredConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Contains(s.conns, net.Conn(from)) {
		s.answers++
	}
}

func (s *steered) dial(network, _ string, timeout time.Duration) (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	conn, err := net.DialTimeout(network, s.to, timeout)
	if err != nil {
		return nil, err
	}
	steered := &steeredConn{Conn: conn, way: s, mute: s.mute}
	s.conns = append(s.conns, steered)
	return steered, nil
}

// steeredConn reads whole frames. If mute is set, it drops all frames but the first.
type steeredConn struct {
	net.Conn
	way    *steered
	mute   bool
	frames int
	rest   []byte // unread bytes of the current frame
}

func (c *steeredConn) Read(p []byte) (int, error) {
	for len(c.rest) == 0 {
		frame := make([]byte, 4)
		if _, err := io.ReadFull(c.Conn, frame); err != nil {
			return 0, err
		}
		body := make([]byte, binary.BigEndian.Uint32(frame))
		if _, err := io.ReadFull(c.Conn, body); err != nil {
			return 0, err
		}
		c.frames++
		if c.mute && c.frames > 1 {
			continue
		}
		c.way.count(c)
		c.rest = append(frame, body...)
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}
