// SPDX-License-Identifier: Apache-2.0

package zktest_test

import (
	"bufio"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/evidence/wire"
	"github.com/zklock-go/zklock/internal/lab"
	"github.com/zklock-go/zklock/zktest"
)

// What a client or the machine may do to the server without bringing it down.

// failing is a socket whose first accepts fail for want of file descriptors.
type failing struct {
	net.Listener
	left atomic.Int32
}

func (l *failing) Accept() (net.Conn, error) {
	if l.left.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: syscall.EMFILE}
	}
	return l.Listener.Accept()
}

func TestASocketOutlivesAFailedAccept(t *testing.T) {
	srv := zktest.Start(t)
	require.NoError(t, srv.Member(0).Listen("127.0.0.1:0", func(network, addr string) (net.Listener, error) {
		l, err := net.Listen(network, addr)
		f := &failing{Listener: l}
		f.left.Store(3)
		return f, err
	}))
	nc, err := netDial(srv.Addr())
	require.NoError(t, err)
	defer nc.Close()
	sess, err := wire.New(nc).Connect(wire.Hello{Timeout: 10000})
	require.NoError(t, err)
	require.NotZero(t, sess.ID)
}

func TestASecondSocketIsAnError(t *testing.T) {
	srv := zktest.Run(t)
	require.ErrorContains(t, srv.Listen("127.0.0.1:0"), "already listens at "+srv.Addr())
	srv.Close() // and hangs on nothing
}

func TestAStoppedMemberListensAgainWithTheGivenFunction(t *testing.T) {
	srv := zktest.Start(t)
	calls := []string{}
	require.NoError(t, srv.Member(0).Listen("127.0.0.1:0", func(network, addr string) (net.Listener, error) {
		calls = append(calls, addr)
		return net.Listen(network, addr)
	}))
	addr := srv.Addr()
	srv.Member(0).Stop()
	_, err := netDial(addr)
	require.Error(t, err)
	srv.Member(0).Start()
	nc, err := netDial(addr)
	require.NoError(t, err)
	require.NoError(t, nc.Close())
	require.Equal(t, []string{"127.0.0.1:0", addr}, calls)
}

func TestAConnectionThatRequestsNoSessionIsClosed(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *zktest.Server) {
		nc, err := srv.Dial("tcp", srv.Addr(), time.Second)
		require.NoError(t, err)
		defer nc.Close()
		begin := time.Now()
		_, err = nc.Read(make([]byte, 1))
		require.Error(t, err)
		require.Equal(t, 10*time.Second, time.Since(begin))
		c, _ := raw(t, srv, srv.Member(0), wire.Hello{Timeout: 40000})
		time.Sleep(20 * time.Second)
		ping(t, c) // one with a session may be silent
	})
}

func TestAClientThatDoesNotReadIsNotServedForEver(t *testing.T) {
	srv := zktest.Start(t)
	data := make([]byte, 100<<10)
	require.NoError(t, srv.PutNode("/big", data))
	nc, err := srv.Dial("tcp", "", time.Second)
	require.NoError(t, err)
	defer nc.Close()
	_, err = wire.New(nc).Connect(wire.Hello{Timeout: 40000})
	require.NoError(t, err)
	require.NoError(t, nc.SetDeadline(time.Time{}))
	const requests = 600
	sent := make(chan error, 1)
	// Ends when all is sent, which the reading below makes possible; the receive at the end waits for it.
	go func() {
		w := bufio.NewWriter(nc)
		frame := wire.NewBody().Int(1).Int(4).Str("/big").Bool(false).Framed()
		for range requests {
			if _, err := w.Write(frame); err != nil {
				sent <- err
				return
			}
		}
		sent <- w.Flush()
	}()
	require.Eventually(t, func() bool { return srv.Requests()[zktest.OpGetData] > 9 }, 10*time.Second, time.Millisecond)
	require.Less(t, srv.Requests()[zktest.OpGetData], 100, "60 MB of answers are not made before they are read")
	_, err = io.CopyN(io.Discard, nc, requests*int64(len(data)))
	require.NoError(t, err)
	require.NoError(t, <-sent)
}

func TestRequestsWithoutAnswersHoldTheirConnectionBack(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		c, _ := raw(t, srv, srv.Member(1), wire.Hello{Timeout: 40000})
		srv.Member(1).CutOff()
		for range 3000 {
			require.NoError(t, c.Send(1, 5, wire.NewBody().Str("/no").Buf(nil).Int(-1)))
		}
		synctest.Wait()
		require.Equal(t, 1000, srv.Requests()[zktest.OpSetData])
		srv.Member(1).Rejoin()
		for range 3000 {
			_, err := c.Read()
			require.NoError(t, err)
		}
	})
}

func TestAClientThatDisconnectsWhileItIsHeldBackIsForgotten(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		c, _ := raw(t, srv, srv.Member(1), wire.Hello{Timeout: 40000})
		srv.Member(1).CutOff()
		for range 1200 {
			require.NoError(t, c.Send(1, 5, wire.NewBody().Str("/no").Buf(nil).Int(-1)))
		}
		synctest.Wait()
		require.NoError(t, c.Close())
		synctest.Wait()
		require.Equal(t, -1, srv.Sessions()[0].Member)
	})
}

func TestASuperUserPassesAllAccessLists(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.Apply(zktest.Step{
			Op: zktest.OpCreate, Path: "/x", ACL: []zktest.ACL{{Perms: zktest.PermAll, Scheme: "digest", ID: "joe:x"}},
		}))
		a, _ := connect(t, srv, "a", 9*time.Second)
		_, _, err := a.Get("/x")
		require.ErrorIs(t, err, zk.ErrNoAuth)
		require.NoError(t, a.AddAuth("digest", []byte("root:wrong")))
		_, _, err = a.Get("/x")
		require.ErrorIs(t, err, zk.ErrNoAuth)
		require.NoError(t, a.AddAuth("digest", []byte("root:secret")))
		_, _, err = a.Get("/x")
		require.NoError(t, err)
	}, zktest.Options{Super: "root:secret"})
}

func TestTTLNodesCanBeUnimplemented(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *zktest.Server) {
		a, _ := connect(t, srv, "a", 9*time.Second)
		_, err := a.CreateTTL("/t", nil, zk.FlagTTL, open, time.Minute)
		require.Error(t, err)
		require.Empty(t, srv.Tree())
	}, lab.With(zktest.Options{}, lab.Options{NoTTL: true}))
}
