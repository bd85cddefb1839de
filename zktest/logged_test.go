// SPDX-License-Identifier: Apache-2.0

package zktest_test

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/evidence/wire"
	"github.com/zklock-go/zklock/zktest"
)

// logs has the leader log a create that no quorum hears of, and give up its leadership. The others are back then.
func logs(t *testing.T, srv *zktest.Server, meanwhile func()) {
	t.Helper()
	c, sess := raw(t, srv, srv.Member(0), wire.Hello{Timeout: 40000})
	srv.Member(1).CutOff()
	srv.Member(2).CutOff()
	require.NoError(t, c.Send(1, int32(zktest.OpCreate), create("/logged", zk.FlagEphemeral)))
	time.Sleep(20 * time.Second)
	require.NotContains(t, srv.Tree(), "/logged")
	meanwhile()
	srv.Member(1).Rejoin()
	srv.Member(2).Rejoin()
	time.Sleep(time.Second)
	require.NotNil(t, srv.Leader())
	require.Equal(t, sess.ID, srv.Sessions()[0].ID)
}

func TestALeaderThatIsElectedAgainCommitsWhatItHasLogged(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		logs(t, srv, func() {})
		require.Equal(t, srv.Member(0), srv.Leader(), "its log is the longest")
		node, ok := srv.Node("/logged")
		require.True(t, ok)
		require.EqualValues(t, 1, node.Czxid>>32, "in the epoch in which it was proposed")
	})
}

func TestTransactionsLoggedOnlyByADeposedLeaderAreLostIfAnotherLeads(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		logs(t, srv, srv.Member(0).Stop)
		require.NotEqual(t, srv.Member(0), srv.Leader())
		srv.Member(0).Start()
		srv.ElectLeader(0)
		require.NotContains(t, srv.Tree(), "/logged")
	})
}

func TestASessionThatExpiredWithoutAQuorumEndsWithTheNextLeader(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		_, sess := raw(t, srv, srv.Member(0), wire.Hello{Timeout: 4000})
		logs(t, srv, func() {})
		require.Len(t, srv.Sessions(), 1, "not %x: it gets no new timeout", sess.ID)
	})
}
