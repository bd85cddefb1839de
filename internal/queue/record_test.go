// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/lab"
	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/zktest"
)

const (
	testDelay  = 30 * time.Second
	testRecord = testDir + node.RecordSuffix
)

func startDelayed(t *testing.T, srv *zktest.Server, label string) *Engine {
	t.Helper()
	return startEngine(t, srv, label, func(e *Engine) { e.Delay = testDelay })
}

// obtain acquires the test's lock.
func obtain(t *testing.T, e *Engine) *Grant {
	t.Helper()
	g, err := e.Obtain(t.Context(), wantLock(testDir))
	require.NoError(t, err)
	return g
}

// loseHold makes e hold the lock and lose it, and has an attempt of e record that.
func loseHold(t *testing.T, srv *zktest.Server, e *Engine) {
	t.Helper()
	g := obtain(t, e)
	require.NoError(t, srv.DeleteNode(g.Nodes()[0].Path()))
	require.NoError(t, outcomeOf(g, true))
	_, err := e.TryObtain(t.Context(), wantLock(testDir))
	require.ErrorIs(t, err, outcome.ErrLocked)
}

// recordIn returns the record and its version.
func recordIn(t *testing.T, srv *zktest.Server) (node.Record, int32) {
	t.Helper()
	n, there := srv.Node(testRecord)
	require.True(t, there)
	r, err := node.ParseRecord(n.Data)
	require.NoError(t, err)
	return r, n.Stat.Version
}

// A contender that has read the record before it queues has seen a loss whose delay has passed.
// Until it is first, the record is deleted, and created again for another hold that is lost. It then
// has the same version.
//
//zklock:promise P11.2
func TestARecordThatWasReadBeforeQueueingIsReadAgain(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		late, other := startDelayed(t, srv, "late"), startDelayed(t, srv, "other")
		loseHold(t, srv, other)
		time.Sleep(testDelay)
		before, version := recordIn(t, srv)
		s, err := late.session(t.Context())
		require.NoError(t, err)
		want := wantLock(testDir)
		wa := late.newWaiterFor(want)
		require.NoError(t, wa.prepare(t.Context(), s))
		require.True(t, wa.record.at.exists)

		release(t, obtain(t, other))
		_, there := srv.Node(testRecord)
		require.False(t, there)
		loseHold(t, srv, other)
		after, again := recordIn(t, srv)
		require.Equal(t, version, again)
		require.NotEqual(t, before.By, after.By)

		require.ErrorIs(t, wa.try(t.Context(), s), outcome.ErrLocked)
		late.discard(t.Context(), outcome.ErrLocked, wa)
	})
}

// A write of the record whose reply was lost is executed just before the release, which has seen no record.
//
//zklock:promise P11.4
func TestAReleaseDeletesARecordThatAppearsMeanwhile(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		e, next := startDelayed(t, srv, "a"), startDelayed(t, srv, "next")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var appeared atomic.Bool
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			switch {
			case r.Client != "a" || !slices.Contains(r.Paths, testRecord):
			case slices.Contains(r.Ops, zktest.OpCheck): // the record
				cancel()
				return zktest.DropBefore
			case !appeared.Swap(true): // the release
				held := node.Record{Delay: testDelay, Fate: node.IsHeld, By: node.BaseName(r.Paths[0])}
				_ = srv.PutNode(testRecord, held.Encode()) // the test fails below if it is not there
			}
			return zktest.Pass
		})
		_, err := e.Obtain(ctx, wantLock(testDir))
		require.ErrorIs(t, err, context.Canceled)
		time.Sleep(time.Second)
		require.True(t, appeared.Load())
		began := time.Now()
		release(t, obtain(t, next))
		require.Less(t, time.Since(began), time.Second)
	})
}

// Earlier versions of the library keep the record, and operators may create it.
//
//zklock:promise P11.1
func TestExistingRecordsAreUnderstood(t *testing.T) {
	for text, c := range map[string]struct {
		record  string
		delayed bool
	}{
		"nobody has held":               {"zklock: delay 30s", false},
		"the last hold was released":    {"zklock: delay 30s\nreleased by x-lock-0000000000", false},
		"another delay, released":       {"zklock: delay 1m0s\nreleased by x-lock-0000000000", false},
		"the holder is gone":            {"zklock: delay 30s\nheld by x-lock-0000000000", true},
		"the last hold was lost":        {"zklock: delay 30s\nlost by x-lock-0000000000", true},
		"another delay, holder is gone": {"zklock: delay 1m0s\nheld by x-lock-0000000000", true},
	} {
		t.Run(text, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				require.NoError(t, srv.PutNode(testRecord, []byte(c.record)))
				e := startDelayed(t, srv, "a")
				began := time.Now()
				release(t, obtain(t, e))
				require.Equal(t, c.delayed, time.Since(began) >= testDelay)
				_, there := srv.Node(testRecord)
				require.False(t, there)
			})
		})
	}
}

// If the client may not delete the record, its release is written into it.
//
//zklock:promise P11.4
func TestAReleaseIsWrittenIntoARecordThatMayNotBeDeleted(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		a, b := startDelayed(t, srv, "a"), startDelayed(t, srv, "b")
		s, err := a.session(t.Context())
		require.NoError(t, err)
		_, err = a.Requests.Create(t.Context(), s, "/locks", nil, zk.FlagPersistent, zk.WorldACL(zk.PermCreate|zk.PermRead))
		require.NoError(t, err)
		var asked atomic.Int32
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if i := slices.Index(r.Paths, testRecord); i >= 0 && r.Ops[i] == zktest.OpDelete {
				asked.Add(1)
			}
			return zktest.Pass
		})
		for range 3 {
			began := time.Now()
			for _, e := range []*Engine{a, b} {
				release(t, obtain(t, e))
				r, _ := recordIn(t, srv)
				require.Equal(t, node.WasReleased, r.Fate)
			}
			require.Less(t, time.Since(began), time.Second)
		}
		require.EqualValues(t, 2, asked.Load(), "each client asks once")
	})
}

// A contender behind another library's contender has seen that one. The holder between them was
// granted after it, and its release is what counts.
//
//zklock:promise P11.3
func TestAReleaseBehindAnotherLibrarysContenderIsRecorded(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		a, b, last := startDelayed(t, srv, "a"), startDelayed(t, srv, "b"), startDelayed(t, srv, "last")
		foreign := testDir + "/_c_00000000000000000000000000000000-lock-0000000000"
		require.NoError(t, srv.PutNode(foreign, nil))
		lab.SetChildCounter(srv, testDir, 1)
		first := later(func() (*Grant, error) { return a.Obtain(t.Context(), wantLock(testDir)) })
		time.Sleep(time.Second)
		second := later(func() (*Grant, error) { return b.Obtain(t.Context(), wantLock(testDir)) })
		time.Sleep(time.Second)
		require.NoError(t, srv.DeleteNode(foreign))
		<-first.done
		began := time.Now()
		first.release(t)
		second.release(t)
		require.Less(t, time.Since(began), time.Second)
		began = time.Now()
		release(t, obtain(t, last))
		require.Less(t, time.Since(began), time.Second)
		_, there := srv.Node(testRecord)
		require.False(t, there)
	})
}

// A hold with another delay refuses a newcomer, and a lost or released one does not.
//
//zklock:promise P11.12
func TestOnlyAnExistingHoldRefusesAnotherDelay(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		a, other := startDelayed(t, srv, "a"), startEngine(t, srv, "other", func(e *Engine) { e.Delay = time.Second })
		g := obtain(t, a)
		_, err := other.Obtain(t.Context(), wantLock(testDir))
		require.ErrorIs(t, err, outcome.ErrMismatch)
		require.ErrorContains(t, err, "lock-delay is 30s, not 1s")
		require.NoError(t, srv.DeleteNode(g.Nodes()[0].Path()))
		require.NoError(t, outcomeOf(g, true))
		began := time.Now()
		release(t, obtain(t, other))
		require.GreaterOrEqual(t, time.Since(began), testDelay, "the delay of the hold that was lost")
		release(t, obtain(t, other))
		release(t, obtain(t, a))
	})
}

// A hold that was lost ends without a release, although its node is still there and the first attempt to delete it fails.
func TestALostHoldIsNotRecordedAsReleased(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		e := startDelayed(t, srv, "a")
		g := obtain(t, e)
		left := srv.Next(1, zktest.DropBefore, zktest.OpDelete)
		require.NoError(t, outcomeOf(g, true))
		require.Zero(t, left())
		r, _ := recordIn(t, srv)
		require.Equal(t, node.Record{Delay: testDelay, Fate: node.IsHeld, By: g.Nodes()[0].Name}, r)
		require.Empty(t, srv.Children(testDir))
	})
}

// The reply to the claim is lost: the record says that we hold, which is no loss of another hold.
func TestAClaimWhoseReplyIsLostHolds(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		e, lost := startDelayed(t, srv, "a"), false
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if !lost && slices.Contains(r.Paths, testRecord) {
				lost = true
				return zktest.LoseReply
			}
			return zktest.Pass
		})
		began := time.Now()
		g := obtain(t, e)
		require.True(t, lost)
		require.Less(t, time.Since(began), testDelay)
		r, _ := recordIn(t, srv)
		require.Equal(t, node.Record{Delay: testDelay, Fate: node.IsHeld, By: g.Nodes()[0].Name}, r)
		release(t, g)
		_, there := srv.Node(testRecord)
		require.False(t, there)
	})
}

// A record that nobody understands refuses a newcomer, and so does one that cannot be read.
func TestARecordThatCannotBeReadRefusesANewcomer(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		e := startDelayed(t, srv, "a")
		s, err := e.session(t.Context())
		require.NoError(t, err)
		require.NoError(t, srv.PutNode(testRecord, []byte("zklock: delay soon")))
		_, err = e.Obtain(t.Context(), wantLock(testDir))
		require.ErrorIs(t, err, outcome.ErrMismatch)
		_, err = e.ReadRecord(t.Context(), s, testDir)
		require.ErrorIs(t, err, outcome.ErrMismatch)
		srv.Next(1, refused, zktest.OpGetData)
		_, err = e.ReadRecord(t.Context(), s, testDir)
		require.ErrorIs(t, err, zk.ErrNoAuth)
		require.NoError(t, srv.DeleteNode(testRecord))
		r, err := e.ReadRecord(t.Context(), s, testDir)
		require.NoError(t, err)
		require.Equal(t, recordAt{}, r)
		for _, err := range []error{zk.ErrBadVersion, zk.ErrNoNode, zk.ErrNodeExists} {
			require.True(t, hasMoved(err))
		}
		require.False(t, hasMoved(zk.ErrNoAuth))
	})
}

// Another delay is an error only if a second look, which is as new as the quorum's state, shows the same hold.
func TestAnotherDelayIsReadTwice(t *testing.T) {
	const holder = "x-lock-0000000000"
	held := node.Record{Delay: time.Minute, Fate: node.IsHeld, By: holder}
	for name, c := range map[string]struct {
		second func(srv *zktest.Server) zktest.Verdict // before the second look
		gone   bool                                    // the holder's node is
		want   error
	}{
		"the same":           {want: outcome.ErrMismatch},
		"the holder is gone": {gone: true},
		"released meanwhile": {second: func(srv *zktest.Server) zktest.Verdict {
			_ = srv.PutNode(testRecord, node.Record{Delay: time.Minute, Fate: node.WasReleased, By: holder}.Encode())
			return zktest.Pass
		}},
		"refused": {second: func(*zktest.Server) zktest.Verdict { return refused }, want: zk.ErrNoAuth},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				e := startDelayed(t, srv, "a")
				s, err := e.session(t.Context())
				require.NoError(t, err)
				require.NoError(t, srv.PutNode(testRecord, held.Encode()))
				require.NoError(t, srv.PutNode(testDir, nil))
				if !c.gone {
					require.NoError(t, srv.PutNode(testDir+"/"+holder, nil))
				}
				reads := 0
				srv.Intercept(func(r *zktest.Request) zktest.Verdict {
					if r.Path == testRecord && r.Op == zktest.OpGetData {
						if reads++; reads == 2 && c.second != nil {
							return c.second(srv)
						}
					}
					return zktest.Pass
				})
				r, err := e.agree(t.Context(), s, testDir)
				require.Equal(t, 2, reads)
				if c.want != nil {
					require.ErrorIs(t, err, c.want)
					return
				}
				require.NoError(t, err)
				require.True(t, r.exists)
				at(srv, zktest.OpGetData, testRecord, func() zktest.Verdict { return refused })
				_, err = e.agree(t.Context(), s, testDir)
				require.ErrorIs(t, err, zk.ErrNoAuth, "the first look")
			})
		})
	}
}

// The record has a child, or its ACL permits nothing: the release gives up what it may not do, and deletes its node.
func TestAReleaseDoesWhatItMayWithTheRecord(t *testing.T) {
	t.Run("a child", func(t *testing.T) {
		virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
			e := startDelayed(t, srv, "a")
			g := obtain(t, e)
			require.NoError(t, srv.PutNode(testRecord+"/child", nil))
			release(t, g)
			r, _ := recordIn(t, srv)
			require.Equal(t, node.Record{Delay: testDelay, Fate: node.WasReleased, By: g.Nodes()[0].Name}, r)
			require.Empty(t, srv.Children(testDir))
		})
	})
	t.Run("not allowed", func(t *testing.T) {
		virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
			e, tries := startDelayed(t, srv, "a"), 0
			g := obtain(t, e)
			srv.Intercept(func(r *zktest.Request) zktest.Verdict {
				if slices.Contains(r.Paths, testRecord) {
					tries++
					return refused
				}
				return zktest.Pass
			})
			release(t, g)
			require.Equal(t, 2, tries, "to delete the record and to write it")
			require.Empty(t, srv.Children(testDir))
			r, _ := recordIn(t, srv)
			require.Equal(t, node.IsHeld, r.Fate)
		})
	})
}

// The last write of the record was not answered, and the release reads what became of it.
func TestAReleaseReadsARecordThatItDoesNotKnow(t *testing.T) {
	for name, c := range map[string]struct {
		record func(own string) string // "" for none
		reads  zktest.Verdict
		after  string // the record; "" if there is none
	}{
		"it names us":     {func(own string) string { return "zklock: delay 30s\nheld by " + own }, zktest.Pass, ""},
		"it names others": {func(string) string { return "zklock: delay 30s\nheld by x" }, zktest.Pass, "zklock: delay 30s\nheld by x"},
		"there is none":   {func(string) string { return "" }, zktest.Pass, ""},
		"other data":      {func(string) string { return "value" }, zktest.Pass, "value"},
		"asked again":     {func(own string) string { return "zklock: delay 30s\nheld by " + own }, zktest.Answer(zktest.CodeRuntimeInconsistency), ""},
		"not allowed":     {func(string) string { return "zklock: delay 30s" }, refused, "zklock: delay 30s"},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				e := startDelayed(t, srv, "a")
				p := enterQueue(t, e, testLock)
				if text := c.record(p.Name); text != "" {
					require.NoError(t, srv.PutNode(testRecord, []byte(text)))
				}
				p.record.sent = true
				p.record.at = nil
				srv.Next(1, c.reads, zktest.OpGetData)
				require.NoError(t, <-e.remove(p.contender))
				n, there := srv.Node(testRecord)
				require.Equal(t, c.after != "", there)
				require.Equal(t, c.after, string(n.Data))
				require.Empty(t, srv.Children(testDir))
				if c.after == "" {
					require.True(t, e.noRecord.has(testDir, recentLife))
				}
			})
		})
	}
}

// A reader looks whether a writer that the record names still holds, as a reader. If it may not look, it does not hold.
func TestAReaderThatMayNotLookForTheHolderDoesNotHold(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		e := startDelayed(t, srv, "a")
		require.NoError(t, srv.PutNode(testRecord, []byte("zklock: delay 30s\nheld by x-lock-0000000000")))
		at(srv, zktest.OpExists, testDir+"/x-lock-0000000000", func() zktest.Verdict { return refused })
		w := wantLock(testDir)
		w.Recipe = delayed(testReader)
		_, err := e.Obtain(t.Context(), w)
		require.ErrorIs(t, err, zk.ErrNoAuth)
	})
}

// The leader's clock is read from our node, which is written again, with a request that somebody has written, if it is older than the record.
func TestTheLeadersTimeIsReadFromOurNode(t *testing.T) {
	inQueue(t, func(t *testing.T, srv *zktest.Server, e *Engine, p *waiter) {
		made, _ := srv.Node(p.Path())
		now, err := p.leaderTime(t.Context(), recordAt{mtime: made.Ctime})
		require.NoError(t, err)
		require.Equal(t, made.Ctime, now)
		require.Zero(t, srv.Requests()[zktest.OpSetData])

		time.Sleep(time.Second)
		require.NoError(t, srv.PutNode(p.Path(), node.CuratorRevocation))
		now, err = p.leaderTime(t.Context(), recordAt{mtime: made.Ctime + 1})
		require.NoError(t, err)
		require.Equal(t, made.Ctime+1000, now)
		require.Equal(t, 1, srv.Requests()[zktest.OpSetData])
		require.True(t, p.Revocation.Requested.IsSet())
		after, _ := srv.Node(p.Path())
		require.Equal(t, node.WithRevocation(p.OwnData()), after.Data)
		at(srv, zktest.OpSetData, p.Path(), func() zktest.Verdict { return zktest.Answer(zktest.CodeBadVersion) })
		now, err = p.leaderTime(t.Context(), recordAt{mtime: made.Ctime + 1})
		require.NoError(t, err)
		require.Equal(t, made.Ctime+1000, now)
		require.Equal(t, 3, srv.Requests()[zktest.OpSetData], "somebody has written it since")

		at(srv, zktest.OpSetData, p.Path(), func() zktest.Verdict { return refused })
		now, err = p.leaderTime(t.Context(), recordAt{mtime: made.Ctime + 1})
		require.NoError(t, err)
		require.Equal(t, made.Ctime, now, "we may not write our node")
		require.NoError(t, srv.DeleteNode(p.Path()))
		_, err = p.leaderTime(t.Context(), recordAt{mtime: made.Ctime + 1})
		require.ErrorIs(t, err, zk.ErrNoNode)
	})
}

// The release has read that another hold is recorded. Before it deletes its node, a late write of its own says that it holds.
func TestAReleaseReadsARecordThatHasChangedAgain(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		e := startDelayed(t, srv, "a")
		p := enterQueue(t, e, testLock)
		require.NoError(t, srv.PutNode(testRecord, []byte("zklock: delay 30s\nreleased by x")))
		p.record.sent = true
		p.record.at = nil
		at(srv, zktest.OpMulti, "", func() zktest.Verdict {
			_ = srv.PutNode(testRecord, []byte("zklock: delay 30s\nheld by "+p.Name))
			return zktest.Pass
		})
		require.NoError(t, <-e.remove(p.contender))
		_, there := srv.Node(testRecord)
		require.False(t, there)
		require.Empty(t, srv.Children(testDir))
	})
}

// A record that was written since it was read is not overwritten, whatever replaces it.
func TestARecordThatHasMovedIsNotOverwritten(t *testing.T) {
	inQueue(t, func(t *testing.T, srv *zktest.Server, e *Engine, p *waiter) {
		other, held := node.Record{Delay: testDelay, Fate: node.WasLost, By: "x"}, node.Record{Delay: testDelay, Fate: node.IsHeld, By: p.Name}
		require.NoError(t, srv.PutNode(testRecord, nil))
		require.NoError(t, srv.PutNode(testRecord, other.Encode()))
		for _, r := range []node.Record{{}, other, held} {
			for _, over := range []recordAt{{}, {exists: true}} {
				if r == (node.Record{}) && !over.exists {
					continue
				}
				require.Equal(t, errRecordMoved, p.post(t.Context(), over, r))
				now, _ := recordIn(t, srv)
				require.Equal(t, other, now)
				require.Nil(t, p.record.at)
			}
		}
		require.NoError(t, p.post(t.Context(), recordAt{exists: true, version: 1}, held))
		now, version := recordIn(t, srv)
		require.Equal(t, held, now)
		at, _ := srv.Node(testRecord)
		require.Equal(t, &recordAt{held, true, version, at.Mtime}, p.record.at)
		require.NoError(t, p.post(t.Context(), *p.record.at, node.Record{}))
		require.NotContains(t, srv.Tree(), testRecord)
		require.NoError(t, p.post(t.Context(), recordAt{}, held))
		require.Equal(t, &recordAt{Record: held, exists: true}, p.record.at)
		require.NoError(t, srv.DeleteNode(p.Path()))
		require.Equal(t, outcome.ErrGone, p.post(t.Context(), *p.record.at, held))
		require.True(t, p.record.sent)
	})
}
