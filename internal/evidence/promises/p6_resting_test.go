// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/operate"
	"github.com/zklock-go/zklock/zktest"
)

// Idle watches check their node only when an event of it arrives. In these tests, events of other nodes or without a meaning
// arrive first, and the watches must notice the relevant ones afterwards.

// lineup has a holder of one client and a waiter of another.
type lineup struct {
	hold *zklock.Hold
	next *attempt
}

func lineUp(t *testing.T, holder, waiter *zklock.Client) lineup {
	t.Helper()
	hold, err := holder.Mutex(path).Lock(t.Context())
	require.NoError(t, err)
	next := lockLater(t.Context(), waiter.Mutex(path).Lock)
	time.Sleep(time.Second) // all watches rest
	require.False(t, next.returned())
	return lineup{hold, next}
}

// continues checks that the holder still holds and is notified of a request to release, and that the waiter is granted after the
// release.
func (s lineup) continues(t *testing.T, srv *zktest.Server) {
	t.Helper()
	require.NoError(t, s.hold.Check())
	require.False(t, s.next.returned())
	require.NoError(t, operate.Revoke(t.Context(), connect(t, srv, "operator", term), contenderAt(t, connect(t, srv, "onlooker", term), 0)))
	time.Sleep(10 * time.Millisecond) // no heartbeat is due
	require.True(t, isClosed(s.hold.Revoked()), "the request was not heard")
	unlock(t, s.hold)
	time.Sleep(10 * time.Millisecond)
	require.True(t, s.next.returned())
	require.NoError(t, s.next.err)
	unlock(t, s.next.hold)
	noGhost(t, srv, path)
}

// TestWritesOfOthersToANodeOnlyWakeItsWatches writes to the holder's node repeatedly as a third party.
//
//zklock:promise P6.3
func TestWritesOfOthersToANodeOnlyWakeItsWatches(t *testing.T) {
	virtual(t, three, func(t *testing.T, srv *zktest.Server) {
		s := lineUp(t, connect(t, srv, "holder", term), connect(t, srv, "waiter", term))
		raw := rawClient(t, srv, term)
		const writes = 40
		before := srv.RequestCount()
		start := time.Now()
		for i := range writes {
			_, err := raw.Set(s.hold.Node(), fmt.Append(nil, "scribble ", i), -1)
			require.NoError(t, err)
			time.Sleep(time.Duration(i%4) * 50 * time.Millisecond)
			if i%10 == 9 {
				srv.DropConnections()
				time.Sleep(2 * time.Second)
			}
		}
		asked := srv.RequestCount() - before
		require.Less(t, asked, writes*6+60*int(time.Since(start)/time.Second), "each write wakes two watches, which look and are set again")
		s.continues(t, srv)
	})
}

// TestWatchesOfAProgramOnItsConnectionAreItsOwn shares a connection with a program that watches the same nodes.
//
//zklock:promise P6.3
func TestWatchesOfAProgramOnItsConnectionAreItsOwn(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		conn, client := attached(t, srv)
		s := lineUp(t, client, connect(t, srv, "waiter", term))
		raw := rawClient(t, srv, term)
		for range 10 {
			_, _, data, err := conn.GetW(s.hold.Node())
			require.NoError(t, err)
			_, _, there, err := conn.ExistsW(s.hold.Node())
			require.NoError(t, err)
			_, _, children, err := conn.ChildrenW(path)
			require.NoError(t, err)
			_, err = raw.Set(s.hold.Node(), nil, -1)
			require.NoError(t, err)
			require.Equal(t, zk.EventNodeDataChanged, (<-data).Type)
			require.Equal(t, zk.EventNodeDataChanged, (<-there).Type)
			other, err := raw.Create(path+"/other", nil, 0, zk.WorldACL(zk.PermAll))
			require.NoError(t, err)
			require.Equal(t, zk.EventNodeChildrenChanged, (<-children).Type)
			require.NoError(t, raw.Delete(other, -1))
			time.Sleep(100 * time.Millisecond)
		}
		s.continues(t, srv)
	})
}

// eventOf returns the frame of an event.
func eventOf(kind zk.EventType, path string) []byte {
	frame := binary.BigEndian.AppendUint32(nil, ^uint32(0)) // the xid of events
	frame = append(frame, make([]byte, 12)...)
	frame = binary.BigEndian.AppendUint32(frame, uint32(kind))
	frame = binary.BigEndian.AppendUint32(frame, 3) // connected
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(path)))
	return append(frame, path...)
}

// TestEventsWithoutACauseChangeNothing sends events without changes, ten times a second. After a reconnect, servers also send
// events that the client has already received.
//
//zklock:promise P6.3
func TestEventsWithoutACauseChangeNothing(t *testing.T) {
	for _, kind := range []zk.EventType{zk.EventNodeCreated, zk.EventNodeDataChanged, zk.EventNodeChildrenChanged} {
		t.Run(kind.String(), func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				lying := func(label string) *zklock.Client {
					var last time.Time
					lie := func(op int32, frame []byte) ([]byte, bool) {
						if op == greeting || time.Since(last) < 100*time.Millisecond {
							return framed(frame), true
						}
						last = time.Now()
						stream := framed(eventOf(kind, path))
						for _, node := range srv.Children(path) {
							stream = append(stream, framed(eventOf(kind, path+"/"+node))...)
						}
						return append(stream, framed(frame)...), true
					}
					return connectWith(t, srv, &zklock.Options{Label: label, SessionTimeout: term, Dialer: dialLying(srv.DialFrom(label), lie)})
				}
				holder, waiter := lying("holder"), lying("waiter")
				for range 3 {
					lineUp(t, holder, waiter).continues(t, srv)
				}
				for _, lock := range []lockFunc{
					holder.Cohort(path, nil).Lock, holder.RWMutex(path).RLock, permitsOf(holder, 2),
					func(ctx context.Context) (*zklock.Hold, error) { return holder.Election(path, nil).Campaign(ctx, nil) },
				} {
					hold, err := lock(t.Context())
					require.NoError(t, err)
					time.Sleep(3 * term)
					require.NoError(t, hold.Check())
					unlock(t, hold)
					noGhost(t, srv, path)
					time.Sleep(5 * time.Minute) // until the directories are removed, because another recipe follows
				}
			})
		})
	}
}
