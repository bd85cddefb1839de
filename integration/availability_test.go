// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"flag"
	"fmt"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zkcontainer"
)

var availability = flag.Int("availability", 0, "number of rounds of TestAServerThatFailsCostsNoHold; 0 skips it")

// inOrder is a host provider that returns the servers in the given order, so that a client starts with the first.
type inOrder struct {
	servers []string
	next    int
}

func (p *inOrder) Init([]string) error { return nil } // ignores the list, which the client library has shuffled
func (p *inOrder) Len() int            { return len(p.servers) }
func (p *inOrder) Connected()          {}
func (p *inOrder) Next() (string, bool) {
	p.next++
	return p.servers[(p.next-1)%len(p.servers)], p.next > 1 && (p.next-1)%len(p.servers) == 0
}

// lastDialed is a dialer that records the last server to which its client connected.
type lastDialed struct{ addr atomic.Pointer[string] }

func (d *lastDialed) dial(network, addr string, timeout time.Duration) (net.Conn, error) {
	conn, err := net.DialTimeout(network, addr, timeout)
	if err == nil {
		d.addr.Store(&addr)
	}
	return conn, err
}

// TestAServerThatFailsCostsNoHold counts the holds that are lost, and the commands that are ended, when the server of their
// clients fails while a quorum keeps running. The clients are idle for a while before they lock. Run it on a machine without
// other load, because delays of the clients' processes cost holds, too.
//
//zklock:promise P2.7
func TestAServerThatFailsCostsNoHold(t *testing.T) {
	if *availability == 0 {
		t.Skip("only with -availability: make availability")
	}
	part(t)
	const tick, clients, jobs = time.Second, 8, 8
	sessions := []time.Duration{2 * tick, 3 * tick, 4 * tick, 10 * tick}
	z := start(t, zkcontainer.Options{Servers: 3, TickTime: tick})
	cmd := shell{binary: buildCommand(t)}
	fails := []struct {
		name       string
		leads      bool
		hurt, heal func(*zkcontainer.Member, context.Context) error
	}{
		{"frozen", false, (*zkcontainer.Member).Freeze, (*zkcontainer.Member).Thaw},
		{"killed", false, (*zkcontainer.Member).Stop, (*zkcontainer.Member).Start},
		{"cut off from its peers", false, (*zkcontainer.Member).CutOff, (*zkcontainer.Member).Rejoin},
		{"leader, killed", true, (*zkcontainer.Member).Stop, (*zkcontainer.Member).Start},
	}
	for round := range *availability {
		for kind, f := range fails {
			followers, err := z.Followers(t.Context())
			require.NoError(t, err)
			struck, other := followers[0], followers[1]
			if f.leads {
				struck, err = z.Leader(t.Context())
				require.NoError(t, err)
			}
			cmd.servers = struck.Addr + "," + other.Addr // each command shuffles them
			under := fmt.Sprintf("%s/jobs-%d-%d", root(t), round, kind)
			usual, short := cmd.startJobs(t, jobs, under+"/usual"), cmd.startJobs(t, jobs, under+"/short", "--session-timeout", "10s")
			var idle []*zklock.Client
			var dialed []*lastDialed
			for _, session := range sessions {
				for range clients {
					d := new(lastDialed)
					c := connect(t, &zklock.Options{SessionTimeout: session, HostProvider: &inOrder{servers: []string{struck.Addr, other.Addr}}, Dialer: d.dial}, struck.Addr, other.Addr)
					require.Equal(t, session, c.SessionTimeout())
					idle, dialed = append(idle, c), append(dialed, d)
				}
			}
			time.Sleep(2 * sessions[len(sessions)-1])
			var holds []*zklock.Hold
			for i, c := range idle {
				hold, err := c.Mutex(fmt.Sprintf("%s/%d-%d-%d", root(t), round, kind, i)).Lock(soon(t))
				require.NoError(t, err)
				holds = append(holds, hold)
			}
			for _, d := range dialed {
				require.Equal(t, struck.Addr, *d.addr.Load())
			}
			require.NoError(t, f.hurt(struck, t.Context()))
			time.Sleep(2 * sessions[len(sessions)-1])
			for _, d := range dialed {
				require.Equal(t, other.Addr, *d.addr.Load(), "the clients must have left the failed server")
			}
			for i, session := range sessions {
				lost := 0
				for _, hold := range holds[i*clients : (i+1)*clients] {
					if hold.Check() != nil {
						lost++
					}
				}
				t.Logf("%s, session %v: %d of %d holds lost", f.name, session, lost, clients)
			}
			t.Logf("%s, jobs: %d of %d ended, with a session of 10s %d of %d", f.name, end(usual), jobs, end(short), jobs)
			require.NoError(t, f.heal(struck, t.Context()))
			require.NoError(t, z.WaitHealthy(t.Context()))
			for _, hold := range holds {
				_ = hold.Unlock(soon(t)) // fails for the lost ones
			}
		}
	}
}

// startJobs starts commands that do not end by themselves, each with its own lock, and waits until they run.
func (s shell) startJobs(t *testing.T, n int, under string, flags ...string) (jobs []*invocation) {
	for i := range n {
		args := append(append([]string{"run"}, flags...), fmt.Sprint(under, i), "--", "sh", "-c", "echo begin; exec sleep infinity")
		jobs = append(jobs, s.start(t, args...))
	}
	for _, j := range jobs {
		j.until(t, "the command runs", func() bool { return j.out.String() != "" })
	}
	return jobs
}

// end ends the jobs and returns how many had already ended.
func end(jobs []*invocation) (before int) {
	for _, j := range jobs {
		select {
		case <-j.ended:
			before++
		default:
			_ = j.Process.Signal(syscall.SIGTERM) // the test's clean-up waits for the process
		}
	}
	return before
}
