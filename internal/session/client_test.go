// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/conn"
	"github.com/zklock-go/zklock/internal/frames"
	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/zktest"
)

const (
	testTerm = 10 * time.Second
	testDir  = "/locks/orders"
)

// A client is what one client has below its queues, on a connection of its own.
type client struct {
	*Requests
	*Directories
	*PendingCreates
	*Heart
	shared *Shared

	mu            sync.Mutex
	missed, early []error // guarded by mu: what the heart has reported
}

func (c *client) reported() (missed, early []error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.missed), slices.Clone(c.early)
}

type silent struct{}

func (silent) Printf(string, ...any) {}

// virtual runs fn in virtual time with a server in memory.
func virtual(t *testing.T, opts zktest.Options, fn func(t *testing.T, srv *zktest.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		bound := time.AfterFunc(time.Hour, func() { panic(t.Name() + " has not ended after an hour") })
		defer bound.Stop()
		fn(t, zktest.Start(t, opts))
	})
}

// startClient returns a client that ends with the test, as package zklock makes it.
func startClient(t *testing.T, srv *zktest.Server, label string) *client {
	t.Helper()
	link, acl := conn.NewLink(), zk.WorldACL(zk.PermAll)
	r := &Requests{Link: link, Log: slog.New(slog.DiscardHandler), Calls: NewTasks()}
	c := &client{Requests: r, Directories: &Directories{Requests: r, ACL: acl, Parents: zk.WorldACL(zk.PermRead | zk.PermCreate | zk.PermDelete)}}
	report := func(to *[]error) func(error) {
		return func(err error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			*to = append(*to, err)
		}
	}
	hub := NewHub(link)
	c.shared, c.PendingCreates = hub.Join(), hub.PendingCreates
	c.Heart = NewHeart(r, c.shared, report(&c.missed), report(&c.early))
	life, end := context.WithCancelCause(context.Background())
	r.Life, r.CleanupCtx = life, life
	library, events, err := zk.Connect(srv.Addrs(), testTerm, zk.WithDialer(link.Dialer(conn.Dialing{Dial: srv.DialFrom(label)})), zk.WithHostProvider(link.Hosts(&conn.Rotation{})), zk.WithLogger(silent{}))
	require.NoError(t, err)
	r.Library = library
	t.Cleanup(func() {
		end(outcome.ErrClosed)
		c.End()
		c.shared.Leave()
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
	c.Begin()
	return c
}

func (c *client) session(t *testing.T) *Session {
	t.Helper()
	s, err := c.Link.Attached(t.Context())
	require.NoError(t, err)
	return s
}

// own returns an own node, which exists.
func (c *client) own(t *testing.T, srv *zktest.Server, name string) *OwnNode {
	t.Helper()
	n := new(OwnNode)
	n.Init(testDir, []byte("data"), false)
	n.Name, n.Sess = name, c.session(t)
	_, err := c.Create(t.Context(), n.Sess, n.Path(), []byte("data"), zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	return n
}

// TestEveryCallIsRepeatedUntilItIsAnswered has each request fail in each way from which a client recovers, and some that it reports.
func TestEveryCallIsRepeatedUntilItIsAnswered(t *testing.T) {
	path := testDir + "/a"
	calls := map[string]func(ctx context.Context, c *client, s *Session) (any, error){
		"get": func(ctx context.Context, c *client, s *Session) (any, error) {
			n, err := c.Get(ctx, s, path)
			return string(n.Data), err
		},
		"stat": func(ctx context.Context, c *client, s *Session) (any, error) {
			stat, err := c.Stat(ctx, s, path)
			return stat != nil && stat.DataLength == 4, err
		},
		"bundle": func(ctx context.Context, c *client, s *Session) (any, error) {
			b, err := c.Bundle(ctx, s)
			if err != nil {
				return nil, err
			}
			stat, get, list := b.Stat(path), b.Get(path), b.List(testDir)
			if err := b.Send(ctx); err != nil {
				return nil, err
			}
			l, listErr := list(ctx)
			n, getErr := get(ctx)
			at, statErr := stat(ctx)
			return []any{len(l.Names), string(n.Data), at != nil}, errors.Join(listErr, getErr, statErr)
		},
		"list": func(ctx context.Context, c *client, s *Session) (any, error) {
			l, err := c.List(ctx, s, testDir)
			return len(l.Names), err
		},
		"fresh list": func(ctx context.Context, c *client, s *Session) (any, error) {
			l, err := c.FreshList(ctx, s, testDir)
			return len(l.Queue().Entries), err
		},
		"acl": func(ctx context.Context, c *client, s *Session) (any, error) {
			acl, err := c.GetACL(ctx, s, path)
			return acl, err
		},
		"sync":   func(ctx context.Context, c *client, s *Session) (any, error) { return nil, c.Sync(ctx, s, path) },
		"quorum": func(ctx context.Context, c *client, s *Session) (any, error) { return nil, c.askQuorum(ctx, s) },
		"directory": func(ctx context.Context, c *client, s *Session) (any, error) {
			return nil, c.MakeDir(ctx, s, testDir, 1)
		},
		"own among": func(ctx context.Context, c *client, s *Session) (any, error) {
			return c.OwnAmong(ctx, s, testDir, []string{"b", "a-1", "a"}, "a", s)
		},
	}
	faults := map[string]struct {
		verdict zktest.Verdict
		err     error // that the call returns
	}{
		"none": {zktest.Pass, nil}, "lost": {zktest.DropBefore, nil}, "reply lost": {zktest.LoseReply, nil}, "no reply": {zktest.DropReply, nil},
		"late": {zktest.Delay(3 * time.Second), nil}, "throttled": {zktest.Answer(frames.CodeThrottled), nil}, "unknown error": {zktest.Answer(-2), nil},
		"refused": {zktest.Answer(frames.CodeNoAuth), zk.ErrNoAuth},
	}
	for name, call := range calls {
		for what, f := range faults {
			t.Run(name+", "+what, func(t *testing.T) {
				virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
					require.NoError(t, srv.PutNode(path, []byte("data")))
					require.NoError(t, srv.PutNode(testDir+"/a-1", nil))
					c := startClient(t, srv, "a")
					s := c.session(t)
					want, err := call(t.Context(), c, s)
					require.NoError(t, err)
					var struck atomic.Bool
					srv.Intercept(func(r *zktest.Request) zktest.Verdict {
						isBeat := r.Path == "/" || r.Op == zktest.OpPing || r.Op == zktest.OpCreateSession
						if r.Client != "a" || isBeat || r.Op == zktest.OpMulti && name != "quorum" || struck.Swap(true) {
							return zktest.Pass
						}
						return f.verdict
					})
					for verb, again := range map[string]func(context.Context, func() (any, error)) (any, error){
						"again": Again[any],
						"persist": func(ctx context.Context, fn func() (any, error)) (any, error) {
							return Persist(ctx, c.Requests, func(*Session) (any, error) { return fn() })
						},
					} {
						struck.Store(false)
						got, err := again(t.Context(), func() (any, error) { return call(t.Context(), c, s) })
						if f.err != nil && name != "quorum" {
							require.ErrorIs(t, err, f.err, verb)
							continue
						}
						require.NoError(t, err, verb)
						require.Equal(t, want, got, verb)
					}
					require.True(t, struck.Load())
				})
			})
		}
	}
}

// Persist continues under the session that follows, and every other call ends with the session under which it was sent.
func TestACallEndsWithItsSession(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.PutNode(testDir, []byte("data")))
		c := startClient(t, srv, "a")
		first := c.session(t)
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Path == testDir && r.Session == first.ID {
				srv.ExpireSession(r.Session)
			}
			return zktest.Pass
		})
		_, err := c.Get(t.Context(), first, testDir)
		require.ErrorIs(t, err, zk.ErrConnectionClosed, "the session may live")
		_, err = Again(t.Context(), func() (Node, error) { return c.Get(t.Context(), first, testDir) })
		require.ErrorIs(t, err, outcome.ErrSessionOver)
		_, err = c.List(t.Context(), first, testDir)
		require.ErrorIs(t, err, outcome.ErrSessionOver)
		var under []*Session
		n, err := Persist(t.Context(), c.Requests, func(s *Session) (Node, error) {
			if len(under) == 0 {
				s = first
			}
			under = append(under, s)
			return c.Get(t.Context(), s, testDir)
		})
		require.NoError(t, err)
		require.Equal(t, "data", string(n.Data))
		require.Equal(t, []*Session{first, c.session(t)}, under)

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for name, err := range map[string]error{
			"get": func() error { _, err := c.Get(ctx, c.session(t), testDir); return err }(), "list": func() error { _, err := c.List(ctx, c.session(t), testDir); return err }(),
			"persist": func() error {
				_, err := Persist(ctx, c.Requests, func(s *Session) (Node, error) { return c.Get(ctx, s, testDir) })
				return err
			}(),
		} {
			require.ErrorIs(t, err, context.Canceled, name)
			require.ErrorIs(t, c.Explain(ctx, err), context.Canceled)
		}
		require.Equal(t, testTerm, c.Term())
		srv.Next(6, zktest.Answer(frames.CodeThrottled), zktest.OpGetData)
		_, err = c.Get(t.Context(), c.session(t), testDir)
		require.ErrorIs(t, err, frames.ErrThrottled, "six times are enough")
		left := srv.Next(5, zktest.Answer(frames.CodeThrottled), zktest.OpGetData)
		_, err = c.Get(t.Context(), c.session(t), testDir)
		require.NoError(t, err)
		require.Zero(t, left())
	})
}

func TestAnErrorExplainsWhyThereIsNoConnection(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c := startClient(t, srv, "a")
		c.Link.RecordError(errors.New("no route"))
		ctx, cancel := context.WithCancel(t.Context())
		require.Equal(t, outcome.ErrGone, c.Explain(ctx, outcome.ErrGone), "the context has not ended")
		cancel()
		require.NotContains(t, c.Explain(ctx, ctx.Err()).Error(), "last error", "there is a session")
		srv.Partition("a")
		time.Sleep(2 * testTerm)
		c.Link.RecordError(errors.New("no route"))
		require.EqualError(t, c.Explain(ctx, ctx.Err()), "context canceled (last error: no route)")
	})
}

// TestDirectoriesAreMade has servers with container nodes, and servers that refuse them or hang up on them.
func TestDirectoriesAreMade(t *testing.T) {
	for name, c := range map[string]struct {
		opts      zktest.Options
		container bool
		acls      []int32 // of /locks/orders/leases, /locks/orders and /locks
		own       int
	}{
		"containers":         {zktest.Options{}, true, []int32{31, 31, 13}, 2},
		"the lock's is one":  {zktest.Options{}, true, []int32{31, 13, 13}, 1},
		"none is the lock's": {zktest.Options{}, true, []int32{13, 13, 13}, 0},
		"refused":            {zktest.Options{NoContainers: true}, false, []int32{31, 31, 13}, 2},
		"hangs up":           {zktest.Options{UnknownOps: []zktest.Op{zktest.OpCreateContainer}}, false, []int32{31, 31, 13}, 2},
		"a Keeper":           {zktest.Options{Flavor: zktest.Keeper}, false, []int32{31, 31, 13}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, c.opts, func(t *testing.T, srv *zktest.Server) {
				cl := startClient(t, srv, "a")
				for range 2 {
					_, err := Persist(t.Context(), cl.Requests, func(s *Session) (none struct{}, _ error) {
						return none, cl.MakeDir(t.Context(), s, testDir+"/leases", c.own)
					})
					require.NoError(t, err)
				}
				for i, path := range []string{testDir + "/leases", testDir, "/locks"} {
					n, there := srv.Node(path)
					require.True(t, there, path)
					require.Equal(t, c.container, n.Container, path)
					require.Equal(t, c.acls[i], n.ACL[0].Perms, path)
				}
				require.Equal(t, !c.container, cl.containers.isMissing())
				require.Equal(t, c.container, cl.containers.isKnown())
				srv.Next(1, zktest.Answer(frames.CodeNoAuth), zktest.OpCreateContainer, zktest.OpCreate)
				require.ErrorIs(t, cl.MakeDir(t.Context(), cl.session(t), "/other/a", 1), zk.ErrNoAuth)
			})
		})
	}
}

// TestServersAreAskedOnceWhetherTheyAreClickHouse has the first question fail in one of several ways.
func TestServersAreAskedOnceWhetherTheyAreClickHouse(t *testing.T) {
	for _, flavor := range []zktest.Flavor{zktest.ZooKeeper38, zktest.ZooKeeper39, zktest.Keeper} {
		for name, first := range map[string]zktest.Verdict{
			"answered": zktest.Pass, "throttled": zktest.Answer(frames.CodeThrottled), "lost": zktest.LoseReply, "not permitted": zktest.Answer(frames.CodeNoAuth),
		} {
			virtual(t, zktest.Options{Flavor: flavor}, func(t *testing.T, srv *zktest.Server) {
				cl := startClient(t, srv, "a")
				synctest.Wait() // its first heartbeat has been answered
				srv.Next(1, first, zktest.OpExists)
				for i := range 3 {
					if i == 1 {
						srv.ResetCounts()
					}
					is, err := Persist(t.Context(), cl.Requests, func(s *Session) (bool, error) { return cl.OnClickHouse(t.Context(), s) })
					require.NoError(t, err, name)
					require.Equal(t, flavor == zktest.Keeper && name != "not permitted", is, "%v, %s", flavor, name)
				}
				require.Zero(t, srv.Requests()[zktest.OpExists], name)
			})
		}
	}
}

func TestSupportIsJudgedByTheServersReplies(t *testing.T) {
	on := make([]*conn.Attachment, 20)
	for i := range on {
		on[i] = conn.NewSession(int64(i), nil).Attachment()
	}
	for name, c := range map[string]struct {
		outcomes []error // one connection each
		same     bool    // all on one connection
		missing  bool
		known    bool
	}{
		"nothing":                       {},
		"one hang-up":                   {outcomes: []error{zk.ErrConnectionClosed}},
		"two":                           {outcomes: []error{zk.ErrConnectionClosed, outcome.ErrSessionOver}, missing: true},
		"two on one connection":         {outcomes: []error{zk.ErrConnectionClosed, zk.ErrConnectionClosed}, same: true},
		"an answer between":             {outcomes: []error{zk.ErrConnectionClosed, nil, zk.ErrConnectionClosed}, known: true},
		"a refusal between":             {outcomes: []error{zk.ErrConnectionClosed, zk.ErrNoAuth, zk.ErrConnectionClosed}, known: true},
		"another error between":         {outcomes: []error{zk.ErrConnectionClosed, frames.ErrThrottled, zk.ErrConnectionClosed}, missing: true},
		"unimplemented":                 {outcomes: []error{frames.ErrUnimplemented}, missing: true},
		"unimplemented after an answer": {outcomes: []error{nil, frames.ErrUnimplemented}, missing: true},
		"an answer after it":            {outcomes: []error{frames.ErrUnimplemented, nil}, known: true},
		"nine hang-ups after an answer": {outcomes: append([]error{nil}, slices.Repeat([]error{zk.ErrConnectionClosed}, manyHangUps-1)...), known: true},
		"ten hang-ups after an answer":  {outcomes: append([]error{nil}, slices.Repeat([]error{zk.ErrConnectionClosed}, manyHangUps)...), known: true, missing: true},
	} {
		var p support
		told := 0
		for i, err := range c.outcomes {
			if c.same {
				i = 0
			}
			if p.judge(err, on[i]) {
				told++
			}
		}
		require.Equal(t, []bool{c.missing, c.known}, []bool{p.isMissing(), p.isKnown()}, name)
		if c.missing {
			require.Equal(t, 1, told, name)
			require.False(t, p.judge(zk.ErrConnectionClosed, on[len(on)-1]), "%s: only once", name)
		}
	}
}

// checked counts, for each node, how many transactions check it.
func checked(srv *zktest.Server) (take func() map[string]int) {
	var mu sync.Mutex
	counts := map[string]int{}
	srv.Intercept(func(r *zktest.Request) zktest.Verdict {
		mu.Lock()
		defer mu.Unlock()
		for i, op := range r.Ops {
			if op == zktest.OpCheck {
				counts[r.Paths[i]]++
			}
		}
		return zktest.Pass
	})
	return func() map[string]int {
		mu.Lock()
		defer mu.Unlock()
		all := counts
		counts = map[string]int{}
		return all
	}
}

func TestHeartbeatsCheckTheNodesThatAreKept(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.PutNode(testDir, nil))
		c := startClient(t, srv, "a")
		a, b := c.own(t, srv, "a"), c.own(t, srv, "b")
		take := checked(srv)
		time.Sleep(10 * testTerm)
		require.Empty(t, take(), "nothing is kept")
		require.Positive(t, c.session(t).Lease.Term())

		ended := c.session(t).Lease.TransactionEnd()
		require.False(t, IsClosed(ended))
		c.Keep(a)
		c.Keep(a)
		<-ended
		time.Sleep(testTerm)
		require.True(t, a.Kept)
		counts := take()
		require.InDelta(t, 4, counts[a.Path()], 2)
		require.Zero(t, counts["/"])
		require.Greater(t, a.Sess.Lease.Remaining(), testTerm*4/10)
		c.Keep(b)
		time.Sleep(testTerm)
		counts = take()
		require.InDelta(t, counts[a.Path()], counts[b.Path()], 1)
		c.Leave(a)
		c.Leave(b)
		time.Sleep(testTerm)
		counts = take()
		require.Equal(t, 1, len(counts))
		require.Positive(t, counts["/"], "the session is proven until the nodes are gone")
		c.Keep(b)
		c.Unkeep(a)
		time.Sleep(testTerm)
		counts = take()
		require.Zero(t, counts[a.Path()])
		require.Positive(t, counts[b.Path()])

		srv.Intercept(func(r *zktest.Request) zktest.Verdict { return zktest.Pass })
		require.NoError(t, srv.DeleteNode(b.Path()))
		<-b.Gone.Done()
		require.ErrorIs(t, b.Loss(), outcome.ErrLost)
		time.Sleep(testTerm)
		take()
		time.Sleep(testTerm)
		require.Empty(t, take(), "a node that is gone is kept no more")
		missed, early := c.reported()
		require.Empty(t, missed)
		require.Empty(t, early)
	})
}

func TestManyNodesAreCheckedInTurn(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.PutNode(testDir, nil))
		c := startClient(t, srv, "a")
		const n = 500
		var all []*OwnNode
		for i := range n {
			all = append(all, c.own(t, srv, fmt.Sprintf("%s-lock-%010d", strings.Repeat("x", 30), i)))
		}
		take := checked(srv)
		for _, x := range all {
			c.Keep(x)
		}
		time.Sleep(6 * testTerm)
		counts := take()
		least, most := n, 0
		for _, x := range all {
			least, most = min(least, counts[x.Path()]), max(most, counts[x.Path()])
		}
		require.LessOrEqual(t, most-least, 2, "each in turn")
		require.Positive(t, least)
		gone := all[100:110]
		for _, x := range gone {
			require.NoError(t, srv.DeleteNode(x.Path()))
		}
		require.ErrorIs(t, c.ConfirmAll(t.Context(), c.session(t), all), outcome.ErrGone)
		require.True(t, gone[0].IsGone())
		require.False(t, gone[1].IsGone(), "the first refusal is real")
		require.NoError(t, c.ConfirmAll(t.Context(), c.session(t), slices.Concat(all[:100], all[110:])))
		require.NoError(t, c.ConfirmAll(t.Context(), c.session(t), nil))
	})
}

func TestANodeThatCannotBeCheckedIsUseless(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.PutNode(testDir, nil))
		c := startClient(t, srv, "a")
		a := c.own(t, srv, "a")
		srv.Next(1, zktest.Answer(frames.CodeNoAuth), zktest.OpCheck)
		err := c.ConfirmAll(t.Context(), a.Sess, []*OwnNode{a})
		require.NoError(t, err, "the transaction as a whole was refused")
		require.False(t, a.IsGone())
		for code, why := range map[error]error{zk.ErrNoNode: outcome.ErrGone, zk.ErrNoAuth: ErrUnreadable} {
			x, y := &OwnNode{Name: "x"}, &OwnNode{Name: "y"}
			require.ErrorIs(t, c.beats.kept.takeAnswers([]*OwnNode{x, y}, []zk.MultiResponse{{Error: code}, {Error: zk.ErrAPIError}}), outcome.ErrGone)
			require.True(t, x.IsGone())
			require.False(t, y.IsGone())
			require.ErrorIs(t, x.Because(outcome.ErrGone), why)
		}
		x := &OwnNode{Name: "x"}
		require.NoError(t, c.beats.kept.takeAnswers([]*OwnNode{x}, []zk.MultiResponse{{Error: zk.ErrAPIError}, {Error: zk.ErrNoNode}}))
		require.NoError(t, c.beats.kept.takeAnswers([]*OwnNode{x, a}, nil))
		require.False(t, x.IsGone())
	})
}

// TestAMissedHeartbeatIsReported has a server that answers nothing, one that refuses, and a session that ends too early.
func TestAMissedHeartbeatIsReported(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(srv *zktest.Server, s *Session)
		kept    bool
		missed  string // in each report; "" for none
		early   bool
	}{
		"silent, and nothing is kept": {func(srv *zktest.Server, _ *Session) { srv.Partition("a") }, false, "", false},
		"silent":                      {func(srv *zktest.Server, _ *Session) { srv.Partition("a") }, true, "switching to another server|connection", false},
		"refused connections":         {func(srv *zktest.Server, _ *Session) { srv.Member(0).Stop() }, true, "no connection to a server|connection closed", false},
		"the session ends too early":  {func(srv *zktest.Server, s *Session) { srv.ExpireSession(s.ID) }, true, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				require.NoError(t, srv.PutNode(testDir, nil))
				cl := startClient(t, srv, "a")
				a := cl.own(t, srv, "a")
				if c.kept {
					cl.Keep(a)
				}
				time.Sleep(testTerm)
				c.happens(srv, a.Sess)
				time.Sleep(testTerm / 2)
				missed, early := cl.reported()
				require.Equal(t, c.missed != "", len(missed) > 0, "%v", missed)
				for _, err := range missed {
					require.Regexp(t, c.missed, err.Error())
				}
				require.Equal(t, c.early, len(early) == 1, "%v", early)
				for _, err := range early {
					require.Regexp(t, `^session 0x[0-9a-f]+ expired \d\S* before its lease: a server's tickTime may be longer`, err.Error())
				}
			})
		})
	}
}

// A create that may still run is looked for until it has run, or cannot run any more.
func TestACreateThatMayStillRunIsSearchedFor(t *testing.T) {
	type world struct {
		srv  *zktest.Server
		c    *client
		s    *Session
		name string
	}
	appear := func(t *testing.T, w *world, owner int64) {
		require.NoError(t, w.srv.Apply(zktest.Step{Op: zktest.OpCreate, Path: testDir + "/" + w.name, Owner: owner}))
	}
	for name, c := range map[string]struct {
		happens func(t *testing.T, w *world)
		left    bool // the node
		owned   int
	}{
		"it has run already": {func(t *testing.T, w *world) { time.Sleep(4 * testTerm) }, false, 100},
		"it runs after a reconnect": {func(t *testing.T, w *world) {
			w.srv.DropConnections()
			appear(t, w, w.s.ID)
			time.Sleep(testTerm)
		}, false, 0},
		"it runs a moment after a reconnect": {func(t *testing.T, w *world) {
			w.srv.DropConnections()
			time.Sleep(testTerm / 8)
			appear(t, w, w.s.ID)
			time.Sleep(testTerm)
		}, false, 0},
		"it is imitated": {func(t *testing.T, w *world) {
			appear(t, w, 0)
			w.srv.DropConnections()
			time.Sleep(testTerm)
		}, true, 100},
		"its session ends": {func(t *testing.T, w *world) {
			w.srv.ExpireSession(w.s.ID)
			time.Sleep(3 * testTerm)
		}, false, 0},
		"its session has ended a while ago": {func(t *testing.T, w *world) {
			w.srv.ExpireSession(w.s.ID)
			time.Sleep(testTerm)
		}, false, 100},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				require.NoError(t, srv.PutNode(testDir, nil))
				cl := startClient(t, srv, "a")
				s := cl.session(t)
				_, err := cl.Create(t.Context(), s, "/written", nil, 0, zk.WorldACL(zk.PermAll))
				require.NoError(t, err)
				prefix := node.NamePrefix + node.NewGUID(node.GUIDMark)
				w := &world{srv, cl, s, prefix + "-lock-0000000007"}
				s.Own(100, 1000)
				cl.Add(&PendingCreate{By: cl.Requests, Dir: testDir, Prefix: prefix, Sess: s, Owns: 100, Epoch: s.Epoch(), Moved: s.Reattached()})
				cl.Add(&PendingCreate{By: cl.Requests, Dir: "/missing", Prefix: prefix, Sess: s})
				time.Sleep(time.Second)
				c.happens(t, w)
				_, there := srv.Node(testDir + "/" + w.name)
				require.Equal(t, c.left, there)
				owned, _ := s.Own(0, 1000)
				require.Equal(t, c.owned, owned)
			})
		})
	}
}
