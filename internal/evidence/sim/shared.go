// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/evidence/history"
	"github.com/zklock-go/zklock/internal/lab"
	"github.com/zklock-go/zklock/zktest"
)

// shared is a connection that the program has made for all users of a process.
type shared struct {
	conn  *zk.Conn
	ended <-chan zk.Event // closed when the connection has ended
	hooks *zklock.Hooks
}

// share connects a process.
func (f *fleet) share(p *process) *shared {
	dial := zk.Dialer(f.srv.DialFrom(p.name))
	if f.plan.TLS {
		dial = overTLS(speakTLS(dial, f.handshakes))
	}
	hooks := zklock.NewHooks(p.untilEnd(dial))
	hosts := hooks.HostProvider()
	if f.plan.Provider == inRounds {
		hosts = &round{}
	}
	conn, ended, err := zk.Connect(p.servers, p.spec.Session, zk.WithDialer(hooks.Dial), zk.WithHostProvider(hosts), zk.WithLogInfo(false), zk.WithLogger(silent{}))
	if err != nil {
		panic(fmt.Sprintf("sim: connect: %v", err)) // it fails only for wrong arguments
	}
	return &shared{conn, ended, hooks}
}

// untilEnd returns a dialer that, once the process has ended, returns a connection that is closed. The client library notices that it was
// closed only when a dial succeeds.
func (p *process) untilEnd(dial zk.Dialer) zk.Dialer {
	return func(network, address string, timeout time.Duration) (net.Conn, error) {
		conn, err := dial(network, address, timeout)
		if err != nil && p.alive.Err() != nil {
			near, far := net.Pipe()
			far.Close()
			return near, nil
		}
		return conn, err
	}
}

// Host providers.
const (
	oneServer = "one server"
	inRounds  = "rounds"
	library   = "the library's"
)

// round is a host provider that, like that of go-zookeeper, goes through the servers in order and then lets the client library pause.
type round struct {
	servers []string
	next    int
}

func (p *round) Init(servers []string) error { p.servers = servers; return nil }
func (p *round) Len() int                    { return len(p.servers) }
func (p *round) Connected()                  {}
func (p *round) Next() (server string, ended bool) {
	p.next++
	return p.servers[p.next%len(p.servers)], p.next > 1 && (p.next-1)%len(p.servers) == 0
}

// Writes of a program that has much else to write.
const (
	bulkSize = 300 << 10
	bulkRate = 100_000_000 / 8 // bytes per second
)

// Large writes of a plan with a slow uplink, and how many of them each hold begins at once.
const (
	uplinkSize   = 900 << 10
	uplinkWrites = 5
)

// writes returns the size of a large write, and how many bytes per second a process can send.
func (p *Plan) writes() (size, rate int) {
	if p.Uplink > 0 {
		return uplinkSize, p.Uplink
	}
	return bulkSize, bulkRate
}

// transfers returns how long the large writes take that a slow uplink carries before a request of a process, at most.
func (p *Plan) transfers() time.Duration {
	if p.Uplink == 0 {
		return 0
	}
	workers := 0
	for _, c := range p.Clients {
		workers = max(workers, c.Workers)
	}
	return time.Duration(float64(2*workers*uplinkWrites*uplinkSize) / float64(p.Uplink) * float64(time.Second))
}

func bulkPath(client string) string { return "/bulk/" + client }

// putBulk creates the nodes for the large writes of a plan that has some.
func (f *fleet) putBulk(tb zktest.TB) {
	if !f.plan.Bulk {
		return
	}
	for _, c := range f.plan.Clients {
		if err := f.srv.PutNode(bulkPath(c.Name), nil); err != nil {
			tb.Fatalf("sim: %v", err)
		}
	}
}

// write writes much data over the connection, again and again, until the process or the run ends.
func (s *shared) write(p *process, r *rand.Rand) {
	size, rate := p.f.plan.writes()
	lab.LimitUpload(p.f.srv, p.name, rate)
	for p.rest(around(r, 2*p.f.plan.Tick)) {
		_, _ = s.conn.Set(bulkPath(p.spec.Name), make([]byte, size), -1) // it fails with the connection
	}
}

// writeUnder writes much data under a hold.
func (p *user) writeUnder(hold *zklock.Hold) {
	size, rate := p.f.plan.writes()
	lab.LimitUpload(p.f.srv, p.name, rate)
	n := 1
	if p.f.plan.Uplink > 0 {
		n = uplinkWrites
	}
	var all sync.WaitGroup
	for range n {
		// Owned by this call, which waits for it; ends with the reply, or with the process.
		all.Go(func() {
			since := p.f.rec.Now()
			_, err := hold.Multi(&zk.SetDataRequest{Path: bulkPath(p.spec.Name), Data: make([]byte, size), Version: -1})
			p.judgeWrite(hold, err, since, hold.Path())
		})
	}
	all.Wait()
}

// closeOne closes the client of a user while its workers use it. If an observer can delay that, the process is often cut off meanwhile.
func closeOne(f *fleet, r *rand.Rand) reach {
	p := f.anyone(r)
	u, cut := p.aUser(r), f.plan.Watcher == slow && r.IntN(3) > 0
	left := make(chan struct{})
	// Owned by this call, which waits for it; ends when the client is closed.
	go func() { u.leave(); close(left) }()
	if cut {
		p.cutOff(2 * f.plan.Timeout)
	}
	<-left
	time.Sleep(around(r, f.plan.Tick))
	return only(p.name)
}

// follows checks that a hold of a user begins only after those of other users of the process have ended, whatever has happened to
// their nodes: they share a session and its watches.
func (p *user) follows(of history.Op, hold *zklock.Hold) {
	if of.Recipe == history.Semaphore || of.Shared || of.Outer != 0 {
		return
	}
	p.mu.Lock()
	last := p.alone[of.Path]
	p.alone[of.Path] = hold
	p.mu.Unlock()
	if last != nil && last != hold && last.Recipe() != "read" && last.Context().Err() == nil && hold.Context().Err() == nil {
		p.f.report("P1", of.Path, fmt.Sprintf("%s: two users of the process hold at the same time, on %s and %s", p.name, last.Node(), hold.Node()))
	}
}

// repeats counts requests of a client that are the same, in one second.
type repeats struct {
	second time.Duration
	count  map[repeated]*repetition
}

// repetition counts how often a request was sent. callers is the largest number of calls that the client had meanwhile.
type repetition struct{ n, callers int }

type repeated struct {
	client, path string
	op           zktest.Op
	watch        bool
}

// mostRepeats limits how often a client sends the same read in a second. A worker that tries again and again pauses between two attempts.
// Each further caller of the client adds callerRepeats: the limit of a semaphore may change a few times while a crowd waits for permits.
const (
	mostRepeats   = 200
	callerRepeats = 50
)

// countRepeats counts a request. The caller must hold mu.
func (f *fleet) countRepeats(req *zktest.Request) {
	switch req.Op {
	case zktest.OpGetData, zktest.OpExists, zktest.OpGetChildren, zktest.OpGetChildren2:
	default:
		return
	}
	if second := f.rec.Now() / time.Second; second != f.often.second || f.often.count == nil {
		f.often = repeats{second, map[repeated]*repetition{}}
	}
	key := repeated{req.Client, req.Path, req.Op, req.Watch}
	sent := f.often.count[key]
	if sent == nil {
		sent = new(repetition)
		f.often.count[key] = sent
	}
	sent.n++
	sent.callers = max(sent.callers, f.callers(req.Client)) // most of a crowd may have ended their calls since they read
	if sent.n != max(mostRepeats, callerRepeats*sent.callers) {
		return
	}
	f.broken = append(f.broken, history.Violation{Rule: "P9", Path: req.Path, At: f.rec.Now(), Text: fmt.Sprintf("%s sends %v of it %d times in a second", req.Client, req.Op, sent.n)})
}

// callers returns the number of calls of a client that have not ended. The caller must hold mu.
func (f *fleet) callers(client string) int {
	i := slices.IndexFunc(f.procs, func(p *process) bool { return p.name == client })
	if i < 0 {
		return 0
	}
	return int(f.procs[i].calls.Load())
}
