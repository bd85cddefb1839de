// SPDX-License-Identifier: Apache-2.0

package zktest_test

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/evidence/wire"
	"github.com/zklock-go/zklock/internal/lab"
	"github.com/zklock-go/zklock/zktest"
)

// A follower takes a commit for the answer to the first request that waits, if session and number are the same: see
// CommitProcessor. What a client sent through another member may have had that number.

// moves has a client send a create through member 1 and return to member 2, which applies it a second later. If the create
// is late, it reaches the leader when the client has returned.
func moves(t *testing.T, srv *zktest.Server, late bool) *wire.Conn {
	t.Helper()
	before, sess := raw(t, srv, srv.Member(1), wire.Hello{Timeout: 20000})
	release := func() {}
	if late {
		release = lab.HoldForwards(srv.Member(1))
	}
	srv.Member(2).Lag(time.Second)
	require.NoError(t, before.Send(5, int32(zktest.OpCreate), create("/before", 0)))
	time.Sleep(time.Millisecond)
	require.NoError(t, before.Close())
	after, again := raw(t, srv, srv.Member(2), wire.Hello{Timeout: 20000, Session: sess.ID, Passwd: sess.Passwd})
	require.Equal(t, sess.ID, again.ID)
	release()
	return after
}

func TestANumberThatIsGivenTwiceInASessionGetsTheEarlierOutcome(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		after := moves(t, srv, false)
		release := lab.HoldForwards(srv.Member(2))
		require.NoError(t, after.Send(5, int32(zktest.OpCreate), create("/after", 0)))
		answer, err := after.Read()
		require.NoError(t, err)
		require.Equal(t, int32(5), answer.Xid)
		require.Zero(t, answer.Err)
		require.Equal(t, "/before", wire.Parse(answer.Body).Str())
		require.NotContains(t, srv.Tree(), "/after", "and the answer is a success all the same")
		release()
		time.Sleep(2 * time.Second)
		require.Contains(t, srv.Tree(), "/after")
		ping(t, after) // nothing else has come
	})
}

func TestANumberThatIsGivenTwiceCanEndAnotherConnection(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		after := moves(t, srv, true) // the leader refuses the create, as of a session that has moved
		require.NoError(t, after.Send(5, int32(zktest.OpCreate), create("/after", 0)))
		_, err := after.Read()
		require.ErrorIs(t, err, io.EOF)
		require.Contains(t, srv.Tree(), "/after")
		require.NotContains(t, srv.Tree(), "/before")
	})
}

func TestNumbersThatAreGivenOnceAreNotMixedUp(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		after := moves(t, srv, false)
		require.NoError(t, after.Send(6, int32(zktest.OpCreate), create("/after", 0)))
		answer, err := after.Read()
		require.NoError(t, err)
		require.Equal(t, "/after", wire.Parse(answer.Body).Str())
	})
}
