// SPDX-License-Identifier: Apache-2.0

package zktest_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/zktest"
)

// TestRandomFaultsLeaveEqualReplicas throws faults of every sort at an ensemble
// under load. Then all is healed, and what must hold is: every member has the
// same data, each ephemeral has a live session, zxids grew with every transaction,
// the ensemble still works.
func TestRandomFaultsLeaveEqualReplicas(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			bubble(t, 3, func(t *testing.T, srv *zktest.Server) { chaos(t, srv, seed) }, zktest.Options{
				Seed:    seed,
				Latency: func(r *rand.Rand) time.Duration { return time.Duration(r.IntN(3000)) * time.Microsecond },
			})
		})
	}
}

func chaos(t *testing.T, srv *zktest.Server, seed uint64) {
	last := srv.Zxid()
	remove := srv.OnTxn(func(txn zktest.Txn) {
		if txn.Zxid <= last {
			t.Errorf("zxid 0x%x after 0x%x", txn.Zxid, last)
		}
		last = txn.Zxid
	})
	defer remove()
	require.NoError(t, srv.PutNode("/dir", nil))
	var wg sync.WaitGroup
	end := make(chan struct{})
	for i := range 3 {
		conn, _ := connect(t, srv, fmt.Sprint("c", i), 6*time.Second)
		wg.Add(1)
		// Works until end is closed; the wait below joins it.
		go func() {
			defer wg.Done()
			load(conn, rand.New(rand.NewPCG(seed, uint64(i))), end)
		}()
	}
	r := rand.New(rand.NewPCG(seed, 99))
	for range 60 {
		fault(srv, r)
		time.Sleep(time.Duration(r.IntN(4000)) * time.Millisecond)
	}
	for i := range 3 {
		m := srv.Member(i)
		m.Thaw()
		m.Rejoin()
		m.Start()
		m.Refuse(false)
		m.Lag(0)
		srv.HealClient(fmt.Sprint("c", i))
	}
	time.Sleep(30 * time.Second)
	close(end)
	wg.Wait()
	synctest.Wait()
	trees, serving := srv.Replicas()
	require.Equal(t, []bool{true, true, true}, serving)
	require.Equal(t, trees[0], trees[1])
	require.Equal(t, trees[0], trees[2])
	live := make(map[int64]bool)
	for _, sess := range srv.Sessions() {
		live[sess.ID] = true
	}
	for path, node := range srv.Tree() {
		require.True(t, node.EphemeralOwner == 0 || live[node.EphemeralOwner], "%s belongs to a session that is gone", path)
	}
	require.NoError(t, srv.PutNode("/dir/end", nil))
}

// load makes, reads and deletes nodes for as long as it may.
func load(conn *zk.Conn, r *rand.Rand, end <-chan struct{}) {
	var own []string
	for {
		select {
		case <-end:
			return
		case <-time.After(time.Duration(1+r.IntN(300)) * time.Millisecond):
		}
		switch k := r.IntN(6); {
		case k == 0 && len(own) > 0:
			_ = conn.Delete(own[0], -1)
			own = own[1:]
		case k == 1:
			_, _, _, _ = conn.ChildrenW("/dir")
		case k == 2:
			_, _ = conn.Sync("/dir")
		case k == 3:
			_, _ = conn.Multi(&zk.CheckVersionRequest{Path: "/dir", Version: -1}, &zk.SetDataRequest{Path: "/dir", Version: -1})
		default:
			if path, err := conn.Create("/dir/n-", nil, zk.FlagEphemeral|zk.FlagSequence, open); err == nil {
				own = append(own, path)
			}
		}
	}
}

func fault(srv *zktest.Server, r *rand.Rand) {
	m := srv.Member(r.IntN(3))
	client := fmt.Sprint("c", r.IntN(3))
	switch r.IntN(14) {
	case 0:
		m.CutOff()
	case 1, 2:
		m.Rejoin()
	case 3:
		m.Freeze()
	case 4, 5:
		m.Thaw()
	case 6:
		m.Stop()
	case 7, 8:
		m.Start()
	case 9:
		m.Lag(time.Duration(r.IntN(3000)) * time.Millisecond)
	case 10:
		srv.Partition(client)
	case 11:
		srv.HealClient(client)
	case 12:
		srv.DropConnections()
	case 13:
		if sessions := srv.Sessions(); len(sessions) > 0 {
			srv.ExpireSession(sessions[r.IntN(len(sessions))].ID)
		} else {
			srv.Restart()
		}
	}
}
