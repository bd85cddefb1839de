// SPDX-License-Identifier: Apache-2.0

package zklock

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/cohort"
	"github.com/zklock-go/zklock/internal/conn"
	"github.com/zklock-go/zklock/internal/lease"
	"github.com/zklock-go/zklock/internal/queue"
	"github.com/zklock-go/zklock/internal/session"
	"github.com/zklock-go/zklock/zktest"
)

// TestAnEndedHoldingIsNotCheckedAgain ends a holding before its last node is registered for checks.
//
//zklock:promise P2.5
func TestAnEndedHoldingIsNotCheckedAgain(t *testing.T) {
	var s holdings
	g, sess := new(holding), new(session.Session)
	s.add(g)
	s.remove(g)
	require.True(t, s.oversee(g, sess))
	require.Empty(t, s.by)
	require.Empty(t, s.live)
}

// A hold has ended, and its end is about to be reported, when its session ends too. Only the goroutine that has ended it reports and releases it.
//
//zklock:promise P19.7
func TestAHoldThatHasEndedIsNotSettledAgainWithItsSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.Options{})
		c, err := Connect(t.Context(), srv.Addrs(), &Options{Dialer: srv.DialFrom("a")})
		require.NoError(t, err)
		t.Cleanup(func() { c.Close() })
		hold, err := c.Mutex("/locks/a").Lock(t.Context())
		require.NoError(t, err)
		other, err := c.Mutex("/locks/b").Lock(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Second)
		ho := hold.holding()
		last, err := ho.end(ErrReleased)
		require.NoError(t, err)
		require.True(t, last)
		c.holds.loseAll(ho.nodes[0].Sess, ErrLost)
		ho.lose(ErrLost)
		time.Sleep(time.Second)
		require.False(t, ho.removed.IsSet())
		require.Len(t, srv.Children("/locks/a"), 1)
		require.ErrorIs(t, context.Cause(other.Context()), ErrLost)
		require.Empty(t, srv.Children("/locks/b"))
		ho.settle()
		time.Sleep(time.Second)
		require.True(t, ho.removed.IsSet())
		require.Empty(t, srv.Children("/locks/a"))
	})
}

// A request finds that the session is over before anything else has ended the hold. The call ends it, and says that it is lost.
//
//zklock:promise P8.7
func TestACallThatFindsTheSessionOverEndsTheHold(t *testing.T) {
	for name, call := range map[string]func(e *Election, h *Hold) error{
		"Confirm":  func(_ *Election, h *Hold) error { return h.Confirm(context.Background()) },
		"Proclaim": func(e *Election, h *Hold) error { return e.Proclaim(h.Context(), []byte("two")) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.Options{})
				c, err := Connect(t.Context(), srv.Addrs(), &Options{Dialer: srv.DialFrom("a")})
				require.NoError(t, err)
				t.Cleanup(func() { c.Close() })
				election := c.Election("/locks/a", nil)
				hold, err := election.Campaign(t.Context(), []byte("one"))
				require.NoError(t, err)
				time.Sleep(time.Second)
				c.holds.remove(hold.holding()) // nobody ends it with its session
				sess := hold.holding().nodes[0].Sess
				srv.DropConnections()
				srv.ExpireSession(sess.ID)
				time.Sleep(time.Second)
				require.True(t, sess.IsOver())
				require.NoError(t, context.Cause(hold.Context()))
				require.ErrorIs(t, call(election, hold), ErrLost)
				require.ErrorIs(t, context.Cause(hold.Context()), ErrLost)
			})
		})
	}
}

// The last waiter gives up when a place has just been granted. Nobody holds in the place, and it is given up.
//
//zklock:promise P12.6
func TestAPlaceThatIsGrantedWhenNobodyWaitsIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.Options{})
		c, err := Connect(t.Context(), srv.Addrs(), &Options{Dialer: srv.DialFrom("a")})
		require.NoError(t, err)
		t.Cleanup(func() { c.Close() })
		q := c.localQueue(cohortKey{path: "/locks/a", keep: defaultKeep})
		granted, err := c.engine.Obtain(t.Context(), &queue.Want{Recipe: cohortRecipe, Path: "/locks/a", Dir: "/locks/a", Data: c.shared})
		require.NoError(t, err)
		q.install(granted)
		require.Len(t, srv.Children("/locks/a"), 1)
		q.mu.Lock()
		q.wakeRun()
		q.mu.Unlock()
		time.Sleep(time.Second)
		require.Empty(t, srv.Children("/locks/a"))
	})
}

//zklock:promise P12.5
func TestWaitersThatMayHoldInAPlaceThatWasJustGranted(t *testing.T) {
	over, end := context.WithCancel(t.Context())
	end()
	for name, c := range map[string]struct {
		number int64
		waited bool
		of     context.Context
		takes  bool
	}{
		"one that had asked before its node was created":  {number: 3, waited: true, takes: true},
		"one that asked later, if no contender was ahead": {number: 4, takes: true},
		"one that asked later, as others may have":        {number: 4, waited: true},
		"nobody if it is lost already":                    {number: 3, of: over},
	} {
		t.Run(name, func(t *testing.T) {
			p := &sharedPlace{grant: &queue.Grant{Waited: c.waited}, holding: &holding{ctx: t.Context()}, lastAhead: 3}
			if c.of != nil {
				p.holding.ctx = c.of
			}
			require.Equal(t, c.takes, p.admits(c.number))
		})
	}
}

// The clock of the machine is set while a place is idle: the place is kept neither longer nor shorter, and the run takes as long.
//
//zklock:promise P12.7
func TestAPlaceIsIdleByTheMonotonicClock(t *testing.T) {
	start := time.Now()
	for _, set := range []time.Duration{-time.Hour, time.Hour} {
		after := func(d time.Duration) lease.Instant {
			return lease.Instant{Mono: start.Add(d), Wall: start.Add(d + set)}
		}
		sess := conn.NewSession(1, lease.New(func() lease.Instant { return after(0) }, 8*time.Second, lease.TickOf(0)))
		of := &holding{ctx: t.Context(), revocation: new(session.Revocation), nodes: []*session.OwnNode{{Sess: sess}}}
		p := &sharedPlace{grant: new(queue.Grant), holding: of, runs: run{start, time.Second}}
		describe := func(now lease.Instant) (s cohort.Situation) {
			p.describe(&s, now)
			return s
		}
		require.Zero(t, describe(lease.Instant{Mono: start, Wall: start.Add(-set)}).Idle)
		s := describe(after(time.Second / 2))
		require.Equal(t, time.Second/2, s.Idle)
		require.False(t, s.RunOver)
		p.watch(after(time.Second / 2))
		s = describe(after(time.Second))
		require.Equal(t, time.Second, s.Idle)
		require.True(t, s.RunOver)
		require.Equal(t, time.Second/2, s.Blind, "an eighth of the session timeout, of which a half has passed")
		require.False(t, s.Wanted)
		require.True(t, describe(after(3*time.Second/2)).Wanted, "it is not watched in time")
	}
}

// lateContext ends right after somebody has looked at it for the first time.
type lateContext struct {
	context.Context
	looked *bool
	end    func()
}

func (c lateContext) Err() error {
	err := c.Context.Err()
	if !*c.looked {
		*c.looked = true
		c.end()
	}
	return err
}

func (c lateContext) Value(key any) any {
	value := c.Context.Value(key)
	if !*c.looked {
		*c.looked = true
		c.end()
	}
	return value
}

// A hold ends between two looks at a context that ends with it, which Confirm, Proclaim and Downgrade, and Do, have in a call.
//
//zklock:promise P8.1 P15.4
func TestAHoldThatEndsBetweenTwoLooksIsTheReason(t *testing.T) {
	lost := fmt.Errorf("%w: its session is over", ErrLost)
	ending := func() (*Hold, context.Context) {
		life, lose := context.WithCancelCause(t.Context())
		inside, cut := context.WithCancelCause(t.Context())
		h := &Hold{from: &holding{engine: none.engine}, life: life}
		return h, lateContext{inside, new(bool), func() {
			lose(lost)
			cut(lost)
		}}
	}
	h, inside := ending()
	require.ErrorIs(t, h.causeOf(inside, io.EOF), ErrLost)
	require.NotErrorIs(t, h.causeOf(inside, io.EOF), context.Canceled)
	h, inside = ending()
	require.ErrorIs(t, h.endOf(inside), ErrLost)

	other, cancel := context.WithCancel(t.Context())
	h, _ = ending()
	require.Equal(t, io.EOF, h.causeOf(other, io.EOF))
	cancel()
	require.ErrorIs(t, h.causeOf(other, io.EOF), context.Canceled)
}

//zklock:promise P18.9
func TestTLSErrorsNameARemedy(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{x509.UnknownAuthorityError{}, " (add its issuer to RootCAs of Options.TLS)"},
		{&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, " (add its issuer to RootCAs of Options.TLS)"},
		{x509.HostnameError{Certificate: &x509.Certificate{}, Host: "zk1"}, " (list the server by a name of its certificate, or set ServerName of Options.TLS)"},
		{x509.CertificateInvalidError{Reason: x509.Expired}, " (renew the server's certificate, or correct this host's clock)"},
		{x509.CertificateInvalidError{Reason: x509.NotAuthorizedToSign}, ""},
		{tls.RecordHeaderError{}, " (the port may be one without TLS: list the server's secureClientPort)"},
		{fmt.Errorf("handshake: %w", io.EOF), " (the port may be one without TLS: list the server's secureClientPort)"},
		{&net.OpError{Op: "remote error", Err: tls.AlertError(116)}, " (the server refuses this client: set Certificates of Options.TLS)"},
		{&net.OpError{Op: "read", Err: errors.New("reset")}, ""},
	} {
		require.Equal(t, c.want, tlsAdvice(c.err), "%v", c.err)
	}
}
