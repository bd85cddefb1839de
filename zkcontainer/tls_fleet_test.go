// SPDX-License-Identifier: Apache-2.0

package zkcontainer_test

import (
	"flag"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zkcontainer"
)

// relay is an address behind which a server is, and whose connections can all be cut at once.
type relay struct {
	net.Listener
	patience time.Duration // see early

	mu    sync.Mutex
	conns []net.Conn // guarded by mu
	early int        // guarded by mu: connections that a client has closed before the server's first byte and within patience
}

func newRelay(t *testing.T, to string, patience time.Duration) *relay {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r := &relay{Listener: l, patience: patience}
	t.Cleanup(func() { l.Close(); r.cut() })
	go func() { // ends with the listener
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			go r.join(near, to) // ends with the connection
		}
	}()
	return r
}

func (r *relay) join(near net.Conn, to string) {
	defer near.Close()
	far, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer far.Close()
	r.mu.Lock()
	r.conns = append(r.conns, near, far)
	r.mu.Unlock()
	began := time.Now()
	var left atomic.Bool
	go func() { // ends with the connection
		_, err := io.Copy(far, near)
		left.Store(err == nil) // the client has closed it
		near.Close()
		far.Close()
	}()
	n, _ := io.Copy(near, far)
	if n == 0 && left.Load() && time.Since(began) < r.patience {
		r.mu.Lock()
		r.early++
		r.mu.Unlock()
	}
}

// cut closes all connections.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.conns {
		c.Close()
	}
	r.conns = nil
}

var fleet = flag.Bool("fleet", false, "connect 400 clients to a server with little processor time")

// A server with little processor time loses all its 400 clients at once. Their handshakes take seconds together. No client begins
// its handshake again and again, which would lose all holds even of a server that is fast enough.
func TestHoldersOfASlowServerKeepTheirHoldsOverTLS(t *testing.T) {
	if !*fleet {
		t.Skip("only with -args -fleet, which needs a quiet machine: make fleet")
	}
	authority, err := zkcontainer.NewAuthority()
	require.NoError(t, err)
	z := zkcontainer.RunEnsemble(t.Context(), t, 1, zkcontainer.Options{TLS: authority, TickTime: 2 * time.Second, Config: []string{"maxClientCnxns=0"}})
	config, err := authority.Client()
	require.NoError(t, err)
	const n, session = 400, 10 * time.Second
	server := newRelay(t, z.Members[0].Secure, session*9/10)
	var dials atomic.Int32
	holds := make([]*zklock.Hold, n)
	clients := make([]*zklock.Client, n)
	inParallel(n, func(i int) {
		c, err := zklock.Connect(soon(t), []string{server.Addr().String()}, &zklock.Options{
			TLS: config, SessionTimeout: session, Dialer: func(network, address string, timeout time.Duration) (net.Conn, error) {
				dials.Add(1)
				return net.DialTimeout(network, address, timeout)
			},
		})
		if !assert.NoError(t, err) {
			return
		}
		t.Cleanup(func() { c.Close() })
		clients[i] = c
		holds[i], err = c.Mutex(fmt.Sprintf("/h/%d", i)).Lock(soon(t))
		assert.NoError(t, err)
	})
	require.False(t, t.Failed())

	limit(t, z.Members[0], "0.6")
	dials.Store(0)
	server.cut()
	start := time.Now()
	require.Eventually(t, func() bool {
		for _, c := range clients {
			if !c.Stats().Connected {
				return false
			}
		}
		return true
	}, patience, 50*time.Millisecond)
	took := time.Since(start)
	limit(t, z.Members[0], "2")
	lost := 0
	for _, hold := range holds {
		if hold.Check() != nil {
			lost++
		}
	}
	server.mu.Lock()
	early := server.early
	server.mu.Unlock()
	t.Logf("all connected again after %v, %d dials, %d handshakes given up early, %d of %d holds lost", took.Round(time.Millisecond), dials.Load(), early, lost, n)
	require.Zero(t, early)
	if took < session/4 { // on a busier machine the server takes longer than a lease
		require.Zero(t, lost)
	}
	inParallel(n, func(i int) { clients[i].Close() })
}

// inParallel calls fn for each number below n, for some at the same time.
func inParallel(n int, fn func(i int)) {
	var all sync.WaitGroup
	defer all.Wait()
	few := make(chan struct{}, 60)
	for i := range n {
		few <- struct{}{}
		all.Go(func() {
			defer func() { <-few }()
			fn(i)
		})
	}
}

// limit sets how many processors the server of a member may use.
func limit(t *testing.T, m *zkcontainer.Member, cpus string) {
	_, port, err := net.SplitHostPort(m.Secure)
	require.NoError(t, err)
	id, err := exec.Command("docker", "ps", "-q", "--filter", "publish="+port).Output()
	require.NoError(t, err)
	out, err := exec.Command("docker", "update", "--cpus", cpus, strings.TrimSpace(string(id))).CombinedOutput()
	require.NoError(t, err, "%s", out)
}
