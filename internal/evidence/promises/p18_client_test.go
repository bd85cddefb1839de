// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/observe"
	"github.com/zklock-go/zklock/zktest"
)

//zklock:promise P18.2
func TestTheNegotiatedTimeoutApplies(t *testing.T) {
	virtual(t, zktest.Options{TickTime: 2 * time.Second}, func(t *testing.T, srv *zktest.Server) {
		require.Equal(t, 4*time.Second, connect(t, srv, "a", time.Second).SessionTimeout())
		require.Equal(t, 40*time.Second, connect(t, srv, "b", time.Hour).SessionTimeout())
	})
}

// failingWrites is a connection whose n-th write, counted from zero, fails.
type failingWrites struct {
	net.Conn
	n int
}

func (c *failingWrites) Write(p []byte) (int, error) {
	c.n--
	if c.n < 0 {
		return 0, errors.New("broken pipe")
	}
	return c.Conn.Write(p)
}

// Without zklock's workaround, the client library hangs if a write fails while it sends credentials again.
//
//zklock:promise P18.3
func TestAWriteThatFailsWhileCredentialsAreResentStopsNothing(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		var dials atomic.Int32
		client := connectWith(t, srv, &zklock.Options{
			Auth: []zklock.Auth{{Scheme: "digest", Data: []byte("a:b")}},
			Dialer: func(network, address string, timeout time.Duration) (net.Conn, error) {
				conn, err := srv.Dial(network, address, timeout)
				if err == nil && dials.Add(1) == 2 {
					conn = &failingWrites{conn, 1}
				}
				return conn, err
			},
		})
		srv.DropConnections()
		time.Sleep(time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		hold, err := client.Mutex(path).Lock(ctx)
		require.NoError(t, err)
		require.GreaterOrEqual(t, dials.Load(), int32(3))
		unlock(t, hold)
	})
}

//zklock:promise P18.4
func TestABadCredentialIsAnErrorOfConnect(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := zklock.Connect(ctx, srv.Addrs(), &zklock.Options{Dialer: srv.Dial, Auth: []zklock.Auth{{Scheme: "nonsense", Data: []byte("x")}}})
		require.Error(t, err)
	})
}

//zklock:promise P18.5
func TestAnAttachedConnectionKeepsEveryPromiseWithHooks(t *testing.T) {
	for name, fault := range map[string]struct{ begin, end func(srv *zktest.Server) }{
		"its server is cut off":   {func(srv *zktest.Server) { srv.Member(2).CutOff() }, func(srv *zktest.Server) { srv.Member(2).Rejoin() }},
		"it is cut off by itself": {func(srv *zktest.Server) { srv.Partition("mine") }, func(srv *zktest.Server) { srv.HealClient("mine") }},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, three, func(t *testing.T, srv *zktest.Server) {
				hooks := zklock.NewHooks(srv.DialFrom("mine"))
				conn, _, err := zk.Connect([]string{srv.Member(2).Addr()}, term, zk.WithDialer(hooks.Dial),
					zk.WithHostProvider(&oneRound{}), zk.WithLogger(silent{}))
				require.NoError(t, err)
				defer conn.Close()
				client, err := zklock.Attach(t.Context(), conn, hooks, nil)
				require.NoError(t, err)
				require.Equal(t, term, client.SessionTimeout())
				hold, err := client.Mutex(path).Lock(t.Context())
				require.NoError(t, err)
				end := endOf(hold)
				next := lockLater(t.Context(), connect(t, srv, "next", term, 0).Mutex(path).Lock)
				require.GreaterOrEqual(t, lowest(hold, 3*term), term*4/10)
				fault.begin(srv)
				<-next.done
				require.NoError(t, next.err)
				<-end.done
				require.ErrorIs(t, end.cause, zklock.ErrLost)
				require.True(t, end.at.Before(next.at))
				unlock(t, next.hold)
				fault.end(srv)
				time.Sleep(term)
				unlockSoon(t, client)
				require.NoError(t, client.Close())
				time.Sleep(term)
				_, _, err = conn.Exists("/")
				require.NoError(t, err, "the connection is still its owner's")
			})
		})
	}
}

// recorder is an Observer.
type recorder struct {
	mu     sync.Mutex
	events []observe.Event
}

func (r *recorder) Observe(e observe.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

//zklock:promise P19.7
func TestObserversAndLogsReportEvents(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		var log bytes.Buffer
		seen := &recorder{}
		client := connectWith(t, srv, &zklock.Options{Label: "a", Observer: seen, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		first, err := client.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		second := lockLater(t.Context(), client.Mutex(path).Lock)
		time.Sleep(time.Second)
		unlock(t, first)
		<-second.done
		time.Sleep(time.Second)
		require.NoError(t, srv.DeleteNode(second.hold.Node()))
		<-second.hold.Context().Done()
		time.Sleep(time.Second)

		seen.mu.Lock()
		defer seen.mu.Unlock()
		var kinds []observe.Kind
		for _, e := range seen.events {
			kinds = append(kinds, e.Kind)
			require.Equal(t, path, e.Path)
			require.Equal(t, "mutex", e.Recipe)
		}
		require.Equal(t, []observe.Kind{observe.Queued, observe.Acquired, observe.Queued}, kinds[:3])
		require.ElementsMatch(t, []observe.Kind{observe.Released, observe.Acquired}, kinds[3:5], "by two goroutines")
		require.Equal(t, []observe.Kind{observe.Lost}, kinds[5:])
		require.Equal(t, 1, seen.events[2].Ahead)
		require.Equal(t, time.Second, seen.events[3].Elapsed)
		require.Equal(t, time.Second, seen.events[4].Elapsed)
		require.ErrorIs(t, seen.events[5].Err, zklock.ErrLost)
		require.Contains(t, log.String(), "lock lost")
		for line := range strings.Lines(log.String()) {
			require.Contains(t, line, fmt.Sprintf("session=%#x", uint64(srv.Sessions()[0].ID)))
		}
	})
}

// A program with a wrong address does not hang, and its log says which servers do not answer.
//
//zklock:promise P18.13
func TestConnectWithoutADeadlineGivesUpAndItsLogSaysWhy(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		var log logged
		refused := errors.New("connection refused")
		down := &zklock.Options{
			SessionTimeout: 8 * time.Second,
			Dialer:         func(string, string, time.Duration) (net.Conn, error) { return nil, refused },
			Logger:         slog.New(slog.NewTextHandler(&log, nil)),
		}
		start := time.Now()
		_, err := zklock.Connect(t.Context(), []string{"a:1", "b:2"}, down)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, refused)
		require.ErrorContains(t, err, "no session within 30s")
		require.InDelta(t, 30, time.Since(start).Seconds(), 2)
		for _, server := range []string{"a:1", "b:2"} {
			require.Equal(t, 1, strings.Count(log.String(), `level=WARN msg="zklock: server cannot be reached" server=`+server+` err="connection refused"`))
		}
		require.Equal(t, 3, strings.Count(log.String(), `level=WARN msg="zklock: no session yet" duration=`))

		start = time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		_, err = zklock.Connect(ctx, []string{"a:1"}, down)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.InDelta(t, time.Hour.Seconds(), time.Since(start).Seconds(), 2, "the caller's deadline counts")
	})
}

// Attach has the same limit. Once there is a session, neither the limit nor the context has an effect.
//
//zklock:promise P18.13
func TestAttachWithoutADeadlineGivesUp(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		attach := func(dial zk.Dialer) (*zklock.Client, error) {
			hooks := zklock.NewHooks(dial)
			conn, _, err := zk.Connect(srv.Addrs(), term, zk.WithDialer(hooks.Dial), zk.WithHostProvider(&oneRound{}), zk.WithLogInfo(false), zk.WithLogger(silent{}))
			require.NoError(t, err)
			t.Cleanup(conn.Close)
			return zklock.Attach(t.Context(), conn, hooks, nil)
		}
		start := time.Now()
		_, err := attach(func(string, string, time.Duration) (net.Conn, error) { return nil, errors.New("connection refused") })
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.InDelta(t, 30, time.Since(start).Seconds(), 2)

		c, err := attach(srv.Dial)
		require.NoError(t, err)
		defer c.Close()
		hold := grantedSoon(t, c.Mutex(path).Lock)
		time.Sleep(time.Minute)
		unlock(t, hold)
	})
}
