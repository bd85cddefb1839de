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

// fault hurts an ensemble and heals it again.
type fault struct {
	name    string
	hurt    func(ctx context.Context, z *zkcontainer.Ensemble, leader, follower *zkcontainer.Member) error
	heal    func(ctx context.Context, z *zkcontainer.Ensemble, leader, follower *zkcontainer.Member) error
	leader  bool // it hits the clients of the leader, else those of a follower
	outage  bool // nobody can be granted anything meanwhile
	network bool // it is done to links
	costs   bool // the holds of the clients that are bound to the server that it hits
}

var faults = []fault{
	{
		name: "follower killed",
		hurt: toFollower((*zkcontainer.Member).Kill), heal: toFollower((*zkcontainer.Member).Restart),
	},
	{
		name: "leader killed", leader: true,
		hurt: toLeader((*zkcontainer.Member).Kill), heal: toLeader((*zkcontainer.Member).Restart),
	},
	{
		name: "follower paused",
		hurt: toFollower((*zkcontainer.Member).Pause), heal: toFollower((*zkcontainer.Member).Unpause),
	},
	{
		name: "leader paused", leader: true,
		hurt: toLeader((*zkcontainer.Member).Pause), heal: toLeader((*zkcontainer.Member).Unpause),
	},
	{
		name: "all paused", outage: true,
		hurt: toAll((*zkcontainer.Member).Pause), heal: toAll((*zkcontainer.Member).Unpause),
	},
	{
		name: "follower cut off from its peers", network: true, costs: true,
		hurt: toFollower((*zkcontainer.Member).CutFromPeers), heal: toFollower((*zkcontainer.Member).Heal),
	},
	{
		name: "leader cut off from its peers", leader: true, network: true, costs: true,
		hurt: toLeader((*zkcontainer.Member).CutFromPeers), heal: toLeader((*zkcontainer.Member).Heal),
	},
	{
		name: "slow links", network: true,
		hurt: slowLinks, heal: toAll((*zkcontainer.Member).Fast),
	},
	{
		name: "all restarted one by one",
		hurt: func(ctx context.Context, z *zkcontainer.Ensemble, _, _ *zkcontainer.Member) error {
			for _, s := range z.Members {
				if err := s.Kill(ctx); err != nil {
					return err
				}
				if err := s.Restart(ctx); err != nil {
					return err
				}
				if err := z.Healthy(ctx); err != nil {
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

// TestFaults lets workers contend for locks of every recipe while three servers are hurt and healed again. It checks
// the history of what they saw against the servers' own transaction log.
func TestFaults(t *testing.T) {
	t.Parallel()
	part(t)
	free := make(chan string, 3) // ensembles that nobody hurts at the moment, by name
	for i := range cap(free) {
		free <- fmt.Sprintf("three servers to hurt, %d", i+1)
	}
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			part(t)
			name := <-free
			t.Cleanup(func() { free <- name }) // when all is healed
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
	// lasting is how long a fault lasts at least: sessions that depend on what is hurt end in it, and others take over.
	lasting = 2 * session
	// asleep is how long a turn may stay unused while nothing is broken. A generous bound: nothing is measured here.
	asleep = 20 * time.Second
)

func underFault(t *testing.T, z *zkcontainer.Ensemble, f fault) {
	since := time.Now()
	leader, err := z.Leader(t.Context())
	require.NoError(t, err)
	followers, err := z.Followers(t.Context())
	require.NoError(t, err)
	order := append([]*zkcontainer.Member{leader}, followers...) // the last is hurt only where all are
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
	// Who has another server to go to keeps its hold, if it is quick. Who has none must lose it.
	hit := slices.Index(order, victim)
	w.grip(t, func(one worker) bool { return one.server == hit && one.bound == f.costs })

	from := w.rec.Now()
	healed := false
	heal := func() {
		if !healed {
			healed = true
			assert.NoError(t, f.heal(context.Background(), z, leader, followers[0]))
			assert.NoError(t, z.Healthy(context.Background()))
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

	t.Logf("hurt at %v, for %v, healthy again %v later, everybody got on by %v", from.Round(time.Millisecond),
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
		t.Logf("%s: contended grants: %d before, %d during, %d after; the longest wait before took %v", path.Base(lock), before, during, after,
			longest(only.Ops, from).Round(time.Millisecond))
		proof := min(before, after) >= enough && (f.outage || during >= enough)
		assert.True(t, proof, "too few contended grants of %s to prove anything", path.Base(lock))
	}
	if f.costs {
		assert.Positive(t, lost, "the fault has hit no hold")
	}
	if f.outage {
		seen := func(w history.Window) bool { return w.Kind == standingStill && w.From < ending && w.To > ending }
		assert.True(t, slices.ContainsFunc(h.Faults, seen), "nobody saw the servers stand still: %v", h.Faults)
	}
	noGhosts(t, w, z.Addrs())
}

// TestCalm is the same contention with nobody hurting anything, on the user's own servers too.
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

// longest returns the longest wait that had ended by then.
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

// keepHistory saves a history that breaks a promise, and tells what happened around the first violation.
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
		// A semaphore's queue is a lock in the history.
		if (txn.Lock == "" || strings.HasPrefix(txn.Lock, first.Path)) && around(txn.Time, txn.Time) {
			near.Txns = append(near.Txns, txn)
		}
	}
	var story strings.Builder
	require.NoError(t, history.Story(&story, near, nil))
	t.Logf("history: %s; around the first violation:\n%s", f.Name(), story.String())
}

// noGhosts waits until no queue has a node. All were released, those of dead sessions end with them.
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
