// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/integration/internal/txnlog"
	"github.com/zklock-go/zklock/internal/evidence/history"
	"github.com/zklock-go/zklock/zkcontainer"
)

// fault is something that can be done to an ensemble and undone again.
type fault struct {
	name    string
	hurt    func(ctx context.Context, z *zkcontainer.Ensemble, leader, follower *zkcontainer.Member) error
	heal    func(ctx context.Context, z *zkcontainer.Ensemble, leader, follower *zkcontainer.Member) error
	leader  bool // the fault affects the clients of the leader, otherwise those of a follower
	outage  bool // no lock can be granted during the fault
	network bool // the fault affects links
	costs   bool // clients that know only the affected server lose their holds
}

var faults = []fault{
	{
		name: "follower killed",
		hurt: toFollower((*zkcontainer.Member).Stop), heal: toFollower((*zkcontainer.Member).Start),
	},
	{
		name: "leader killed", leader: true,
		hurt: toLeader((*zkcontainer.Member).Stop), heal: toLeader((*zkcontainer.Member).Start),
	},
	{
		name: "follower paused",
		hurt: toFollower((*zkcontainer.Member).Freeze), heal: toFollower((*zkcontainer.Member).Thaw),
	},
	{
		name: "leader paused", leader: true,
		hurt: toLeader((*zkcontainer.Member).Freeze), heal: toLeader((*zkcontainer.Member).Thaw),
	},
	{
		name: "all paused", outage: true,
		hurt: toAll((*zkcontainer.Member).Freeze), heal: toAll((*zkcontainer.Member).Thaw),
	},
	{
		name: "follower cut off from its peers", network: true, costs: true,
		hurt: toFollower((*zkcontainer.Member).CutOff), heal: toFollower((*zkcontainer.Member).Rejoin),
	},
	{
		name: "leader cut off from its peers", leader: true, network: true, costs: true,
		hurt: toLeader((*zkcontainer.Member).CutOff), heal: toLeader((*zkcontainer.Member).Rejoin),
	},
	{
		name: "slow links", network: true,
		hurt: slowLinks, heal: toAll((*zkcontainer.Member).EndSlow),
	},
	{
		name: "all restarted one by one",
		hurt: func(ctx context.Context, z *zkcontainer.Ensemble, _, _ *zkcontainer.Member) error {
			for _, s := range z.Members {
				if err := s.Stop(ctx); err != nil {
					return err
				}
				if err := s.Start(ctx); err != nil {
					return err
				}
				if err := z.WaitHealthy(ctx); err != nil {
					return err
				}
			}
			return nil
		},
		heal: toAll(func(*zkcontainer.Member, context.Context) error { return nil }),
	},
}

type action = func(ctx context.Context, z *zkcontainer.Ensemble, leader, follower *zkcontainer.Member) error

func toFollower(do func(*zkcontainer.Member, context.Context) error) action {
	return func(ctx context.Context, _ *zkcontainer.Ensemble, _, follower *zkcontainer.Member) error {
		return do(follower, ctx)
	}
}

func toLeader(do func(*zkcontainer.Member, context.Context) error) action {
	return func(ctx context.Context, _ *zkcontainer.Ensemble, leader, _ *zkcontainer.Member) error {
		return do(leader, ctx)
	}
}

func toAll(do func(*zkcontainer.Member, context.Context) error) action {
	return func(ctx context.Context, z *zkcontainer.Ensemble, _, _ *zkcontainer.Member) error {
		for _, s := range z.Members {
			if err := do(s, ctx); err != nil {
				return err
			}
		}
		return nil
	}
}

func slowLinks(ctx context.Context, z *zkcontainer.Ensemble, _, _ *zkcontainer.Member) error {
	for _, s := range z.Members {
		how, err := s.Slow(ctx)
		if err != nil {
			return err
		}
		fmt.Printf("integration: everything that %s sends is slow: tc %s\n", s.Name, how)
	}
	return nil
}

// TestFaults runs workers that contend for locks of every recipe during a fault of three servers. It checks the history that
// the workers recorded against the servers' transaction log.
//
//zklock:promise P1.1
func TestFaults(t *testing.T) {
	t.Parallel()
	part(t)
	free := make(chan string, 3) // names of the ensembles that no test uses at the moment
	for i := range cap(free) {
		free <- fmt.Sprintf("three servers for faults, %d", i+1)
	}
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			part(t)
			name := <-free
			t.Cleanup(func() { free <- name }) // runs after the fault was undone
			z := threeOf(t, name)
			if f.network {
				needsNetworks(t, z)
			}
			underFault(t, z, f)
		})
	}
}

const (
	processes = 6
	session   = 3 * time.Second
	// lasting is the minimum duration of a fault. Sessions at the affected servers expire in this time, and others take over.
	lasting = 2 * session
	// asleep is how long a free lock with waiters may go without a grant while there is no fault. The limit is generous, since
	// this is not a measurement.
	asleep = 20 * time.Second
)

func underFault(t *testing.T, z *zkcontainer.Ensemble, f fault) {
	since := time.Now()
	leader, err := z.Leader(t.Context())
	require.NoError(t, err)
	followers, err := z.Followers(t.Context())
	require.NoError(t, err)
	order := append([]*zkcontainer.Member{leader}, followers...) // only faults of all servers affect the last one
	var addrs []string
	for _, s := range order {
		addrs = append(addrs, s.Addr)
	}
	w := startWorkload(t, addrs, processes, session)
	w.progress(t, 10, everybody)
	victim := followers[0]
	if f.leader {
		victim = leader
	}
	// A client that quickly reaches another server keeps its hold. A client that knows no other server must lose it.
	hit := slices.Index(order, victim)
	w.grip(t, func(one worker) bool { return one.server == hit && one.bound == f.costs })

	from := w.rec.Now()
	healed := false
	heal := func() {
		if !healed {
			healed = true
			assert.NoError(t, f.heal(context.Background(), z, leader, followers[0]))
			assert.NoError(t, z.WaitHealthy(context.Background()))
		}
	}
	t.Cleanup(heal)
	require.NoError(t, f.hurt(t.Context(), z, leader, followers[0]))
	time.Sleep(lasting)
	if !f.outage {
		w.progress(t, 8, mobile)
	}
	ending := w.rec.Now()
	heal()
	to := w.rec.Now()
	w.rec.Fault(history.Window{From: from, To: to, Kind: f.name})
	w.progress(t, 10, everybody)

	t.Logf("fault at %v, for %v; healthy again %v later; all workers made progress by %v", from.Round(time.Millisecond),
		(ending - from).Round(time.Millisecond), (to - ending).Round(time.Millisecond), w.rec.Now().Round(time.Millisecond))

	h := w.finish(t, func() ([]txnlog.Txn, error) { return txnlog.Read(t.Context(), z, since) })
	checkHistory(t, w, h)
	lost := 0
	for _, op := range h.Ops {
		if op.Freed > 0 && !op.Clean {
			lost++
		}
		if op.End-op.Return > lasting/4 {
			t.Logf("%s relied on %s from %v to %v, released at %v: %s", op.Client, path.Base(op.Path), op.Return, op.End, op.Freed, op.Error)
		}
	}
	t.Logf("%d operations, %d transactions, %d holds lost", len(h.Ops), len(h.Txns), lost)
	for lock := range w.grips {
		only := *h
		only.Ops = slices.DeleteFunc(slices.Clone(h.Ops), func(op history.Op) bool { return op.Path != lock })
		before, during, after := history.Contended(&only, 0, from), history.Contended(&only, from, to), history.Contended(&only, to, h.End)
		t.Logf("%s: contended grants: %d before, %d during, %d after; longest wait before: %v", path.Base(lock), before, during, after,
			longest(only.Ops, from).Round(time.Millisecond))
		proof := min(before, after) >= enough && (f.outage || during >= enough)
		assert.True(t, proof, "too few contended grants of %s", path.Base(lock))
	}
	if f.costs {
		assert.Positive(t, lost, "no hold was lost")
	}
	if f.outage {
		seen := func(w history.Window) bool { return w.Kind == paused && w.From < ending && w.To > ending }
		assert.True(t, slices.ContainsFunc(h.Faults, seen), "no pause of the servers was recorded: %v", h.Faults)
	}
	noGhosts(t, w, z.Addrs())
}

// TestCalm is TestFaults without a fault. It can also use external servers.
//
//zklock:promise P1.1
func TestCalm(t *testing.T) {
	part(t)
	since := time.Now()
	w := startWorkload(t, servers(t), processes, 10*time.Second)
	w.progress(t, 50, everybody)
	var log func() ([]txnlog.Txn, error)
	if len(lab.external) == 0 {
		log = func() ([]txnlog.Txn, error) { return txnlog.Read(t.Context(), one(t), since) }
	}
	h := w.finish(t, log)
	checkHistory(t, w, h)
	noGhosts(t, w, servers(t))
	t.Logf("%d operations, %d transactions; contended grants: %d", len(h.Ops), len(h.Txns), history.Contended(h, 0, h.End))
}

// longest returns the longest wait for a grant before then.
func longest(ops []history.Op, then time.Duration) (wait time.Duration) {
	for _, op := range ops {
		if op.Outcome == history.Granted && op.Kind == "" && op.Return < then {
			wait = max(wait, op.Return-op.Call)
		}
	}
	return wait
}

func checkHistory(t *testing.T, w *workload, h *history.History) {
	violations := history.Check(h, history.Limits{Wake: asleep})
	for _, v := range violations[:min(len(violations), 10)] {
		t.Error(v)
	}
	if len(violations) > 0 {
		keepHistory(t, h, violations[0])
	}
	checkStore(t, w.uses)
}

// keepHistory saves a history that violates a promise, and logs the events around the first violation.
func keepHistory(t *testing.T, h *history.History, first history.Violation) {
	f, err := os.CreateTemp("", "zklock-history-*.jsonl")
	require.NoError(t, err)
	require.NoError(t, errors.Join(h.Save(f), f.Close()))
	near := &history.History{Faults: h.Faults}
	around := func(from, to time.Duration) bool {
		return from <= first.At+2*asleep && (to == 0 || to >= first.At-asleep/2)
	}
	for _, op := range h.Ops {
		if op.Path == first.Path && around(op.Call, op.Freed) {
			near.Ops = append(near.Ops, op)
		}
	}
	for _, txn := range h.Txns {
		// In the history, a semaphore's queue is a separate lock below its path.
		if (txn.Lock == "" || strings.HasPrefix(txn.Lock, first.Path)) && around(txn.Time, txn.Time) {
			near.Txns = append(near.Txns, txn)
		}
	}
	var story strings.Builder
	require.NoError(t, history.Story(&story, near, nil))
	t.Logf("history: %s; around the first violation:\n%s", f.Name(), story.String())
}

// noGhosts waits until no queue has a node. Live sessions have released theirs, and the end of a session deletes its nodes.
func noGhosts(t *testing.T, w *workload, addrs []string) {
	conn, _ := dial(t, 10*time.Second, addrs...)
	for lock := range w.grips {
		queues := []string{lock}
		if path.Base(lock) == string(history.Semaphore) {
			queues = []string{lock + "/leases", lock + "/locks"}
		}
		for _, queue := range queues {
			untilChildren(t, conn, queue, 0)
		}
	}
}
