// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/conn"
	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/session"
	"github.com/zklock-go/zklock/zktest"
)

const (
	testDir  = "/locks/orders"
	testTerm = 10 * time.Second
)

// throttled is the answer of a server that has too many requests.
var throttled = zktest.Answer(-127)

// asks is how often a request for a watch is sent to a server that answers throttled.
const asks = 7

var testLock = &Recipe{Name: "mutex", TakesDelay: true, Infix: node.LockInfix, Rule: node.AfterAll}

// virtual runs fn in virtual time with a server in memory.
func virtual(t *testing.T, opts zktest.Options, fn func(t *testing.T, srv *zktest.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		bound := time.AfterFunc(time.Hour, func() { panic(fmt.Sprintf("%s has not ended after an hour", t.Name())) })
		defer bound.Stop()
		fn(t, zktest.Start(t, opts))
	})
}

// startEngine returns an engine on a connection of its own, as package zklock makes it. The engine
// ends with the test. configure may change it before it is used; it may be nil.
func startEngine(t *testing.T, srv *zktest.Server, label string, configure func(*Engine)) *Engine {
	t.Helper()
	link, log, acl := conn.NewLink(), slog.New(slog.DiscardHandler), zk.WorldACL(zk.PermAll)
	r := &session.Requests{Link: link, Log: log, Calls: session.NewTasks()}
	hub := NewHub(link)
	shared := hub.Join()
	e := &Engine{
		Hub: hub, Requests: r, Watches: session.NewWatches(r, shared), Directories: &session.Directories{Requests: r, ACL: acl, Parents: acl},
		Unnoted: NewUnnoted(false), Reporter: Reporter{Events: log}, Removals: session.NewTasks(),
	}
	e.Heart = session.NewHeart(r, shared, func(error) {}, func(error) {})
	var endLife, endCleanup context.CancelCauseFunc
	r.Life, endLife = context.WithCancelCause(context.Background())
	r.CleanupCtx, endCleanup = context.WithCancelCause(context.Background())
	if configure != nil {
		configure(e)
	}
	library, events, err := zk.Connect(srv.Addrs(), testTerm, zk.WithDialer(link.Dialer(conn.Dialing{Dial: srv.DialFrom(label)})),
		zk.WithHostProvider(link.Hosts(&conn.Rotation{})), zk.WithLogInfo(false), zk.WithLogger(silent{}))
	require.NoError(t, err)
	r.Library = library
	t.Cleanup(func() {
		endLife(context.Canceled)
		endCleanup(context.Canceled)
		<-e.Removals.Close()
		e.Heart.End()
		shared.Leave()
		library.Close()
		link.Close()
		for range events { // until the client library has stopped
		}
		hub.Close()
		<-r.Calls.Close()
	})
	_, err = link.Attached(t.Context())
	require.NoError(t, err)
	link.AddTick(0)
	e.Heart.Begin()
	return e
}

type silent struct{}

func (silent) Printf(string, ...any) {}

func wantLock(dir string) *Want {
	return &Want{Recipe: testLock, Path: dir, Dir: dir, Data: node.OwnerData("test", true)}
}

func permitsOf(e *Engine, total int) *Permits {
	return &Permits{Engine: e, Path: testDir, Dir: testDir, Total: total, Data: node.OwnerData("test", true)}
}

// release deletes the nodes of a grant.
func release(t *testing.T, g *Grant) {
	t.Helper()
	require.NoError(t, outcomeOf(g, false))
}

// obtaining is an acquire in the background.
type obtaining struct {
	grant *Grant
	err   error
	done  chan struct{}
}

func later(obtain func() (*Grant, error)) *obtaining {
	o := &obtaining{done: make(chan struct{})}
	go func() { // ends with the acquire, which ends with the test's context
		defer close(o.done)
		o.grant, o.err = obtain()
	}()
	return o
}

func obtainLater(t *testing.T, s *Permits, k int) *obtaining {
	return later(func() (*Grant, error) { return s.Obtain(t.Context(), k) })
}

// release waits until the acquire has returned a grant, and releases it.
func (o *obtaining) release(t *testing.T) {
	t.Helper()
	<-o.done
	require.NoError(t, o.err)
	release(t, o.grant)
}

// outcomeOf releases a grant and waits for the outcome.
func outcomeOf(g *Grant, lost bool) error {
	released := make(chan error, 1)
	g.Release(lost, func(err error) { released <- err })
	return <-released
}
