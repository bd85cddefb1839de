// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
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
	"github.com/zklock-go/zklock/internal/lab"
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

func nothing(context.Context) error { return nil }

// isDone reports whether a slot was marked as done.
func isDone(t *testing.T, s *slots.Slot) (bool, error) {
	err := s.Open(t.Context())
	if errors.Is(err, slots.ErrDone) {
		return true, nil
	}
	return false, err
}

//zklock:promise P10.1 A21
func TestASlotIsDoneOnceByAnyHostAtAnyTime(t *testing.T) {
	t.Parallel()
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
			func() { time.Sleep(24 * time.Hour / time.Duration(oneIn(12))) }, // until the lock's directory is removed
			func() { clients[0] = connect(t, srv, "another process", term) },
		} {
			strike()
			time.Sleep(time.Minute)
			require.ErrorIs(t, n.do(t.Context(), slots.Named(clients[0], path, "nightly"), 0), slots.ErrDone)
			done, err := isDone(t, slots.Named(clients[1], path, "nightly"))
			require.NoError(t, err)
			require.True(t, done)
		}
		require.NoError(t, n.do(t.Context(), slots.Named(clients[2], path, "another night"), 0))
		require.EqualValues(t, 2, n.ran.Load())
		noGhost(t, srv, path)
	})
}

//zklock:promise P10.3
func TestTimeIsCutIntoSlots(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c := connect(t, srv, "a", term)
		noon := time.Now().UTC().Truncate(24 * time.Hour).Add(12 * time.Hour)
		time.Sleep(time.Until(noon.Add(10 * time.Minute)))
		var n slotTally
		for _, at := range []time.Duration{0, 300 * time.Millisecond, 5*time.Minute - 1, 5 * time.Minute, 7 * time.Minute, -time.Nanosecond} {
			n.do(t.Context(), slots.At(c, path, noon.Add(at), 5*time.Minute), 0)
		}
		require.EqualValues(t, 3, n.ran.Load(), "11:55, 12:00 and 12:05")
		elsewhere := noon.In(time.FixedZone("", -7*3600))
		require.ErrorIs(t, n.do(t.Context(), slots.At(c, path, elsewhere, 5*time.Minute), 0), slots.ErrDone)
		require.NoError(t, n.do(t.Context(), slots.At(c, path, noon, time.Hour), 0), "another period has slots of its own")
		require.Equal(t, noon.Format("2006-01-02")+"T12:05:00.000000000Z", slots.At(c, path, noon.Add(7*time.Minute), 5*time.Minute).String())
	})
}

// TestADayIsOneOfTheCalendar opens daily slots around both changes of Berlin's clocks: no day is skipped or repeated.
//
//zklock:promise P10.3
func TestADayIsOneOfTheCalendar(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	for _, hour := range []int{0, 1, 2, 3, 5, 12, 23} {
		for _, first := range []time.Time{time.Date(2027, 3, 25, hour, 7, 0, 0, berlin), time.Date(2027, 10, 28, hour, 7, 0, 0, berlin)} {
			seen := map[string]bool{}
			for day := range 7 {
				at := first.AddDate(0, 0, day)
				slot := slots.At(new(zklock.Client), path, at, 24*time.Hour).String()
				require.False(t, seen[slot], "%v is skipped", at)
				seen[slot] = true
				require.Equal(t, slot, slots.At(new(zklock.Client), path, at.Add(40*time.Minute), 24*time.Hour).String(), "a host that is late by 40 minutes")
			}
		}
	}
	monday := time.Date(2027, 3, 29, 0, 0, 0, 0, berlin)
	require.Equal(t, "2027-03-29T00:00:00", slots.At(new(zklock.Client), path, monday, 7*24*time.Hour).String())
	require.Equal(t, "2027-03-22T00:00:00", slots.At(new(zklock.Client), path, monday.Add(-time.Nanosecond), 7*24*time.Hour).String())
	require.Equal(t, "2027-03-28T03:00:00", slots.At(new(zklock.Client), path, time.Date(2027, 3, 28, 5, 0, 0, 0, berlin), 3*time.Hour).String())
}

// TestAClockThatIsAheadStopsNoOtherHost uses a host whose clock is an hour ahead. It opens slots of a job that runs every minute,
// together with hosts whose clocks are right.
//
//zklock:promise P10.4
func TestAClockThatIsAheadStopsNoOtherHost(t *testing.T) {
	for name, before := range map[string]bool{"as the first": false, "as a later one": true} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				ahead, right := connect(t, srv, "ahead", term), connect(t, srv, "right", term)
				var wrong, n slotTally
				if before {
					require.NoError(t, n.do(t.Context(), slots.At(right, path, time.Now(), time.Minute), 0))
					time.Sleep(time.Minute)
				}
				for range 20 {
					now := time.Now()
					for _, early := range []time.Duration{time.Hour, 2*time.Minute + time.Second} {
						require.ErrorIs(t, wrong.do(t.Context(), slots.At(ahead, path, now.Add(early), time.Minute), 0), slots.ErrAhead)
						err := slots.At(ahead, path, now.Add(early), time.Minute).Open(t.Context())
						require.ErrorIs(t, err, slots.ErrAhead)
					}
					require.NoError(t, n.do(t.Context(), slots.At(right, path, now, time.Minute), 0))
					time.Sleep(time.Minute)
				}
				require.Zero(t, wrong.ran.Load())
				hold, err := ahead.Mutex(path).Lock(t.Context())
				require.NoError(t, err)
				require.ErrorIs(t, slots.At(ahead, path, time.Now().Add(time.Hour), time.Minute).Mark(t.Context(), hold), slots.ErrAhead)
				require.NoError(t, slots.At(ahead, path, time.Now().Add(59*time.Second), time.Minute).Mark(t.Context(), hold), "clocks differ")
				unlock(t, hold)
			})
		})
	}
}

// TestMarksOfServersWhoseClockWasAheadStopNoHost is the same test with a leader's clock that is ahead for a while.
//
//zklock:promise P10.4
func TestMarksOfServersWhoseClockWasAheadStopNoHost(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c := connect(t, srv, "a", term)
		var future []string
		for i := range 16 {
			future = append(future, fmt.Sprintf(`{"slot":%q,"by":1}`, slots.At(c, path, time.Now().Add(time.Hour+time.Duration(i)*time.Minute), time.Minute)))
		}
		require.NoError(t, srv.PutNode(marksNode, []byte(`{"periods":[{"every":"1m0s","done":[`+strings.Join(future, ",")+`]}]}`)))
		var n slotTally
		for i := range 76 {
			err := n.do(t.Context(), slots.At(c, path, time.Now(), time.Minute), 0)
			require.Equal(t, i >= 60, errors.Is(err, slots.ErrDone), "minute %d: %v", i, err)
			time.Sleep(time.Minute)
		}
		require.EqualValues(t, 60, n.ran.Load())
	})
}

// TestASlotThatIsForgottenIsNotDone marks sixteen slots, the newest first, and one more, so that the oldest is forgotten and
// ErrForgotten is returned. For a done slot, the error says when and by whom it was marked, unless the client is anonymous. Marks
// of earlier versions have neither.
//
//zklock:promise P10.2
func TestADoneSlotReturnsItsTimeAndAuthor(t *testing.T) {
	t.Parallel()
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		a := connectWith(t, srv, &zklock.Options{Label: "night job"})
		b := connectWith(t, srv, &zklock.Options{Label: "a host", Anonymous: true})
		host, _ := os.Hostname()
		require.NoError(t, slots.Named(a, path, "x").Open(t.Context()))
		require.NoError(t, slots.Named(a, path, "x").Do(t.Context(), nothing))
		at := time.Now().Format("2006-01-02 15:04:05 -0700")
		require.NoError(t, slots.Named(b, path, "y").Do(t.Context(), nothing))
		time.Sleep(time.Hour)
		err := slots.Named(b, path, "x").Open(t.Context())
		require.ErrorIs(t, err, slots.ErrDone)
		require.ErrorContains(t, err, fmt.Sprintf("already done at %s by night job %s:%d", at, host, os.Getpid()))
		require.ErrorContains(t, slots.Named(a, path, "x").Do(t.Context(), nothing), "by night job")
		err = slots.Named(b, path, "y").Open(t.Context())
		require.ErrorContains(t, err, "by a host")
		require.NotContains(t, err.Error(), host+":")

		require.NoError(t, srv.PutNode("/old.zklock-slots", []byte(`{"periods":[{"done":[{"slot":"x","by":1}]}]}`)))
		err = slots.Named(a, "/old", "x").Open(t.Context())
		require.ErrorIs(t, err, slots.ErrDone)
		require.Regexp(t, `already done$`, err.Error())
	})
}

//zklock:promise P10.4
func TestASlotThatIsForgottenIsNotDone(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c := connect(t, srv, "a", term)
		time.Sleep(time.Hour)
		begin := time.Now()
		minute := func(i int) *slots.Slot {
			return slots.At(c, path, begin.Add(time.Duration(i)*time.Minute), time.Minute)
		}
		hold, err := c.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		for i := range 16 {
			require.NoError(t, minute(-i).Mark(t.Context(), hold))
		}
		require.NoError(t, minute(1).Mark(t.Context(), hold))
		unlock(t, hold)
		var n slotTally
		for i := range 16 {
			require.ErrorIs(t, n.do(t.Context(), minute(1-i), 0), slots.ErrDone, "%d minutes before", i)
		}
		for _, i := range []int{-15, -16, -40} {
			require.ErrorIs(t, n.do(t.Context(), minute(i), 0), slots.ErrForgotten)
			done, err := isDone(t, minute(i))
			require.ErrorIs(t, err, slots.ErrForgotten)
			require.False(t, done)
		}
		require.Zero(t, n.ran.Load())
	})
}

// TestFinishedWorkIsMarkedThoughItsContextHasEnded cancels the caller's context during the work.
//
//zklock:promise P10.5
func TestFinishedWorkIsMarkedThoughItsContextHasEnded(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c := connect(t, srv, "a", term)
		ctx, cancel := context.WithCancel(t.Context())
		require.NoError(t, slots.Named(c, path, "x").Do(ctx, func(ctx context.Context) error {
			cancel()
			<-ctx.Done()
			return nil
		}))
		var n slotTally
		require.ErrorIs(t, n.do(t.Context(), slots.Named(c, path, "x"), 0), slots.ErrDone)
		require.Zero(t, n.ran.Load())
		noGhost(t, srv, path)
	})
}

//zklock:promise P10.2 A22
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

//zklock:promise P10.6
func TestAMarkWhoseAnswerIsLostIsFoundOrWrittenAgain(t *testing.T) {
	for name, verdict := range map[string]zktest.Verdict{"applied": zktest.LoseReply, "not applied": zktest.DropBefore} {
		for _, first := range []bool{true, false} { // the node is created or overwritten
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

// The session ends before the client knows the outcome of its mark.
//
//zklock:promise P10.6
func TestAMarkIsDecidedAfterTheEndOfItsHold(t *testing.T) {
	for name, c := range map[string]struct {
		verdict zktest.Verdict
		marked  bool
		other   bool // marks the slot before it is looked for
	}{
		"applied": {zktest.LoseReply, true, false}, "not applied": {zktest.DropBefore, false, false},
		"not applied, and marked by another": {zktest.DropBefore, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, three, func(t *testing.T, srv *zktest.Server) {
				client, other := connect(t, srv, "a", term), connect(t, srv, "b", term)
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
							if c.other {
								time.AfterFunc(2*time.Second, func() { _ = slots.Named(other, path, "x").Do(t.Context(), nothing) })
							}
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
					require.NotErrorIs(t, err, zklock.ErrUncertain)
				}
				done, err := isDone(t, slots.Named(client, path, "x"))
				require.NoError(t, err)
				require.Equal(t, c.marked || c.other, done)
			})
		})
	}
}

// If a mark was never sent, its outcome is certain.
//
//zklock:promise P10.2
func TestAMarkThatWasNotSentIsNotUncertain(t *testing.T) {
	virtual(t, three, func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv, "a", term)
		hold, err := client.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		srv.Partition("a")
		<-hold.Context().Done()
		ctx, cancel := context.WithTimeout(t.Context(), term)
		defer cancel()
		began := time.Now()
		err = slots.Named(client, path, "x").Mark(ctx, hold)
		require.ErrorIs(t, err, zklock.ErrLost)
		require.NotErrorIs(t, err, zklock.ErrUncertain)
		require.Zero(t, time.Since(began), "it waits for what it need not know")
	})
}

// markSoon acquires the lock and marks a slot, with a time limit.
func markSoon(t *testing.T, c *zklock.Client) error {
	hold, err := c.Mutex(path).Lock(t.Context())
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	err = slots.Named(c, path, "x").Mark(ctx, hold)
	unlock(t, hold)
	return err
}

//zklock:promise P10.2
func TestAMarkThatMayNotBeWrittenIsRefusedAtOnce(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.PutNode(marksNode, []byte("{}")))
		require.NoError(t, srv.Apply(zktest.Step{Op: zktest.OpSetACL, Path: marksNode, ACL: []zktest.ACL{{Perms: zktest.PermRead, Scheme: "world", ID: "anyone"}}}))
		require.ErrorIs(t, markSoon(t, connect(t, srv, "a", term)), zk.ErrNoAuth)
	})
}

// TestAMarkAheadOfTheServersClockIsDone marks a slot while the leader's clock is ahead, and then sets the clock back.
//
//zklock:promise P10.4
func TestAMarkAheadOfTheServersClockIsDone(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		slot := slots.At(connect(t, srv, "a", term), path, time.Now().Add(time.Hour), time.Minute)
		require.NoError(t, srv.PutNode(marksNode, fmt.Appendf(nil, `{"periods":[{"every":"1m0s","done":[{"slot":%q,"by":1}]}]}`, slot)))
		require.ErrorIs(t, slot.Open(t.Context()), slots.ErrDone)
	})
}

// TestAMarkIsUncertainWheneverItsContextEnds ends the context during the requests of a mark and in the pauses between them.
//
//zklock:promise P10.6
func TestAMarkIsUncertainWheneverItsContextEnds(t *testing.T) {
	for i := range 40 {
		virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
			client := connect(t, srv, "a", term)
			hold, err := client.Mutex(path).Lock(t.Context())
			require.NoError(t, err)
			remove := srv.Intercept(func(r *zktest.Request) zktest.Verdict {
				if slices.Contains(r.Paths, marksNode) {
					srv.Member(0).Refuse(true)
					return zktest.LoseReply
				}
				return zktest.Pass
			})
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+i*i)*time.Millisecond)
			defer cancel()
			require.ErrorIs(t, slots.Named(client, path, "x").Mark(ctx, hold), zklock.ErrUncertain)
			remove()
			srv.Member(0).Refuse(false)
		})
	}
}

//zklock:promise P10.7
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
		require.ErrorIs(t, slot.Mark(t.Context(), new(zklock.Hold)), zklock.ErrNotHeld)

		elsewhere, err := client.Mutex("/locks/other").Lock(t.Context())
		require.NoError(t, err)
		require.ErrorIs(t, slot.Mark(t.Context(), elsewhere), zklock.ErrInvalid)
		unlock(t, elsewhere)
		another, err := connect(t, srv, "b", term).Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		require.ErrorIs(t, slot.Mark(t.Context(), another), zklock.ErrInvalid, "of another client")
		unlock(t, another)
		done, err := isDone(t, slot)
		require.NoError(t, err)
		require.False(t, done)

		both, err := client.LockAll(t.Context(), client.Mutex(path), client.Mutex("/locks/other"))
		require.NoError(t, err)
		require.NoError(t, slot.Mark(t.Context(), both), "one of several locks is one")
		unlock(t, both)
	})
}

//zklock:promise P10.7
func TestHoldersOfPermitsMarkASlotOnce(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		srv.Intercept(func(r *zktest.Request) zktest.Verdict { // all read before any of them writes
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

//zklock:promise P10.8
func TestOldMarksDoNotAccumulate(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c := connect(t, srv, "a", term)
		begin := time.Now()
		hold, err := c.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		for i := range 300 {
			require.NoError(t, slots.At(c, path, time.Now(), time.Minute).Mark(t.Context(), hold))
			require.NoError(t, slots.Named(c, path, time.Now().Format("job 2006-01-02T15:04")).Mark(t.Context(), hold))
			err := slots.At(c, path, begin, time.Duration(i+2)*time.Hour).Mark(t.Context(), hold)
			require.Equal(t, i >= 30, errors.Is(err, slots.ErrFull), "%d: a new period pushes none out", i)
			time.Sleep(time.Minute)
		}
		unlock(t, hold)
		node, ok := srv.Node(marksNode)
		require.True(t, ok)
		require.Less(t, len(node.Data), 48<<10)
		require.Empty(t, srv.Children(marksNode))
		for i, want := range map[int]error{299: slots.ErrDone, 290: slots.ErrDone, 100: slots.ErrForgotten, 0: slots.ErrForgotten, 300: nil} {
			require.ErrorIs(t, slots.At(c, path, begin.Add(time.Duration(i)*time.Minute), time.Minute).Do(t.Context(), nothing), want, "minute %d", i)
		}
		for i, want := range map[int]error{299: slots.ErrDone, 172: slots.ErrDone, 171: slots.ErrForgotten, 0: slots.ErrForgotten, 300: nil} {
			name := begin.Add(time.Duration(i) * time.Minute).Format("job 2006-01-02T15:04")
			require.ErrorIs(t, slots.Named(c, path, name).Open(t.Context()), want, name)
		}
	})
}

// TestEveryMigrationIsDoneOnce does 135 migrations twice, and then more names than there is room for: a name is refused rather
// than forgotten. The first version forgot the first names after 128.
//
//zklock:promise P10.1 P10.8
func TestEveryMigrationIsDoneOnce(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c := connect(t, srv, "a", term)
		var n slotTally
		begin := time.Now()
		for range 2 {
			for i := range 135 {
				n.do(t.Context(), slots.Named(c, path, fmt.Sprint("migration-", i)), 0)
			}
		}
		require.EqualValues(t, 135, n.ran.Load())
		require.EqualValues(t, 135, n.done.Load())
		hold, err := c.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		for i := 135; i < 1000; i++ {
			require.NoError(t, slots.Named(c, path, fmt.Sprint("migration-", i)).Mark(t.Context(), hold))
			time.Sleep(time.Millisecond)
		}
		err = slots.Named(c, path, "migration-1000").Mark(t.Context(), hold)
		require.ErrorIs(t, err, slots.ErrFull)
		unlock(t, hold)
		require.ErrorIs(t, n.do(t.Context(), slots.Named(c, path, "migration-1000"), 0), slots.ErrFull)
		require.ErrorIs(t, n.do(t.Context(), slots.Named(c, path, "migration-0"), 0), slots.ErrDone)
		require.EqualValues(t, 135, n.ran.Load(), "nothing ran that could run again")

		all, err := slots.Marks(t.Context(), c, path)
		require.NoError(t, err)
		require.Len(t, all, 1000)
		require.Equal(t, "migration-0", all[0].Slot)
		require.False(t, all[0].At.Before(begin.Truncate(time.Millisecond)))
		time.Sleep(time.Hour)
		srv.Next(1, zktest.LoseReply, zktest.OpSetData)
		forgotten, err := slots.Prune(t.Context(), c, path, all[500].At)
		require.NoError(t, err)
		require.Equal(t, all[:len(forgotten)], forgotten)
		require.NotEmpty(t, forgotten)
		left, err := slots.Marks(t.Context(), c, path)
		require.NoError(t, err)
		require.Equal(t, all[len(forgotten):], left)
		require.NoError(t, n.do(t.Context(), slots.Named(c, path, "migration-1000"), 0))
		require.ErrorIs(t, n.do(t.Context(), slots.Named(c, path, "migration-999"), 0), slots.ErrDone)
	})
}

// TestPruneForgetsNothingThatIsMarkedMeanwhile prunes while another client marks slots.
//
//zklock:promise P10.1
func TestPruneForgetsNothingThatIsMarkedMeanwhile(t *testing.T) {
	t.Parallel()
	virtual(t, three, func(t *testing.T, srv *zktest.Server) {
		c, operator := connect(t, srv, "a", term), connect(t, srv, "operator", term)
		none, err := slots.Prune(t.Context(), operator, path, time.Now())
		require.NoError(t, err)
		require.Empty(t, none)
		require.Empty(t, srv.Children(path), "it creates nothing")
		var n slotTally
		require.NoError(t, n.do(t.Context(), slots.Named(c, path, "old"), 0))
		time.Sleep(time.Hour)
		before := time.Now()
		var wg sync.WaitGroup
		wg.Go(func() {
			for i := range 50 {
				assert.NoError(t, n.do(t.Context(), slots.Named(c, path, fmt.Sprint("new ", i)), 0))
			}
		})
		for range 20 {
			_, err := slots.Prune(t.Context(), operator, path, before)
			require.NoError(t, err)
		}
		wg.Wait()
		require.NoError(t, slots.Named(c, path, "old").Open(t.Context()))
		for i := range 50 {
			require.ErrorIs(t, slots.Named(c, path, fmt.Sprint("new ", i)).Open(t.Context()), slots.ErrDone)
		}
		require.NoError(t, srv.PutNode("/other.zklock-slots", []byte("something else")))
		_, err = slots.Prune(t.Context(), operator, "/other", time.Now())
		require.ErrorIs(t, err, zklock.ErrMismatch)
		_, err = slots.Marks(t.Context(), operator, "/other")
		require.ErrorIs(t, err, zklock.ErrMismatch)
		_, err = slots.Prune(t.Context(), operator, "relative", time.Now())
		require.ErrorIs(t, err, zklock.ErrInvalid)
	})
}

//zklock:promise P8.4
func TestBadSlotsAreRefusedBeforeAnyRequest(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c := connect(t, srv, "a", term)
		time.Sleep(time.Second) // for the client's first heartbeat
		before := srv.RequestCount()
		for _, s := range []*slots.Slot{
			slots.Named(c, path, ""), slots.Named(c, path, strings.Repeat("x", 129)), slots.Named(c, path, "\xff"), slots.Named(c, "nowhere", "x"),
			slots.At(c, path, time.Now(), 0), slots.At(c, path, time.Now(), -time.Second), slots.At(c, path, time.Date(12000, 1, 1, 0, 0, 0, 0, time.UTC), time.Hour),
			slots.At(c, path, time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), time.Hour), slots.At(c, path, time.Date(1, 12, 31, 0, 0, 0, 0, time.UTC), time.Hour),
		} {
			err := s.Open(t.Context())
			require.ErrorIs(t, err, zklock.ErrInvalid)
			require.ErrorIs(t, s.Do(t.Context(), nil), zklock.ErrInvalid)
			require.ErrorIs(t, s.Mark(t.Context(), nil), zklock.ErrInvalid)
		}
		require.Equal(t, before, srv.RequestCount())
		require.NoError(t, slots.Named(c, path, strings.Repeat("x", 128)).Open(t.Context()))
		require.NoError(t, slots.At(c, path, time.Date(2, 1, 1, 0, 0, 0, 0, time.UTC), time.Hour).Open(t.Context()))
		require.ErrorIs(t, slots.At(c, path, time.Date(9998, 12, 31, 0, 0, 0, 0, time.UTC), time.Hour).Open(t.Context()), slots.ErrAhead)
	})
}

// TestReadersOfASlotDoNotDisturbEachOther makes many clients create the node of marks at the same time, and write it again, to
// read the leader's time.
//
//zklock:promise P10.1
func TestReadersOfASlotDoNotDisturbEachOther(t *testing.T) {
	virtual(t, zktest.Options{Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
		var clients []*zklock.Client
		for _, name := range []string{"a", "b", "c"} {
			clients = append(clients, connect(t, srv, name, term))
		}
		for range 3 {
			errs := make(chan error)
			for _, c := range clients {
				go func() { errs <- slots.At(c, path, time.Now(), time.Minute).Open(t.Context()) }()
			}
			for range clients {
				require.NoError(t, <-errs)
			}
			time.Sleep(10 * time.Minute)
		}
		require.NoError(t, srv.DeleteNode(marksNode))
		remove := srv.Intercept(func(req *zktest.Request) zktest.Verdict {
			if req.Op == zktest.OpSetData && req.Path == marksNode {
				_ = srv.DeleteNode(marksNode) // between the read and the write
			}
			return zktest.Pass
		})
		defer remove()
		require.NoError(t, slots.At(clients[0], path, time.Now(), time.Minute).Open(t.Context()))
		time.Sleep(10 * time.Minute)
		require.NoError(t, slots.At(clients[0], path, time.Now(), time.Minute).Open(t.Context()))
	})
}

//zklock:promise P10.2
func TestASlotReportsWhyItsContextHasEnded(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv, "a", term)
		slot := slots.Named(client, path, "x")
		hold, err := client.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		enough := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(enough)
		for _, err := range []error{slot.Open(ctx), slot.Mark(ctx, hold)} {
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorIs(t, err, enough)
			require.NotErrorIs(t, err, zklock.ErrUncertain)
		}
		require.NoError(t, srv.DeleteNode(hold.Node()))
		<-hold.Context().Done()
		err = slot.Mark(ctx, hold)
		require.ErrorIs(t, err, zklock.ErrLost)
		require.NotErrorIs(t, err, enough)
	})
}

//zklock:promise P10.8 A21
func TestAForeignNodeAtTheMarksPathIsNotChanged(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.PutNode(marksNode, []byte("mine")))
		var n slotTally
		require.ErrorIs(t, n.do(t.Context(), slots.Named(connect(t, srv, "a", term), path, "x"), 0), zklock.ErrMismatch)
		require.ErrorIs(t, markSoon(t, connect(t, srv, "b", term)), zklock.ErrMismatch)
		node, _ := srv.Node(marksNode)
		require.Equal(t, "mine", string(node.Data))
		require.Zero(t, n.ran.Load())
	})
}

// Every second, three clients open the same slot, while sessions end, servers lag or stop, and replies are lost. No slot is
// marked twice: if two calls returned nil, the work would run twice.
//
//zklock:promise P10.1
func TestNoSlotIsDoneTwiceUnderFaults(t *testing.T) {
	t.Parallel()
	virtual(t, three, func(t *testing.T, srv *zktest.Server) {
		const count = 120
		var mu sync.Mutex
		marked := map[string]int{}
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if slices.Contains(r.Paths, marksNode) {
				switch rand.IntN(5) { // not in step with a client's periodic requests
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
		t.Logf("%d slots in %v", len(marked), time.Since(begin))
		require.Greater(t, len(marked), count/8, "three of five requests of a mark meet a fault")
		for slot, n := range marked {
			require.Equal(t, 1, n, "slot %s", slot)
		}
	})
}

//zklock:promise P10.7
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

// TestAMarkWaitsUntilItsHoldsNodeIsGone delays the transaction of a mark in a server. The client leaves this server, and
// reconnects to it after the hold has ended. The transaction is executed then, because the hold's node still exists.
//
//zklock:promise P10.6
func TestAMarkWaitsUntilItsHoldsNodeIsGone(t *testing.T) {
	virtual(t, three, func(t *testing.T, srv *zktest.Server) {
		leader := leaderIs(srv, 3)
		follower, other := (leader+1)%3, (leader+2)%3
		client := connect(t, srv, "a", time.Minute)
		moveTo(srv, 3, follower)
		slot := slots.Named(client, path, "x")
		hold, err := client.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		require.NoError(t, slots.Named(client, path, "before").Mark(t.Context(), hold))
		var stays atomic.Bool
		stays.Store(true)
		var release func()
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			switch {
			case slices.Contains(r.Paths, marksNode) && release == nil:
				release = lab.HoldForwards(srv.Member(follower))
			case r.Op == zktest.OpDelete && r.Path == hold.Node() && stays.Load():
				return zktest.Answer(-5) // so that the hold's node cannot be deleted
			}
			return zktest.Pass
		})
		marked, unlocked := make(chan error, 1), make(chan error, 1)
		// Owned by the test, which waits for both; they end when the node is gone.
		go func() { marked <- slot.Mark(t.Context(), hold) }()
		time.Sleep(time.Second)
		go func() { unlocked <- hold.Unlock(t.Context()) }()
		time.Sleep(time.Second)
		moveTo(srv, 3, other)
		time.Sleep(time.Second)
		require.Empty(t, marked, "the transaction is still under way")
		moveTo(srv, 3, follower)
		release()
		time.Sleep(time.Second)
		stays.Store(false)
		require.NoError(t, <-marked)
		require.NoError(t, <-unlocked)
		done, err := isDone(t, slot)
		require.NoError(t, err)
		require.True(t, done)
	})
}

//zklock:promise P10.6
func TestAMarkUnderManyPermitsEnds(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c := connect(t, srv, "a", term)
		var all []zklock.Locker
		for i := range 4 {
			all = append(all, c.Semaphore(fmt.Sprint(path, i), 4000).Permits(3000))
		}
		all = append(all, c.Mutex(path))
		hold, err := c.LockAll(t.Context(), all...)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), term)
		defer cancel()
		_, err = hold.Multi()
		require.ErrorIs(t, err, zklock.ErrInvalid)
		err = slots.Named(c, path, "x").Mark(ctx, hold)
		require.NoError(t, hold.Check())
		require.ErrorIs(t, err, zklock.ErrInvalid)
	})
}

// What was entered again stays when another of the locks is lost.
//
//zklock:promise P10.6
func TestAMarkIsDecidedThoughOneOfItsLocksRemainsHeld(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c := connect(t, srv, "a", term)
		const other = "/locks/a"
		outer, err := c.Reentrant(other).Lock(t.Context())
		require.NoError(t, err)
		both, err := c.LockAll(outer.Context(), c.Reentrant(other), c.Mutex(path))
		require.NoError(t, err)
		time.Sleep(time.Second)
		node := srv.Children(path)[0]
		var once sync.Once
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			v := zktest.Pass
			if slices.Contains(r.Paths, marksNode) {
				once.Do(func() {
					v = zktest.DropBefore
					assert.NoError(t, srv.DeleteNode(path+"/"+node))
				})
			}
			return v
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		began := time.Now()
		err = slots.Named(c, path, "x").Mark(ctx, both)
		require.NoError(t, outer.Check())
		require.ErrorIs(t, err, zklock.ErrLost)
		require.NotErrorIs(t, err, zklock.ErrUncertain)
		require.Less(t, time.Since(began), time.Minute)
		unlock(t, outer)
	})
}

// A run is identified by its planned time, so it does not depend on clocks, nor on when it starts.
//
//zklock:promise P10.10
func TestARunThatWasDueIsDoneOnceHoweverLateItIs(t *testing.T) {
	virtual(t, three, func(t *testing.T, srv *zktest.Server) {
		a, b := connect(t, srv, "a", term), connect(t, srv, "b", term)
		var n slotTally
		first := time.Now().Truncate(time.Minute)
		for i := range 200 {
			due := first.Add(time.Duration(i) * time.Minute)
			time.Sleep(time.Until(due))
			require.NoError(t, n.do(t.Context(), slots.Due(a, path, due.Local()), 0))
			require.ErrorIs(t, n.do(t.Context(), slots.Due(b, path, due.UTC()), 0), slots.ErrDone)
		}
		require.ErrorIs(t, slots.Due(b, path, first.Add(72*time.Minute)).Open(t.Context()), slots.ErrDone, "one of the last 128")
		require.ErrorIs(t, slots.Due(b, path, first.Add(71*time.Minute)).Open(t.Context()), slots.ErrForgotten)
		require.NoError(t, slots.Due(b, path, first.Add(200*time.Minute+time.Second)).Open(t.Context()), "another run")
		require.NoError(t, slots.At(b, path, time.Now(), time.Minute).Open(t.Context()), "a slot of another kind")
		require.NoError(t, slots.Due(b, path, time.Now().Add(59*time.Minute)).Open(t.Context()), "clocks differ")
		require.ErrorIs(t, slots.Due(b, path, time.Now().Add(61*time.Minute)).Open(t.Context()), slots.ErrAhead)
		require.ErrorIs(t, slots.Due(b, path, time.Time{}).Open(t.Context()), zklock.ErrInvalid)
		require.EqualValues(t, 200, n.ran.Load())
	})
}
