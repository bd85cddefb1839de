// SPDX-License-Identifier: Apache-2.0

// Package scale simulates large fleets in virtual time: how many requests they send when something
// happens, and at which size servers with one processor cannot keep up.
package scale

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/zklock-go/zklock/internal/lab"
	"github.com/zklock-go/zklock/zktest"
)

// A Cost is the processor time that a request takes in the server that receives it, in the leader, and
// in each other server.
type Cost struct{ Own, Leader, Others time.Duration }

// Costs are the costs of all requests.
type Costs struct {
	Read, Sync, Check, Write Cost
	Watch                    time.Duration // of each watch that a SetWatches sets
}

// Measured are costs on ZooKeeper 3.8.0, by "go run . costs" in compare, on a quiet machine of
// two cores, with all of a server's threads. The cost of a watch is an assumption.
var Measured = Costs{
	Read:  Cost{Own: 55 * time.Microsecond},
	Sync:  Cost{Own: 68 * time.Microsecond, Leader: 23 * time.Microsecond},
	Check: Cost{Own: 109 * time.Microsecond, Leader: 94 * time.Microsecond, Others: 41 * time.Microsecond},
	Write: Cost{Own: 110 * time.Microsecond, Leader: 93 * time.Microsecond, Others: 39 * time.Microsecond},
	Watch: 5 * time.Microsecond,
}

// Times returns costs that are n times as high: a client then stands for n clients.
func (c Costs) Times(n int) Costs {
	times := time.Duration(n)
	for _, cost := range []*Cost{&c.Read, &c.Sync, &c.Check, &c.Write} {
		*cost = Cost{Own: cost.Own * times, Leader: cost.Leader * times, Others: cost.Others * times}
	}
	c.Watch *= times
	return c
}

// Servers models the servers of an ensemble, each with one processor. A request waits until its server
// has handled the requests that arrived earlier, and a write or a sync then waits for the leader. As in
// ZooKeeper, a connection's requests queue as they arrive: only their replies wait for each other.
type Servers struct {
	costs  Costs
	leader func() int

	mu     sync.Mutex
	begun  time.Time // guarded by mu, like the fields below; no costs before Begin
	queues []queue
	busy   []time.Duration // since Begin
	counts []map[string]int
	lately map[string]int  // the requests of all servers since the last call of Recent
	worst  []time.Duration // the longest wait for a server
}

// A queue has the requests of one server in the order in which they arrived. Some of them have been handled.
type queue []turn

// A turn is a request in a queue.
type turn struct {
	arrived time.Time
	takes   time.Duration
	done    time.Time
}

// remembered is how long a queue keeps a turn that is over. No request waits that long for the earlier ones of its connection.
const remembered = time.Minute

// add adds a request that arrived at a time before now and takes d, and returns when it is done. Requests that arrived later are done
// later by as much. Those for which add has returned already are answered as it said: then the server answers more at that moment than
// one processor could, and requests that are added from then on wait for as long as that took.
func (q *queue) add(arrived time.Time, d time.Duration) time.Time {
	for len(*q) > 0 && time.Since((*q)[0].done) > remembered {
		*q = (*q)[1:]
	}
	i := len(*q)
	for i > 0 && (*q)[i-1].arrived.After(arrived) {
		i--
	}
	*q = slices.Insert(*q, i, turn{arrived: arrived, takes: d})
	for j := i; j < len(*q); j++ {
		begin := (*q)[j].arrived
		if j > 0 && (*q)[j-1].done.After(begin) {
			begin = (*q)[j-1].done
		}
		(*q)[j].done = begin.Add((*q)[j].takes)
	}
	return (*q)[i].done
}

// wait returns how long a request that arrives now waits.
func (q queue) wait() time.Duration {
	if len(q) == 0 {
		return 0
	}
	return max(0, time.Until(q[len(q)-1].done))
}

// NewServers returns a model for the servers of srv. It delays their requests from Begin on.
func NewServers(srv *zktest.Server, n int, costs Costs) *Servers {
	s := &Servers{costs: costs, leader: func() int { return leaderOf(srv, n) }}
	s.reset(n)
	s.begun = time.Time{}
	srv.Intercept(s.request)
	return s
}

// leaderOf returns the index of the leader, or the last one that was.
func leaderOf(srv *zktest.Server, n int) int {
	leader := srv.Leader()
	for i := range n {
		if srv.Member(i) == leader {
			return i
		}
	}
	return 0
}

// Begin starts a measurement: it forgets what was counted.
func (s *Servers) Begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reset(len(s.queues))
}

func (s *Servers) reset(n int) {
	s.begun = time.Now()
	s.queues, s.busy, s.worst = make([]queue, n), make([]time.Duration, n), make([]time.Duration, n)
	s.counts = make([]map[string]int, n)
	for i := range n {
		s.counts[i] = map[string]int{}
	}
	s.lately = map[string]int{}
}

// request counts a request and delays it until its servers have handled it.
func (s *Servers) request(r *zktest.Request) zktest.Verdict {
	kind, cost := s.costs.of(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun.IsZero() {
		return zktest.Pass
	}
	s.counts[r.Member][kind]++
	s.lately[fmt.Sprint(kind, " ", r.Op)]++
	done := s.take(r.Member, time.Now().Add(-lab.Waited(r)), cost.Own)
	if cost.Leader == 0 {
		return delay(time.Until(done))
	}
	handled := make(chan struct{})
	time.AfterFunc(time.Until(done), func() { s.pass(r.Member, done, cost, handled) })
	return zktest.Hold(handled)
}

func delay(d time.Duration) zktest.Verdict {
	if d <= 0 {
		return zktest.Pass
	}
	return zktest.Delay(d)
}

// pass has the leader, and the servers that only follow, handle a request that its own server had
// handled at a time before now, and closes handled when the leader has.
func (s *Servers) pass(member int, at time.Time, cost Cost, handled chan struct{}) {
	leader := s.leader()
	s.mu.Lock()
	defer s.mu.Unlock()
	done := s.take(leader, at, cost.Leader)
	for i := range s.queues {
		if i != leader && i != member {
			s.take(i, at, cost.Others)
		}
	}
	time.AfterFunc(time.Until(done), func() { close(handled) })
}

// take occupies a server with a request that arrived at a time before now and takes d. It returns when the request is done, and must be
// called with mu held.
func (s *Servers) take(server int, arrived time.Time, d time.Duration) time.Time {
	done := s.queues[server].add(arrived, d)
	s.busy[server] += d
	s.worst[server] = max(s.worst[server], done.Sub(arrived))
	return done
}

// of returns the kind of a request and its cost. A ping counts as a read, and a connect request as a
// write.
func (c Costs) of(r *zktest.Request) (kind string, cost Cost) {
	switch r.Op {
	case zktest.OpPing:
		return "ping", c.Read
	case zktest.OpSync:
		return "sync", c.Sync
	case zktest.OpSetWatches, zktest.OpSetWatches2:
		return "read", Cost{Own: c.Read.Own + time.Duration(len(r.Paths))*c.Watch}
	case zktest.OpExists, zktest.OpGetData, zktest.OpGetChildren, zktest.OpGetChildren2, zktest.OpGetACL:
		return "read", c.Read
	case zktest.OpMulti:
		if !slices.ContainsFunc(r.Ops, func(op zktest.Op) bool { return op != zktest.OpCheck }) {
			return "write", c.Check
		}
	}
	return "write", c.Write
}

// Recent returns the requests of each kind since the last call, and how long a request would wait now for the leader, and for the
// busiest other server.
func (s *Servers) Recent() (counts map[string]int, leader, follower time.Duration) {
	at := s.leader()
	s.mu.Lock()
	defer s.mu.Unlock()
	counts, s.lately = s.lately, map[string]int{}
	for i, q := range s.queues {
		wait := q.wait()
		if i == at {
			leader = wait
		} else {
			follower = max(follower, wait)
		}
	}
	return counts, leader, follower
}

// A Load is the load of the servers during a measurement.
type Load struct {
	Requests int           // of all servers, without pings
	Writes   int           // of all servers
	Leader   float64       // the share of the time in which the leader was busy
	Follower float64       // the same of the busiest other server
	Longest  time.Duration // the longest time that a request waited for one server and was handled there
}

// Loads returns what was counted since Begin.
func (s *Servers) Loads() Load {
	leader := s.leader()
	s.mu.Lock()
	defer s.mu.Unlock()
	var l Load
	took := time.Since(s.begun)
	for i, counts := range s.counts {
		for kind, n := range counts {
			if kind != "ping" {
				l.Requests += n
			}
			if kind == "write" {
				l.Writes += n
			}
		}
		share := s.busy[i].Seconds() / took.Seconds()
		if i == leader {
			l.Leader = share
		} else {
			l.Follower = max(l.Follower, share)
		}
		l.Longest = max(l.Longest, s.worst[i])
	}
	return l
}
