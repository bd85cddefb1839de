package integration

import (
	"context"
	"flag"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zkcontainer"
)

var availability = flag.Int("availability", 0, "how many rounds of TestAFollowerThatFailsCostsNoHold; 0 leaves it out")

// inOrder hands out servers in the order given, so that a client begins with the first.
type inOrder struct {
	servers []string
	next    int
}

func (p *inOrder) Init([]string) error { return nil } // which the client library has shuffled
func (p *inOrder) Len() int            { return len(p.servers) }
func (p *inOrder) Connected()          {}
func (p *inOrder) Next() (string, bool) {
	p.next++
	return p.servers[(p.next-1)%len(p.servers)], p.next > 1 && (p.next-1)%len(p.servers) == 0
}

// lastDialed knows which server its client uses, or was last to try.
type lastDialed struct{ addr atomic.Pointer[string] }

func (d *lastDialed) dial(network, addr string, timeout time.Duration) (net.Conn, error) {
	conn, err := net.DialTimeout(network, addr, timeout)
	if err == nil {
		d.addr.Store(&addr)
	}
	return conn, err
}

// TestAFollowerThatFailsCostsNoHold counts the holds that are lost when the server fails that their clients use, while a
// quorum and another server go on. The clients were idle for a while before they locked. It is run on a machine that does
// little else, because what it keeps waiting it loses.
func TestAFollowerThatFailsCostsNoHold(t *testing.T) {
	if *availability == 0 {
		t.Skip("only with -availability: make availability")
	}
	part(t)
	const tick, clients = time.Second, 8
	sessions := []time.Duration{2 * tick, 3 * tick, 4 * tick, 10 * tick}
	z := start(t, zkcontainer.Options{Servers: 3, TickTime: tick})
	fails := []struct {
		name       string
		hurt, heal func(*zkcontainer.Member, context.Context) error
	}{
		{"frozen", (*zkcontainer.Member).Pause, (*zkcontainer.Member).Unpause},
		{"killed", (*zkcontainer.Member).Kill, (*zkcontainer.Member).Restart},
		{"cut off from its peers", (*zkcontainer.Member).CutFromPeers, (*zkcontainer.Member).Heal},
	}
	for round := range *availability {
		for kind, f := range fails {
			followers, err := z.Followers(t.Context())
			require.NoError(t, err)
			struck, other := followers[0], followers[1]
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
				require.Equal(t, other.Addr, *d.addr.Load(), "its clients have left the server that failed")
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
			require.NoError(t, f.heal(struck, t.Context()))
			require.NoError(t, z.Healthy(t.Context()))
			for _, hold := range holds {
				_ = hold.Unlock(soon(t)) // the lost ones have ended
			}
		}
	}
}
