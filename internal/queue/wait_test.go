// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/session"
	"github.com/zklock-go/zklock/zktest"
)

// The node ahead is written again and again, and each time the next watch is throttled for a while. The waiter pauses as long after
// the last of these errors as after the first, because watches were set between them.
func TestAWaitersPausesAreShortAgainAfterASuccess(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		a, b := startEngine(t, srv, "a", nil), startEngine(t, srv, "b", nil)
		held := obtain(t, a)
		waiter := later(func() (*Grant, error) { return b.Obtain(t.Context(), wantLock(testDir)) })
		time.Sleep(time.Second)
		watches := srv.WatchCount()
		var left atomic.Int32 // how many more requests of b are throttled
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Client == "b" && r.Op == zktest.OpGetData && left.Add(-1) >= 0 {
				return throttled
			}
			return zktest.Pass
		})
		for i := range 12 {
			left.Store(asks)
			require.NoError(t, srv.PutNode(held.Nodes()[0].Path(), fmt.Append(nil, i)))
			time.Sleep(600 * time.Millisecond) // more than the pauses between the requests of one watch
			require.Negative(t, left.Load(), "the watch after %d writes was throttled for longer", i+1)
			require.Equal(t, watches, srv.WatchCount())
		}
		release(t, held)
		waiter.release(t)
	})
}

// A waiter with two contenders ahead may not do one of the things that it does when the nearest but one leaves.
func TestAHandOffEndsWithARefusal(t *testing.T) {
	for name, c := range map[string]struct {
		op    zktest.Op
		which int // the contender; a negative number is the directory
		ends  bool
	}{
		"the note":             {zktest.OpGetData, -1, false},
		"the next to wait for": {zktest.OpGetData, 2, true},
		"the contender before": {zktest.OpExists, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				a, b := startEngine(t, srv, "a", nil), startEngine(t, srv, "b", nil)
				var all []*obtaining
				var ends []context.CancelFunc
				for i, e := range []*Engine{a, a, a, b} {
					ctx, end := context.WithCancel(t.Context())
					defer end()
					ends = append(ends, end)
					all = append(all, later(func() (*Grant, error) { return lockIn(e)(ctx) }))
					time.Sleep(time.Second)
					require.Len(t, srv.Children(testDir), i+1)
				}
				path, denied := testDir, 0
				if c.which >= 0 {
					for _, child := range srv.Children(testDir) {
						if strings.HasSuffix(child, fmt.Sprint(c.which)) {
							path += "/" + child
						}
					}
				}
				srv.Intercept(func(r *zktest.Request) zktest.Verdict {
					if r.Client == "b" && r.Op == c.op && r.Path == path {
						denied++
						return refused
					}
					return zktest.Pass
				})
				ends[1]() // gives up
				time.Sleep(time.Second)
				require.Equal(t, c.ends, session.IsClosed(all[3].done))
				if c.ends {
					require.ErrorIs(t, all[3].err, zk.ErrNoAuth)
					require.Equal(t, 1, denied)
				}
				time.Sleep(time.Second)
				require.Len(t, srv.Children(testDir), map[bool]int{true: 2, false: 3}[c.ends])
				all[0].release(t)
				all[2].release(t)
				if !c.ends {
					all[3].release(t)
				}
			})
		})
	}
}

// The two nearest contenders give up at once. The waiter looks for the others by their names, and does not list the queue again.
func TestAWaiterThatTheTwoNearestLeaveDoesNotListTheQueue(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		a, b := startEngine(t, srv, "a", nil), startEngine(t, srv, "b", nil)
		stay, leave := []*obtaining{}, []*obtaining{}
		ctx, giveUp := context.WithCancel(t.Context())
		defer giveUp()
		for i := range 4 {
			if i < 2 {
				stay = append(stay, later(func() (*Grant, error) { return lockIn(a)(t.Context()) }))
			} else {
				leave = append(leave, later(func() (*Grant, error) { return lockIn(a)(ctx) }))
			}
			time.Sleep(time.Second)
		}
		waiter := later(func() (*Grant, error) { return lockIn(b)(t.Context()) })
		time.Sleep(time.Second)
		lists := 0
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Client == "b" && r.Op == zktest.OpGetChildren2 {
				lists++
			}
			return zktest.Pass
		})
		giveUp()
		for _, o := range leave {
			<-o.done
		}
		time.Sleep(time.Second)
		require.Len(t, srv.Children(testDir), 3)
		stay[0].release(t)
		stay[1].release(t)
		waiter.release(t)
		require.Zero(t, lists)
	})
}

// A waiter near the front is checked by the heartbeats from the moment at which it can be the next but one.
func TestAWaiterIsKeptOnceItIsNearTheFront(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		a, b := startEngine(t, srv, "a", nil), startEngine(t, srv, "b", nil)
		var all []*obtaining
		for range 4 {
			all = append(all, later(func() (*Grant, error) { return lockIn(a)(t.Context()) }))
			time.Sleep(time.Second)
		}
		p := enterQueue(t, b, testLock)
		waits := later(func() (*Grant, error) { return nil, p.wait(t.Context()) })
		time.Sleep(time.Second)
		synctest.Wait()
		require.False(t, p.Kept)
		require.Nil(t, p.goneIfSeen())
		for i, o := range all {
			o.release(t)
			time.Sleep(time.Second)
			synctest.Wait()
			require.Equal(t, i >= 2, p.Kept, "%d have left", i+1)
			require.Equal(t, i >= 2, p.goneIfSeen() != nil)
		}
		<-waits.done
		require.NoError(t, waits.err)
		<-b.remove(p.contender)
	})
}

// The writer that a reader watches gives up. The read that sets the watch on the writer before it also shows that this one exists.
func TestAReaderAsksForTheNextWriterOnce(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		first := startEngine(t, srv, "a", nil).wants(t, testWriter)
		time.Sleep(time.Second)
		ctx, giveUp := context.WithCancel(t.Context())
		second := startEngine(t, srv, "b", nil)
		waits := later(func() (*Grant, error) {
			return second.Obtain(ctx, &Want{Recipe: testWriter, Path: testDir, Dir: testDir, Data: node.OwnerData("test", true)})
		})
		time.Sleep(time.Second)
		reader := startEngine(t, srv, "c", nil).wants(t, testReader)
		time.Sleep(time.Second)
		reads := 0
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Client == "c" && r.Path == first.grant.Nodes()[0].Path() {
				reads++
			}
			return zktest.Pass
		})
		giveUp()
		<-waits.done
		time.Sleep(time.Second)
		require.Equal(t, 1, reads)
		first.release(t)
		reader.release(t)
	})
}
