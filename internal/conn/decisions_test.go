// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The nodes of all clients of a session share a limit. A node that is given back is subtracted however much there is.
func TestASessionOwnsNoMoreThanTheLimit(t *testing.T) {
	s := NewSession(7, nil)
	for _, c := range []struct {
		n, limit, sum int
		ok            bool
	}{
		{60, 100, 60, true},
		{41, 100, 101, false},
		{40, 100, 100, true},
		{1, 100, 101, false},
		{-10, 0, 90, true},
		{0, 50, 90, true},
	} {
		sum, ok := s.Own(c.n, c.limit)
		assert.Equal(t, c.sum, sum, "%+v", c)
		assert.Equal(t, c.ok, ok, "%+v", c)
	}
}

// Only the first server of a session is known to be as new as the session: see queue.contender.marksIn.
func TestASessionIsOnItsFirstServerUntilAnotherTakesItOver(t *testing.T) {
	s := NewSession(7, nil)
	require.True(t, s.IsOnFirst())
	s.Reattach()
	require.False(t, s.IsOnFirst())
}

// A server that lost a race takes the session from the winner when it handles its late request.
func TestAServerThatLostARaceIsNotAskedFirstForAWhile(t *testing.T) {
	virtual(t, func(t *testing.T) {
		k := known{seen: []string{"a", "b"}}
		require.Equal(t, "a", k.first("a", term))
		k.lost("a")
		require.Equal(t, "b", k.first("a", term))
		require.Equal(t, "b", k.first("b", term))
		time.Sleep(term / 2)
		k.lost("b")
		require.Equal(t, "a", k.first("a", term), "both have lost one")
		time.Sleep(term / 2)
		require.Equal(t, "a", k.first("a", term))
		require.Equal(t, "a", k.first("b", term))
		alone := known{seen: []string{"a"}}
		alone.lost("a")
		require.Equal(t, "a", alone.first("a", term))
	})
}

// raceOf returns a race of a link whose session has a lease, if held is true.
func raceOf(t *testing.T, held bool) *race {
	l := NewLink()
	l.servers.seen = []string{"a"}
	if held {
		l.establish(7, term, 0, l.Now())
		require.Positive(t, l.left())
	}
	r := newRace(l, "tcp", time.Second)
	t.Cleanup(r.stop)
	r.term = term
	return r
}

// A new session may be created on any server, but no other ensemble may end ours.
func TestWhichServersCanEndTheSession(t *testing.T) {
	r := raceOf(t, false)
	r.chosen, r.asks = "a", 7
	require.True(t, r.isTrusted(&attempt{target: target{server: "a"}}))
	require.False(t, r.isTrusted(&attempt{target: target{server: "b"}}), "it was dialed long ago")
	r.asks = 0
	require.True(t, r.isTrusted(&attempt{target: target{server: "b"}}))
	r.asks, r.link.servers.hosts = 7, new(Rotation)
	require.True(t, r.isTrusted(&attempt{target: target{server: "b"}}), "the provider has named it")
}

func TestHowLongAServerMayTakeToReplyToAConnectionRequest(t *testing.T) {
	first, second := target{"a", "10.0.0.1:2181"}, target{"a", "10.0.0.2:2181"}
	for name, c := range map[string]struct {
		asks    int64
		isNew   bool
		servers []string
		tried   []target
		spare   []target
		timeout time.Duration
		want    time.Duration
	}{
		"a session that exists":                      {7, true, []string{"a", "b"}, nil, nil, term, term},
		"a new one, of a server seen first":          {0, true, []string{"a"}, nil, nil, term, term / 3},
		"a new one, of several":                      {0, false, []string{"a", "b"}, nil, nil, term, term / 3},
		"a new one, of the only server":              {0, false, []string{"a"}, []target{{server: "a"}}, nil, term, term},
		"a new one, of the first address of a name":  {0, false, []string{"a"}, []target{{server: "a"}, first}, []target{second}, term, term / 3},
		"a new one, of its last address":             {0, false, []string{"a"}, []target{{server: "a"}, first, second}, nil, term, term / 3},
		"a short one, of which a third is too short": {0, true, []string{"a"}, nil, nil, 2 * time.Second, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			r := raceOf(t, false)
			r.isNew, r.link.servers.seen, r.tried, r.spare = c.isNew, c.servers, c.tried, c.spare
			r.requests(connectRequest(c.asks), c.timeout)
			require.Equal(t, c.want, r.given)
			require.Equal(t, c.asks, r.asks)
			require.WithinDuration(t, time.Now(), r.begun, time.Minute, "the servers have just been asked")
		})
	}
}

func TestHowLongARaceWaitsForAServer(t *testing.T) {
	virtual(t, func(t *testing.T) {
		r := raceOf(t, false)
		require.Equal(t, time.Second, r.patience())
		r.spare = []target{{server: "a", address: "10.0.0.2:2181"}}
		require.Equal(t, 300*time.Millisecond, r.patience(), "its name has another address")
		r.request = connectRequest(0)
		require.Equal(t, term/3, r.patience())
		held := raceOf(t, true)
		require.Less(t, held.patience(), held.link.left()/2, "two others can be asked before the lease ends")
	})
}

// A fleet whose leases have run out does not come back all at once.
func TestAServerThatHasFailedIsAskedAgainWhileTheLeaseRuns(t *testing.T) {
	virtual(t, func(t *testing.T) {
		for _, held := range []bool{true, false} {
			r := raceOf(t, held)
			r.link.dialing.Dial = func(string, string, time.Duration) (net.Conn, error) { return nil, errSlow }
			r.requests(connectRequest(7), term)
			r.failed = []target{{server: "a"}, {server: "b"}}
			r.again()
			if held {
				require.Equal(t, []target{{server: "a"}}, r.tried)
				require.Equal(t, []target{{server: "b"}}, r.failed)
			} else {
				require.Empty(t, r.tried)
			}
			r.stop()
		}
	})
}

// The client library knows more servers than a race that has seen one. While the lease runs, or before a server is connected, it is
// worth asking the library for the next one.
func TestWhenTheClientLibraryIsAskedForAnotherServer(t *testing.T) {
	virtual(t, func(t *testing.T) {
		for _, held := range []bool{true, false} {
			r := raceOf(t, held)
			require.False(t, r.mayBeUnknown(), "it has dialed all of its servers")
			r.isNew = true
			require.True(t, r.mayBeUnknown())
			r.request = connectRequest(0)
			require.False(t, r.mayBeUnknown(), "any server may create a session")
			r.request, r.asks = connectRequest(7), 7
			require.Equal(t, held, r.mayBeUnknown())
			r.request, r.running = nil, make([]*attempt, maxAttempts)
			require.False(t, r.mayBeUnknown(), "enough are asked")
		}
	})
}
