// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/lab"
	"github.com/zklock-go/zklock/zktest"
)

// patchedEnv is set if the library is patched. Then the tests must find no trap.
const patchedEnv = "ZKLOCK_UPSTREAM_PATCHED"

// traps has a function for each patch, which reports whether the library falls into the trap.
var traps = map[string]func(t *testing.T) bool{
	"lock-own-node":                inBubble(lockWithoutANode),
	"lock-foreign-children":        inBubble(lockBesideAForeignChild),
	"lock-leaves-no-node":          inBubble(lockThatFailsLeavesItsNode),
	"lock-after-loss":              inBubble(lockIsUselessAfterALoss),
	"protected-create-short-names": inBubble(protectedCreatePanics),
	"expiry-ends-what-was-queued":  inBubble(queuedRequestRunsOnAnotherSession),
	"session-replaced":             inBubble(replacedSessionGoesUnnoticed),
	"handshake-deadline":           inBubble(handshakeHasNoEnd),
	"auth-does-not-hang":           authHangs,
	"dropped-events-are-told":      inBubble(eventsAreDroppedInSilence),
	"session-timeout":              inBubble(negotiatedTimeoutIsHidden),
	"remove-watches":               inBubble(watchesCannotBeRemoved),
}

// races are the patches of data races, which a test without the race detector cannot show reliably.
var races = []string{"watches-before-replies", "container-and-ttl-at-close"}

func TestTraps(t *testing.T) {
	patched := os.Getenv(patchedEnv) != ""
	for name, falls := range traps {
		t.Run(name, func(t *testing.T) { assert.Equal(t, !patched, falls(t), "falls into the trap") })
	}
}

func inBubble(falls func(t *testing.T) bool) func(t *testing.T) bool {
	return func(t *testing.T) (fell bool) {
		synctest.Test(t, func(t *testing.T) { fell = falls(t) })
		return fell
	}
}

var (
	three = zktest.Options{Servers: 3}
	world = zk.WorldACL(zk.PermAll)
)

const queue = "/queue"

type silent struct{}

func (silent) Printf(string, ...any) {}

func connect(t *testing.T, srv *zktest.Server, with ...func(*zk.Conn)) (*zk.Conn, <-chan zk.Event) {
	conn, events, err := zk.Connect(srv.Addrs(), 10*time.Second, zk.WithLogInfo(false), zk.WithLogger(silent{}), zk.WithDialer(srv.Dial),
		func(c *zk.Conn) {
			for _, option := range with {
				option(c)
			}
		})
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	_, _, err = conn.Exists("/")
	require.NoError(t, err)
	return conn, events
}

// once applies a verdict to the first request of a type.
func once(srv *zktest.Server, op zktest.Op, verdict zktest.Verdict) {
	var done sync.Once
	srv.Intercept(func(r *zktest.Request) zktest.Verdict {
		v := zktest.Pass
		if r.Op == op {
			done.Do(func() { v = verdict })
		}
		return v
	})
}

// expireOnReturn expires a session when its client reconnects, and delays that connection by a second.
func expireOnReturn(srv *zktest.Server) {
	srv.Intercept(func(r *zktest.Request) zktest.Verdict {
		if r.Op != zktest.OpCreateSession || r.Session == 0 {
			return zktest.Pass
		}
		srv.ExpireSession(r.Session)
		return zktest.Delay(time.Second)
	})
}

// lockWithoutANode breaks the connection after the reply to the create. If the list request is not sent on that connection, which
// depends on the scheduler, it is sent in the next session.
func lockWithoutANode(t *testing.T) bool {
	for range 3000 { // happens in about one of ninety attempts
		if lockAcrossAnExpiry(t) {
			return true
		}
	}
	return false
}

func lockAcrossAnExpiry(t *testing.T) (withoutNode bool) {
	srv, err := zktest.New(three)
	require.NoError(t, err)
	defer srv.Close()
	require.NoError(t, srv.PutNode(queue, nil))
	conn, _ := connect(t, srv)
	defer conn.Close()
	once(srv, zktest.OpCreate, zktest.DropAfter)
	expireOnReturn(srv)
	err = zk.NewLock(conn, queue, world).Lock()
	return err == nil && len(srv.Children(queue)) == 0
}

func lockBesideAForeignChild(t *testing.T) bool {
	srv := zktest.Start(t)
	require.NoError(t, srv.PutNode(queue+"/notes", nil))
	conn, _ := connect(t, srv)
	return zk.NewLock(conn, queue, world).Lock() != nil
}

func lockThatFailsLeavesItsNode(t *testing.T) bool {
	srv := zktest.Start(t)
	require.NoError(t, srv.PutNode(queue, nil))
	conn, _ := connect(t, srv)
	once(srv, zktest.OpGetChildren2, zktest.Answer(zktest.CodeNoAuth))
	require.ErrorIs(t, zk.NewLock(conn, queue, world).Lock(), zk.ErrNoAuth)
	return len(srv.Children(queue)) == 1
}

func lockIsUselessAfterALoss(t *testing.T) bool {
	srv := zktest.Start(t)
	conn, _ := connect(t, srv)
	lock := zk.NewLock(conn, queue, world)
	require.NoError(t, lock.Lock())
	require.NoError(t, srv.DeleteNodes(queue+"/"+srv.Children(queue)[0]))
	require.ErrorIs(t, lock.Unlock(), zk.ErrNoNode)
	return lock.Lock() != nil
}

func protectedCreatePanics(t *testing.T) (panics bool) {
	srv := zktest.Start(t, three)
	require.NoError(t, srv.PutNode(queue+"/_c_short", nil))
	conn, _ := connect(t, srv)
	once(srv, zktest.OpCreate, zktest.DropBefore)
	defer func() { panics = recover() != nil }()
	_, err := conn.CreateProtectedEphemeralSequential(queue+"/lock-", nil, world)
	require.NoError(t, err)
	return false
}

func queuedRequestRunsOnAnotherSession(t *testing.T) bool {
	srv := zktest.Start(t, three)
	conn, _ := connect(t, srv)
	session := conn.SessionID()
	expireOnReturn(srv)
	srv.DropConnections()
	synctest.Wait()
	require.Equal(t, session, conn.SessionID(), "the client has not noticed the end of its session")
	_, err := conn.Create("/made-for-the-old-session", nil, zk.FlagEphemeral, world)
	return err == nil && conn.SessionID() != session
}

func replacedSessionGoesUnnoticed(t *testing.T) bool {
	srv := zktest.Start(t, lab.With(zktest.Options{Servers: 3}, lab.Options{ForgetSessions: true}))
	require.NoError(t, srv.PutNode("/watched", nil))
	conn, _ := connect(t, srv)
	session := conn.SessionID()
	_, _, changed, err := conn.GetW("/watched")
	require.NoError(t, err)
	srv.DropConnections()
	time.Sleep(time.Minute)
	require.NotEqual(t, session, conn.SessionID())
	select {
	case <-changed:
		return false
	default:
		return true
	}
}

// handshakeHasNoEnd connects to a server that answers the connect request with a length and nothing after it.
func handshakeHasNoEnd(t *testing.T) bool {
	srv := zktest.Start(t, three)
	ours, theirs := net.Pipe()
	first := true
	dial := func(network, address string, timeout time.Duration) (net.Conn, error) {
		if !first {
			return srv.Dial(network, address, timeout)
		}
		first = false
		// Ends when the library abandons the connection, or with the Close below.
		go func() {
			if _, err := theirs.Read(make([]byte, 256)); err == nil {
				_, _ = theirs.Write([]byte{0, 0, 0, 40})
			}
		}()
		return ours, nil
	}
	conn, _, err := zk.Connect(srv.Addrs(), 10*time.Second, zk.WithLogInfo(false), zk.WithLogger(silent{}), zk.WithDialer(dial))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	time.Sleep(10 * time.Minute)
	stuck := conn.State() != zk.StateHasSession
	require.NoError(t, theirs.Close())
	synctest.Wait()
	return stuck
}

// brokenWrites is a connection whose writes fail, except for the first one, which is the connect request.
type brokenWrites struct {
	net.Conn
	writes int
}

func (b *brokenWrites) Write(p []byte) (int, error) {
	if b.writes++; b.writes > 1 {
		return 0, io.ErrClosedPipe
	}
	return b.Conn.Write(p)
}

// authHangs does not run in a bubble, because nothing ends the hanging goroutines. It waits for a reply with a timeout; without the
// trap, the reply comes at once.
func authHangs(t *testing.T) bool {
	srv := zktest.Run(t, three)
	dials := 0
	dial := func(network, address string, timeout time.Duration) (net.Conn, error) {
		conn, err := net.DialTimeout(network, address, timeout)
		if dials++; dials == 2 && err == nil {
			return &brokenWrites{Conn: conn}, nil
		}
		return conn, err
	}
	conn, _, err := zk.Connect(srv.Addrs(), 10*time.Second, zk.WithLogInfo(false), zk.WithLogger(silent{}), zk.WithDialer(dial))
	require.NoError(t, err)
	require.NoError(t, conn.AddAuth("digest", []byte("user:secret")))
	srv.DropConnections()
	answered := make(chan error, 1)
	// Ends with a reply, or with the process if the library hangs.
	go func() {
		for range 100 { // until it is connected again
			_, _, err := conn.Exists("/")
			if err == nil {
				break
			}
		}
		answered <- nil
	}()
	patience := 5 * time.Second
	if testing.Short() {
		patience = time.Second // with -short, the library is never patched, so no reply comes
	}
	select {
	case <-answered:
		conn.Close()
		return false
	case <-time.After(patience):
		return true
	}
}

// heard is a logger that keeps its messages.
type heard struct {
	mu   sync.Mutex
	text strings.Builder
}

func (h *heard) Printf(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	fmt.Fprintf(&h.text, format+"\n", args...)
}

func eventsAreDroppedInSilence(t *testing.T) bool {
	srv := zktest.Start(t, three)
	var log heard
	called := 0
	_, events := connect(t, srv, zk.WithLogger(&log), zk.WithEventCallback(func(zk.Event) { called++ }))
	for range 3 {
		srv.DropConnections()
		time.Sleep(10 * time.Second)
	}
	synctest.Wait()
	require.Greater(t, called, len(events), "there are more events than the channel holds")
	log.mu.Lock()
	defer log.mu.Unlock()
	return !strings.Contains(log.text.String(), "dropped")
}

func negotiatedTimeoutIsHidden(t *testing.T) bool {
	srv := zktest.Start(t, zktest.Options{MaxSessionTimeout: 7 * time.Second})
	conn, _ := connect(t, srv)
	told, ok := any(conn).(interface{ SessionTimeout() time.Duration })
	return !ok || told.SessionTimeout() != 7*time.Second
}

func watchesCannotBeRemoved(t *testing.T) bool {
	srv := zktest.Start(t)
	require.NoError(t, srv.PutNode("/watched", nil))
	conn, _ := connect(t, srv)
	var watches []<-chan zk.Event
	for range 100 {
		_, _, ch, err := conn.GetW("/watched")
		require.NoError(t, err)
		watches = append(watches, ch)
	}
	remover, ok := any(conn).(interface{ RemoveWatches(path string) error })
	if !ok {
		return true
	}
	require.NoError(t, remover.RemoveWatches("/watched"))
	for _, ch := range watches {
		assert.Equal(t, zk.EventNotWatching, (<-ch).Type)
	}
	return srv.WatchCount() > 0
}
