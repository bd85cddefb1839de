package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/slots"
	"github.com/zklock-go/zklock/zktest"
)

const marksNode = path + ".zklock-slots"

// slotTally counts how calls of Slot.Do ended.
type slotTally struct{ ran, done, failed atomic.Int32 }

func (n *slotTally) do(ctx context.Context, s *slots.Slot, work time.Duration) error {
	err := s.Do(ctx, func(context.Context) error {
		n.ran.Add(1)
		time.Sleep(work)
		return nil
	})
	switch {
	case errors.Is(err, slots.ErrDone):
		n.done.Add(1)
	case err != nil:
		n.failed.Add(1)
	}
	return err
}

func TestASlotIsDoneOnceWhoeverAsksWhen(t *testing.T) {
	virtual(t, three, func(t *testing.T, srv *zktest.Server) {
		var clients []*zklock.Client
		for i := range 4 {
			clients = append(clients, connect(t, srv, fmt.Sprint("c", i), term))
		}
		var n slotTally
		var wg sync.WaitGroup
		for i, c := range clients {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 300 * time.Millisecond)
				n.do(t.Context(), slots.Named(c, path, "nightly"), 100*time.Millisecond)
			})
		}
		wg.Wait()
		require.EqualValues(t, 1, n.ran.Load())
		require.EqualValues(t, 3, n.done.Load())

		leader := 1
		for _, strike := range []func(){
			func() { srv.ElectLeader(leader) },
			func() { srv.Restart() },
			func() { time.Sleep(24 * time.Hour) }, // the lock's directory is cleaned away
			func() { clients[0] = connect(t, srv, "another process", term) },
		} {
			strike()
			time.Sleep(time.Minute)
			require.ErrorIs(t, n.do(t.Context(), slots.Named(clients[0], path, "nightly"), 0), slots.ErrDone)
			done, err := slots.Named(clients[1], path, "nightly").Done(t.Context())
			require.NoError(t, err)
			require.True(t, done)
		}
		require.NoError(t, n.do(t.Context(), slots.Named(clients[2], path, "another night"), 0))
		require.EqualValues(t, 2, n.ran.Load())
		noGhost(t, srv, path)
	})
}

func TestTimeIsCutIntoSlots(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c := connect(t, srv, "a", term)
		noon := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
		var n slotTally
		for _, at := range []time.Duration{0, 300 * time.Millisecond, 5*time.Minute - 1, 5 * time.Minute, 7 * time.Minute, -time.Nanosecond} {
			n.do(t.Context(), slots.At(c, path, noon.Add(at), 5*time.Minute), 0)
		}
		require.EqualValues(t, 3, n.ran.Load(), "11:55, 12:00 and 12:05")
		elsewhere := noon.In(time.FixedZone("", -7*3600))
		require.ErrorIs(t, n.do(t.Context(), slots.At(c, path, elsewhere, 5*time.Minute), 0), slots.ErrDone)
		require.NoError(t, n.do(t.Context(), slots.At(c, path, noon, time.Hour), 0), "another period has slots of its own")
		require.Equal(t, "2026-11-22T12:05:00.000000000Z", slots.At(c, path, noon.Add(7*time.Minute), 5*time.Minute).String())
	})
}

func TestAFailedSlotStaysOpen(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c := connect(t, srv, "a", term)
		broken := errors.New("broken")
		require.ErrorIs(t, slots.Named(c, path, "x").Do(t.Context(), func(context.Context) error { return broken }), broken)
		var n slotTally
		require.NoError(t, n.do(t.Context(), slots.Named(c, path, "x"), 0))
		require.EqualValues(t, 1, n.ran.Load())
	})
}

func TestAMarkWhoseAnswerIsLostIsFoundOrWrittenAgain(t *testing.T) {
	for name, verdict := range map[string]zktest.Verdict{"applied": zktest.LoseReply, "not applied": zktest.DropBefore} {
		for _, first := range []bool{true, false} { // the node is made, or written over
			t.Run(fmt.Sprintf("%s/first %v", name, first), func(t *testing.T) {
				virtual(t, three, func(t *testing.T, srv *zktest.Server) {
					c, other := connect(t, srv, "a", term), connect(t, srv, "b", term)
					if !first {
						require.NoError(t, slots.Named(c, path, "before").Do(t.Context(), func(context.Context) error { return nil }))
					}
					hold, err := c.Mutex(path).Lock(t.Context())
					require.NoError(t, err)
					lost := 0
					srv.Intercept(func(r *zktest.Request) zktest.Verdict {
						if slices.Contains(r.Paths, marksNode) && lost < 3 {
							lost++
							return verdict
						}
						return zktest.Pass
					})
					require.NoError(t, slots.Named(c, path, "x").Mark(t.Context(), hold))
					require.NoError(t, slots.Named(c, path, "x").Mark(t.Context(), hold), "by the same hold it is no news")
					require.Positive(t, lost)
					unlock(t, hold)
					node, ok := srv.Node(marksNode)
					require.True(t, ok)
					require.Equal(t, 1, strings.Count(string(node.Data), `"x"`))

					hold, err = other.Mutex(path).Lock(t.Context())
					require.NoError(t, err)
					require.ErrorIs(t, slots.Named(other, path, "x").Mark(t.Context(), hold), slots.ErrDone)
					unlock(t, hold)
				})
			})
		}
	}
}

// The session ends before the client learns what became of its mark.
func TestAMarkIsSettledBeyondTheEndOfItsHold(t *testing.T) {
	for name, c := range map[string]struct {
		verdict zktest.Verdict
		marked  bool
	}{"applied": {zktest.LoseReply, true}, "not applied": {zktest.DropBefore, false}} {
		t.Run(name, func(t *testing.T) {
			virtual(t, three, func(t *testing.T, srv *zktest.Server) {
				client := connect(t, srv, "a", term)
				hold, err := client.Mutex(path).Lock(t.Context())
				require.NoError(t, err)
				time.Sleep(time.Second) // its node is watched
				node, _ := srv.Node(hold.Node())
				var once sync.Once
				srv.Intercept(func(r *zktest.Request) zktest.Verdict {
					verdict := zktest.Pass
					if slices.Contains(r.Paths, marksNode) {
						once.Do(func() {
							verdict = c.verdict
							time.AfterFunc(time.Microsecond, func() { srv.Partition("a") })
							time.AfterFunc(time.Second, func() { srv.ExpireSession(node.EphemeralOwner) })
							time.AfterFunc(3*time.Second, func() { srv.HealClient("a") })
						})
					}
					return verdict
				})
				err = slots.Named(client, path, "x").Mark(t.Context(), hold)
				require.Error(t, hold.Check())
				if c.marked {
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, zklock.ErrLost)
				}
				done, err := slots.Named(client, path, "x").Done(t.Context())
				require.NoError(t, err)
				require.Equal(t, c.marked, done)
			})
		})
	}
}

func TestAMarkOfUnknownOutcomeSaysSo(t *testing.T) {
	virtual(t, three, func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv, "a", term)
		hold, err := client.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if slices.Contains(r.Paths, marksNode) {
				time.AfterFunc(time.Microsecond, func() { srv.Partition("a") })
				return zktest.LoseReply
			}
			return zktest.Pass
		})
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		require.ErrorIs(t, slots.Named(client, path, "x").Mark(ctx, hold), zklock.ErrUncertain)
	})
}

func TestOnlyTheHolderMarks(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv, "a", term)
		slot := slots.Named(client, path, "x")
		hold, err := client.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		require.NoError(t, srv.DeleteNode(hold.Node()))
		require.ErrorIs(t, slot.Mark(t.Context(), hold), zklock.ErrLost)

		hold, err = client.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		unlock(t, hold)
		require.ErrorIs(t, slot.Mark(t.Context(), hold), zklock.ErrReleased)
		require.ErrorIs(t, slot.Mark(t.Context(), nil), zklock.ErrNotHeld)

		elsewhere, err := client.Mutex("/locks/other").Lock(t.Context())
		require.NoError(t, err)
		require.ErrorIs(t, slot.Mark(t.Context(), elsewhere), zklock.ErrInvalid)
		unlock(t, elsewhere)
		done, err := slot.Done(t.Context())
		require.NoError(t, err)
		require.False(t, done)

		both, err := client.LockAll(t.Context(), client.Mutex(path), client.Mutex("/locks/other"))
		require.NoError(t, err)
		require.NoError(t, slot.Mark(t.Context(), both), "one of several locks is one")
		unlock(t, both)
	})
}

func TestHoldersOfPermitsMarkASlotOnce(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		srv.Intercept(func(r *zktest.Request) zktest.Verdict { // they look at once, then write
			if slices.Contains(r.Paths, marksNode) {
				return zktest.Delay(time.Second)
			}
			return zktest.Pass
		})
		var marked, late atomic.Int32
		var wg sync.WaitGroup
		for i := range 5 {
			c := connect(t, srv, fmt.Sprint("c", i), term)
			if i == 0 {
				hold, err := c.Semaphore(path, 5).Acquire(t.Context(), 1)
				require.NoError(t, err)
				require.NoError(t, slots.Named(c, path, "before").Mark(t.Context(), hold))
				unlock(t, hold)
			}
			wg.Go(func() {
				hold, err := c.Semaphore(path, 5).Acquire(t.Context(), 1)
				if !assert.NoError(t, err) {
					return
				}
				switch err := slots.Named(c, path, "x").Mark(t.Context(), hold); {
				case err == nil:
					marked.Add(1)
				case errors.Is(err, slots.ErrDone):
					late.Add(1)
				}
				assert.NoError(t, hold.Unlock(t.Context()))
			})
		}
		wg.Wait()
		require.EqualValues(t, 1, marked.Load())
		require.EqualValues(t, 4, late.Load())
	})
}

func TestOldMarksDoNotAccumulate(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c := connect(t, srv, "a", term)
		begin := time.Now()
		hold, err := c.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		for i := range 300 {
			at := begin.Add(time.Duration(i) * time.Minute)
			require.NoError(t, slots.At(c, path, at, time.Minute).Mark(t.Context(), hold))
			require.NoError(t, slots.Named(c, path, fmt.Sprint("job ", i)).Mark(t.Context(), hold))
			require.NoError(t, slots.At(c, path, begin, time.Duration(i+2)*time.Hour).Mark(t.Context(), hold))
		}
		node, ok := srv.Node(marksNode)
		require.True(t, ok)
		require.Less(t, len(node.Data), 16<<10)
		require.Empty(t, srv.Children(marksNode))
		for i, want := range map[int]bool{299: true, 290: true, 100: true, 0: true, 301: false} {
			done, err := slots.At(c, path, begin.Add(time.Duration(i)*time.Minute), time.Minute).Done(t.Context())
			require.NoError(t, err)
			require.Equal(t, want, done, "minute %d", i)
		}
		done, err := slots.Named(c, path, "job 299").Done(t.Context())
		require.NoError(t, err)
		require.True(t, done)
		unlock(t, hold)
	})
}

func TestBadSlotsAreRefusedBeforeAnyRequest(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c := connect(t, srv, "a", term)
		before := srv.RequestCount()
		for _, s := range []*slots.Slot{
			slots.Named(c, path, ""), slots.Named(c, path, strings.Repeat("x", 129)), slots.Named(c, path, "\xff"), slots.Named(c, "nowhere", "x"),
			slots.At(c, path, time.Now(), 0), slots.At(c, path, time.Now(), -time.Second), slots.At(c, path, time.Date(12000, 1, 1, 0, 0, 0, 0, time.UTC), time.Hour),
		} {
			_, err := s.Done(t.Context())
			require.ErrorIs(t, err, zklock.ErrInvalid)
			require.ErrorIs(t, s.Do(t.Context(), nil), zklock.ErrInvalid)
			require.ErrorIs(t, s.Mark(t.Context(), nil), zklock.ErrInvalid)
		}
		require.Equal(t, before, srv.RequestCount())
	})
}

func TestSomethingElseInTheMarksPlaceIsLeftAlone(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.PutNode(marksNode, []byte("mine")))
		var n slotTally
		require.ErrorIs(t, n.do(t.Context(), slots.Named(connect(t, srv, "a", term), path, "x"), 0), zklock.ErrInvalid)
		node, _ := srv.Node(marksNode)
		require.Equal(t, "mine", string(node.Data))
		require.Zero(t, n.ran.Load())
	})
}

// Each second has a slot that three clients want, while sessions end, servers fall
// behind or stop and answers are lost. No slot is marked twice: two calls that both
// return nil would be two runs.
func TestNoSlotIsDoneTwiceUnderFaults(t *testing.T) {
	virtual(t, three, func(t *testing.T, srv *zktest.Server) {
		const count = 120
		var mu sync.Mutex
		marked := map[string]int{}
		k := 0
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			mu.Lock()
			defer mu.Unlock()
			if k++; slices.Contains(r.Paths, marksNode) {
				switch k % 5 {
				case 0:
					return zktest.LoseReply
				case 1:
					return zktest.DropBefore
				case 2:
					return zktest.Delay(time.Second)
				}
			}
			return zktest.Pass
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		var wg sync.WaitGroup
		begin := time.Now()
		for i := range 3 {
			c := connect(t, srv, fmt.Sprint("c", i), 4*time.Second)
			wg.Go(func() {
				for range count {
					s := slots.At(c, path, time.Now(), time.Second)
					if err := s.Do(ctx, func(context.Context) error { return nil }); err == nil {
						mu.Lock()
						marked[s.String()]++
						mu.Unlock()
					}
					time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second)))
				}
			})
		}
		wg.Go(func() {
			for i := range count / 10 {
				time.Sleep(10 * time.Second)
				switch i % 5 {
				case 0:
					srv.ElectLeader(i % 3)
				case 1:
					srv.Member(i % 3).Lag(time.Second)
				case 2:
					for _, s := range srv.Sessions() {
						srv.ExpireSession(s.ID)
						break
					}
				case 3:
					srv.DropConnections()
				case 4:
					srv.Partition("c1")
					time.AfterFunc(5*time.Second, func() { srv.HealClient("c1") })
				}
			}
		})
		wg.Wait()
		require.Greater(t, len(marked), count/3, "after %v", time.Since(begin))
		for slot, n := range marked {
			require.Equal(t, 1, n, "slot %s", slot)
		}
	})
}

func TestASlotWorksWithRestrictedNodes(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		opts := &zklock.Options{
			Label: "a", SessionTimeout: term, Root: "/app",
			Auth: []zklock.Auth{{Scheme: "digest", Data: []byte("u:p")}}, ACL: zk.AuthACL(zk.PermAll),
		}
		var n slotTally
		require.NoError(t, n.do(t.Context(), slots.Named(connectWith(t, srv, opts), path, "x"), 0))
		node, ok := srv.Node("/app" + marksNode)
		require.True(t, ok)
		require.Equal(t, "digest", node.ACL[0].Scheme)
		require.ErrorIs(t, n.do(t.Context(), slots.Named(connect(t, srv, "b", term), "/app"+path, "x"), 0), zk.ErrNoAuth)
	})
}
