// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/integration/internal/txnlog"
	"github.com/zklock-go/zklock/internal/evidence/history"
)

// workload runs many workers that contend for a few locks, and records the history.
type workload struct {
	rec    *history.Recorder
	store  *store
	root   string
	counts []atomic.Int64           // grants of each worker
	leases atomic.Pointer[[]string] // the most recently read nodes of the semaphore's permits, in order
	queued atomic.Int64             // how many times one of them was seen waiting
	stop   chan struct{}
	done   sync.WaitGroup

	workers []worker
	grips   map[string]chan struct{}              // lock -> closed when a worker has a long hold of it
	gripper atomic.Pointer[func(one worker) bool] // reports which workers may take a long hold

	mu    sync.Mutex
	valid map[int64]time.Duration // guarded by mu: when Check last succeeded for each operation's hold
	uses  []porcupine.Operation   // guarded by mu
	// together is guarded by mu. For a node of a hold with several nodes, it has the names that the next deleted nodes
	// of this hold get in the history.
	together map[string]*[]string
}

// workPermits is the size of the semaphore. Each worker acquires one or two permits.
const workPermits = 2

// worker acquires and releases one lock in a loop.
type worker struct {
	name    string // name of its process
	server  int    // index of the server to which its process connected first
	bound   bool   // the process knows no other server
	recipe  history.Recipe
	path    string
	shared  bool
	weight  int
	acquire func(ctx context.Context) (*zklock.Hold, error)
}

// startWorkload starts processes with one session each, and in each process a worker for every lock. For each server there is
// one process that knows only this server. The other processes know all servers, and start with different ones. The test
// observes the leases through the last server.
func startWorkload(t *testing.T, servers []string, processes int, session time.Duration) *workload {
	w := &workload{
		rec: history.NewRecorder(), store: newStore(), root: root(t),
		stop: make(chan struct{}), valid: map[int64]time.Duration{}, grips: map[string]chan struct{}{},
		together: map[string]*[]string{},
	}
	w.gripper.Store(&nobody)
	w.leases.Store(&[]string{})
	w.watchLeases(t, servers[len(servers)-1])
	w.watchServers(t, servers)
	for i := range processes {
		process := worker{name: fmt.Sprintf("process %d", i), server: i % len(servers), bound: i < len(servers)}
		told := slog.New(slog.NewTextHandler(t.Output(), nil)).With("client", process.name)
		opts, addrs := &zklock.Options{SessionTimeout: session, Label: process.name, Logger: told}, servers
		if process.bound {
			addrs = []string{servers[process.server]}
		} else {
			opts.HostProvider = &inTurn{first: process.server}
		}
		w.workers = append(w.workers, w.workersOf(connect(t, opts, addrs...), process, i)...)
	}
	w.rec.Begin(history.Op{
		Kind: history.Resize, Recipe: history.Semaphore, Path: path.Join(w.root, string(history.Semaphore)), Weight: workPermits,
	}).Finished(history.Granted, nil)
	w.counts = make([]atomic.Int64, len(w.workers))
	for _, one := range w.workers {
		w.grips[one.path] = make(chan struct{})
	}
	for i, one := range w.workers {
		w.done.Add(1)
		// Owned by w: ends after the current cycle once w.stop is closed. finish waits for it.
		go func() {
			defer w.done.Done()
			random := rand.New(rand.NewPCG(uint64(i), 1))
			for !w.stopped() && w.cycle(t, one, random, session) {
				w.counts[i].Add(1)
			}
		}()
	}
	return w
}

// workersOf returns the workers of one process: one for every lock, and a second one that reads the RWMutex.
func (w *workload) workersOf(c *zklock.Client, process worker, number int) []worker {
	var all []worker
	at := func(recipe history.Recipe) string { return path.Join(w.root, string(recipe)) }
	add := func(recipe history.Recipe, shared bool, weight int, acquire func(context.Context) (*zklock.Hold, error)) {
		one := process
		one.recipe, one.path, one.shared, one.weight, one.acquire = recipe, at(recipe), shared, weight, acquire
		all = append(all, one)
	}
	add(history.Mutex, false, 1, c.Mutex(at(history.Mutex)).Lock)
	add(history.Election, false, 1, func(ctx context.Context) (*zklock.Hold, error) {
		return c.Election(at(history.Election), nil).Campaign(ctx, []byte(process.name))
	})
	add(history.RW, false, 1, c.RWMutex(at(history.RW)).Lock)
	add(history.RW, true, 1, c.RWMutex(at(history.RW)).RLock)
	weight := 1 + number%2
	add(history.Semaphore, false, weight, func(ctx context.Context) (*zklock.Hold, error) {
		return c.Semaphore(at(history.Semaphore), workPermits).Acquire(ctx, weight)
	})
	return all
}

// grip waits until one of the wanted workers has a long hold of every lock, which lasts more than a session timeout. So the
// fault that follows affects holders.
func (w *workload) grip(t *testing.T, wanted func(worker) bool) {
	w.gripper.Store(&wanted)
	for lock, taken := range w.grips {
		await(t, taken, "a long hold of "+lock)
	}
	w.gripper.Store(&nobody)
}

// takesGrip reports whether this worker's hold must be a long one.
func (w *workload) takesGrip(one worker) bool {
	if wanted := *w.gripper.Load(); !wanted(one) {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-w.grips[one.path]:
		return false
	default:
		close(w.grips[one.path])
		return true
	}
}

// standsFor returns the node that represents a hold in the history. Of several nodes, it is the last one, which had to wait
// longest.
func (w *workload) standsFor(hold *zklock.Hold) string {
	var nodes []string
	for _, check := range hold.Guard() {
		nodes = append(nodes, check.(*zk.CheckVersionRequest).Path)
	}
	slices.Reverse(nodes)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, node := range nodes {
		w.together[node] = &nodes
	}
	return nodes[0]
}

// gone returns the name of a deleted node in the history. A hold with several nodes ends with the first deletion, so the node
// that is deleted first gets the name of the node that represents the hold. The caller must hold mu.
func (w *workload) gone(node string) string {
	if names := w.together[node]; names != nil {
		delete(w.together, node) // the log can contain a second delete that found no node
		node, *names = (*names)[0], (*names)[1:]
	}
	return node
}

// watchLeases keeps w.leases up to date.
func (w *workload) watchLeases(t *testing.T, server string) {
	conn, _ := dial(t, session, server)
	w.done.Add(1)
	// Owned by w: ends when w.stop is closed. finish waits for it.
	go func() {
		defer w.done.Done()
		last := ""
		for !w.stopped() {
			names, _, changed, err := conn.ChildrenW(path.Join(w.root, string(history.Semaphore), "leases"))
			if err != nil { // the directory does not exist yet, or the server has a fault
				time.Sleep(20 * time.Millisecond)
				continue
			}
			slices.SortFunc(names, func(x, y string) int { return strings.Compare(number(x), number(y)) })
			w.leases.Store(&names)
			if len(names) > workPermits && names[len(names)-1] != last {
				last = names[len(names)-1]
				w.queued.Add(1)
			}
			select {
			case <-changed:
			case <-w.stop:
			}
		}
	}()
}

// wanted reports whether a contender behind this holder waits for permits. If holders released earlier, no contender would
// have to wait.
func (w *workload) wanted(hold *zklock.Hold) bool {
	names := *w.leases.Load()
	return len(names) > workPermits && number(names[len(names)-1]) > number(hold.Node())
}

// number returns the sequence number at the end of a node's name.
func number(node string) string { return node[max(0, len(node)-10):] }

func (w *workload) stopped() bool {
	select {
	case <-w.stop:
		return true
	default:
		return false
	}
}

// cycle acquires the lock, uses the store and releases the lock. It returns false if the test has failed.
func (w *workload) cycle(t *testing.T, one worker, random *rand.Rand, session time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	op := w.rec.Begin(history.Op{Recipe: one.recipe, Path: one.path, Client: one.name, Shared: one.shared, Weight: one.weight})
	called := w.rec.Now()
	hold, err := one.acquire(ctx)
	if err != nil {
		op.Finished(history.Failed, err)
		return assert.NoError(t, err, "%s failed to acquire %s", one.name, one.path)
	}
	op.Granted(w.standsFor(hold), hold.Token())
	// Hold at least for the log's resolution, otherwise a node could appear as deleted before its grant.
	least := time.Duration(2+random.IntN(5)) * time.Millisecond
	most := least
	if one.recipe == history.Semaphore {
		most = session / 2
	}
	if w.takesGrip(one) {
		least = session + session/2
	}
	result := w.use(one, op, hold, least, most)
	op.Ended()
	err = hold.Unlock(ctx)
	op.Freed(err)
	if one.recipe != history.Semaphore { // a semaphore does not make a use of the store atomic
		w.noteUse(porcupine.Operation{
			ClientId: int(op.ID()), Input: result.use, Call: int64(called), Output: result, Return: int64(w.rec.Now()),
		})
	}
	if err != nil && !errors.Is(err, zklock.ErrLost) && !errors.Is(err, zklock.ErrUncertain) {
		return assert.NoError(t, err, "%s releases %s", one.name, one.path)
	}
	return true
}

// use reads the store, relies on the hold for a while, and writes the read value plus one. The lock must make that atomic.
// It keeps the hold for at least the time least, and then until another contender waits, but at most for the time most.
func (w *workload) use(one worker, op *history.Handle, hold *zklock.Hold, least, most time.Duration) result {
	out := result{use: use{one.path, one.shared}}
	var known bool
	out.value, known = w.store.read(one.path, hold.Token(), one.shared)
	granted := w.rec.Now()
	for {
		now := w.rec.Now()
		if hold.Check() != nil {
			break
		}
		w.noteValid(op.ID(), now)
		if stay := now - granted; stay >= least && (stay >= most || w.stopped() || w.wanted(hold)) {
			break
		}
		select {
		case <-hold.Context().Done():
		case <-time.After(time.Millisecond):
		}
	}
	if one.shared {
		out.accepted = known
		return out
	}
	// Write without a check of the hold: the store's fence rejects a late write.
	out.accepted = known && w.store.write(one.path, hold.Token(), out.value+1)
	return out
}

func (w *workload) noteValid(id int64, at time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.valid[id] = at
}

func (w *workload) noteUse(op porcupine.Operation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.uses = append(w.uses, op)
}

// enough is the number of contended grants of every lock that are required before, during and after a fault.
const enough = 20

// progress waits until each of the wanted workers has been granted its lock each more times, and enough workers had to wait
// for permits. The other locks have so many workers without pauses that they are always contended.
func (w *workload) progress(t *testing.T, each int64, wanted func(worker) bool) {
	t.Helper()
	goal := make([]int64, len(w.workers))
	for i, one := range w.workers {
		if wanted(one) {
			goal[i] = w.counts[i].Load() + each
		}
	}
	queued := w.queued.Load() + enough + enough/4 // some of them are still waiting at the end
	bound := time.Now().Add(patience)
	until := func(reached func() bool, otherwise string, args ...any) {
		for !reached() {
			require.False(t, t.Failed())
			require.True(t, time.Now().Before(bound), append([]any{otherwise}, args...)...)
			time.Sleep(5 * time.Millisecond)
		}
	}
	for i, one := range w.workers {
		until(func() bool { return w.counts[i].Load() >= goal[i] }, "%s makes no progress at %s", one.name, one.path)
	}
	until(func() bool { return w.queued.Load() >= queued }, "no worker waits for permits")
}

var nobody = func(worker) bool { return false }

func everybody(worker) bool { return true }
func mobile(w worker) bool  { return !w.bound }

// finish ends the workers and returns the whole history. If log is not nil, it adds the servers' transaction log.
func (w *workload) finish(t *testing.T, log func() ([]txnlog.Txn, error)) *history.History {
	close(w.stop)
	w.done.Wait()
	var txns []txnlog.Txn
	if log != nil {
		var err error
		txns, err = log()
		require.NoError(t, err)
	}
	h := w.rec.History()
	removed := w.addTransactions(h, txns)
	for i := range h.Ops {
		op := &h.Ops[i]
		if op.End == 0 {
			continue
		}
		// The holder relied on its hold until its last successful Check. The log's times are in whole milliseconds, so an
		// end less than a millisecond after the node's deletion counts as equal.
		op.End = max(op.Return, w.valid[op.ID])
		if at, ok := removed[op.Node]; ok && op.End > at && op.End < at+time.Millisecond {
			op.End = at
		}
	}
	return h
}

// addTransactions adds the log's transactions on our locks, and returns when each node was deleted.
func (w *workload) addTransactions(h *history.History, txns []txnlog.Txn) map[string]time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	removed, owned := map[string]time.Duration{}, map[int64][]string{}
	for _, t := range txns {
		at := w.rec.At(t.Time)
		for _, c := range t.Changes {
			switch {
			case c.Kind == txnlog.SessionEnded && len(owned[t.Session]) > 0:
				var gone []string
				for _, node := range owned[t.Session] {
					gone = append(gone, w.gone(node))
					removed[gone[len(gone)-1]] = at
				}
				h.Txns = append(h.Txns, history.Txn{Zxid: t.Zxid, Time: at, Kind: history.Ended, Session: t.Session, Gone: gone})
				delete(owned, t.Session)
			case !strings.HasPrefix(c.Path, w.root+"/") || c.Kind == txnlog.SessionEnded:
			case c.Kind == txnlog.Created && c.Ephemeral:
				owned[t.Session] = append(owned[t.Session], c.Path)
				h.Txns = append(h.Txns, history.Txn{
					Zxid: t.Zxid, Time: at, Kind: history.Create, Session: t.Session, Path: c.Path, Lock: w.lockOf(c.Path),
					Shared: strings.Contains(c.Path, "__READ__"),
				})
			case c.Kind == txnlog.Deleted:
				gone := w.gone(c.Path)
				removed[gone] = at
				for session, nodes := range owned {
					owned[session] = slices.DeleteFunc(nodes, func(n string) bool { return n == c.Path })
				}
				h.Txns = append(h.Txns, history.Txn{Zxid: t.Zxid, Time: at, Kind: history.Delete, Session: t.Session, Path: gone})
			}
		}
	}
	return removed
}

// lockOf returns the lock of a contender's node. The nodes of a semaphore are its permits. Its queue is a separate directory,
// which counts as another lock.
func (w *workload) lockOf(node string) string { return strings.TrimSuffix(path.Dir(node), "/leases") }

// inTurn is a host provider that starts with one server and tries the others in order if that one fails.
type inTurn struct {
	first int

	mu      sync.Mutex
	servers []string // guarded by mu
	at      int      // guarded by mu: index of the next server
	failed  int      // guarded by mu: attempts since the last connection
}

func (p *inTurn) Init(servers []string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.servers, p.at = servers, p.first
	return nil
}

func (p *inTurn) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.servers)
}

func (p *inTurn) Next() (server string, retryStart bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	server = p.servers[p.at%len(p.servers)]
	p.at++
	p.failed++
	return server, p.failed > len(p.servers)
}

func (p *inTurn) Connected() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed = 0
}
