// SPDX-License-Identifier: Apache-2.0

package zktest

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/lab/wiring"
)

// term is the session timeout in these tests, and tick the leader's.
const (
	term = 4 * time.Second
	tick = time.Second
)

func someSessions(t *testing.T, opts Options) *sessions {
	opts.TickTime, opts.Servers = tick, 3
	require.NoError(t, opts.complete())
	return newSessions(&opts, newClock())
}

// begin adds a session at a moment.
func begin(s *sessions, now time.Duration) *session {
	sess := s.create(&connectCall{timeout: int32(term.Milliseconds())}, "a", 0, rand.New(rand.NewPCG(1, 2)))
	s.add(sess, now)
	return sess
}

// expired lets the expirer look at a moment and returns the sessions whose end is due.
func expired(s *sessions, now time.Duration) []*session {
	s.expire(now)
	var list []*session
	for sess := s.nextClosed(); sess != nil; sess = s.nextClosed() {
		list = append(list, sess)
	}
	return list
}

func TestTimeoutsAreClamped(t *testing.T) {
	s := someSessions(t, Options{})
	for ms, want := range map[int32]time.Duration{0: 2 * tick, -1: 2 * tick, 1999: 2 * tick, 4000: 4 * time.Second, 1 << 30: 20 * tick} {
		assert.Equal(t, want, s.opts.negotiate(0, ms))
	}
}

func TestTheMemberThatAClientConnectsToClampsTheTimeout(t *testing.T) {
	inEnsemble(t, Options{Servers: 3, lab: wiring.Options{MinSessionTimeouts: []time.Duration{0, 12 * time.Second}}}, func(t *testing.T, e *ensemble) {
		g := login(t, e, 0)
		assert.Equal(t, term, g.sess.timeout)
		back := func(member int, asked time.Duration) *entry {
			ask := &entry{
				c: g, connect: &connectCall{session: g.sess.id, passwd: g.sess.passwd, timeout: int32(asked.Milliseconds())},
				by: requester{member: member},
			}
			e.router.submit(ask)
			return ask
		}
		assert.Equal(t, 12*time.Second, back(1, term).timeout)
		assert.Equal(t, 12*time.Second, g.sess.timeout, "its leader goes by that")
		assert.Equal(t, 12*time.Second, back(2, 12*time.Second).timeout, "a client that requests its granted timeout keeps it")
		assert.Equal(t, term, g.sess.created, "a new leader gives what it began with")
		assert.Equal(t, 12*time.Second, login(t, e, 1).sess.created)
	})
}

func TestASessionExpiresOnATickAndNeverEarly(t *testing.T) {
	s := someSessions(t, Options{})
	sess := begin(s, 300*time.Millisecond)
	assert.Equal(t, 5*time.Second, s.expiryOf(sess))
	assert.Empty(t, expired(s, 5*time.Second-1))
	assert.Equal(t, []*session{sess}, expired(s, 5*time.Second))
	assert.True(t, sess.over())
	assert.False(t, sess.ended, "its end is not committed yet")
	s.end(sess)
	assert.Empty(t, s.all())
}

func TestATouchPostponesTheExpiry(t *testing.T) {
	s := someSessions(t, Options{})
	sess := begin(s, 0)
	sess.touch(sess.timeout, 3*time.Second)
	assert.Empty(t, expired(s, 5*time.Second))
	assert.Equal(t, 8*time.Second, s.queue.next(), "looked at again")
	assert.Len(t, expired(s, 8*time.Second), 1)
	sess.touch(sess.timeout, 9*time.Second)
	assert.Equal(t, 3*time.Second, sess.touched, "a touch comes too late for one that is being closed")
}

func TestExpiredSessionsAreClosedOneAfterAnother(t *testing.T) {
	s := someSessions(t, Options{lab: wiring.Options{ExpiryGap: 100 * time.Millisecond}})
	a, b, c := begin(s, 0), begin(s, 1), begin(s, 2)
	due := 5 * time.Second
	first := expired(s, due)
	require.Len(t, first, 1)
	for _, sess := range []*session{a, b, c} {
		sess.touch(sess.timeout, due) // one of the bucket is closed all the same
	}
	assert.Len(t, expired(s, due+100*time.Millisecond), 1)
	assert.Empty(t, expired(s, due+199*time.Millisecond))
	assert.Len(t, expired(s, due+200*time.Millisecond), 1)
}

func TestExpiredSessionsAreClosedWithinALimit(t *testing.T) {
	s := someSessions(t, Options{lab: wiring.Options{ExpiryGap: 100 * time.Millisecond, ExpiryTogether: 150 * time.Millisecond}})
	for n := range 4 {
		begin(s, time.Duration(n))
	}
	due := 5 * time.Second
	require.Len(t, expired(s, due), 1)
	require.Len(t, expired(s, due+100*time.Millisecond), 1)
	require.Empty(t, expired(s, due+149*time.Millisecond))
	require.Len(t, expired(s, due+150*time.Millisecond), 2)
}

func TestSessionsThatAStoppedExpirerHasTakenAreClosedWhenItContinues(t *testing.T) {
	s := someSessions(t, Options{})
	sess := begin(s, 0)
	s.stops = 2
	assert.Empty(t, expired(s, 5*time.Second))
	sess.touch(sess.timeout, 5*time.Second)
	require.NotNil(t, s.get(sess.id))
	assert.False(t, sess.over())
	s.stops = 1
	assert.Empty(t, expired(s, 6*time.Second))
	s.stops = 0
	assert.Len(t, expired(s, 6*time.Second), 1)
}

func TestADoomedSessionExpiresAtOnce(t *testing.T) {
	s := someSessions(t, Options{})
	sess := begin(s, 0)
	s.doom(sess.id+1, 1) // of nobody
	assert.Empty(t, expired(s, 1))
	s.doom(sess.id, 1)
	assert.Equal(t, []*session{sess}, expired(s, 1))
}

func TestASessionIsGivenToAClientThatKnowsItsPassword(t *testing.T) {
	s := someSessions(t, Options{})
	sess := begin(s, 0)
	ask := &connectCall{session: sess.id, passwd: sess.passwd, timeout: 6000}
	got, timeout := s.reattach(ask, 2, 3*time.Second)
	assert.Same(t, sess, got)
	assert.Equal(t, 6*time.Second, timeout)
	assert.Equal(t, 2, sess.owner)
	assert.Equal(t, 10*time.Second, s.expiryOf(sess))
	for name, bad := range map[string]*connectCall{
		"another password": {session: sess.id, passwd: make([]byte, 16)},
		"no such session":  {session: sess.id + 1, passwd: sess.passwd},
	} {
		got, _ = s.reattach(bad, 0, 0)
		assert.Nil(t, got, name)
	}
	expired(s, time.Hour)
	got, _ = s.reattach(ask, 0, time.Hour)
	assert.Nil(t, got, "one that is being closed")
}

func TestIDsAndPasswordsAreNotRepeated(t *testing.T) {
	s, rng := someSessions(t, Options{}), rand.New(rand.NewPCG(1, 2))
	ids, passwords := map[int64]bool{}, map[string]bool{}
	for i := range 100 {
		sess := s.create(&connectCall{}, "a", i%3, rng)
		ids[sess.id], passwords[string(sess.passwd)] = true, true
		assert.Equal(t, int64(i%3+1), sess.id>>56, "the member it was made at")
	}
	assert.Len(t, ids, 100)
	assert.Len(t, passwords, 100)
}

func TestANewLeaderGivesEachSessionItsFirstTimeoutAgain(t *testing.T) {
	s := someSessions(t, Options{})
	a, b := begin(s, 0), begin(s, 0)
	_, _ = s.reattach(&connectCall{session: a.id, passwd: a.passwd, timeout: 10000}, 0, 0)
	s.expire(5 * time.Second) // b is closed, and the leader ends before it can commit that
	s.startOver(map[int64]sign{a.id: {at: 7 * time.Second}}, 10*time.Second)
	assert.False(t, b.over())
	assert.Equal(t, term, a.timeout, "the timeout it was created with")
	assert.Equal(t, 12*time.Second, s.expiryOf(a), "by what the leader has heard itself")
	assert.Equal(t, 15*time.Second, s.expiryOf(b))
	assert.Equal(t, []*session{a}, expired(s, 12*time.Second))
	assert.Equal(t, []*session{b}, expired(s, 15*time.Second))
}

func TestAFormerLeadersSessionsAreItsOwn(t *testing.T) {
	s := someSessions(t, Options{})
	sess := begin(s, 0)
	f := &former{sessions: s.copied()}
	s.end(sess)
	e := &entry{connect: &connectCall{session: sess.id, passwd: sess.passwd, timeout: 6000}}
	f.takeBack(e, 4*time.Second)
	require.NotNil(t, e.sess)
	assert.Equal(t, 6*time.Second, e.timeout)
	assert.True(t, f.touch(sess.id, e.timeout, 5*time.Second))
	assert.False(t, f.touch(sess.id+1, e.timeout, 5*time.Second), "one that it does not know")
	late := &entry{connect: e.connect}
	f.takeBack(late, 12*time.Second)
	assert.True(t, late.decided)
	assert.Nil(t, late.sess, "over by its own clock")
	assert.False(t, f.touch(sess.id, e.timeout, 12*time.Second), "its requests are dropped, too")
}

func TestAFormerLeaderKeepsNoSessionThatItHadBegunToClose(t *testing.T) {
	s := someSessions(t, Options{})
	kept, closing := begin(s, 0), begin(s, 0)
	s.doom(closing.id, time.Second)
	s.expire(time.Second)
	require.True(t, closing.over())
	f := &former{sessions: s.copied()}
	for _, sess := range []*session{kept, closing} {
		e := &entry{connect: &connectCall{session: sess.id, passwd: sess.passwd, timeout: 6000}}
		f.takeBack(e, time.Second)
		assert.Equal(t, sess == kept, e.sess != nil)
		assert.Equal(t, sess == kept, f.touch(sess.id, term, time.Second))
	}
}

func TestTheExpiryQueueIsInOrder(t *testing.T) {
	var q expiryQueue
	assert.Equal(t, never, q.next())
	for _, at := range []time.Duration{5, 1, 4, 2, 3} {
		q.put(&session{wakeAt: at})
	}
	for want := time.Duration(1); want <= 5; want++ {
		_, due := q.takeDue(want - 1)
		assert.False(t, due)
		item, due := q.takeDue(want)
		assert.True(t, due)
		assert.Equal(t, want, item.at)
	}
	assert.Equal(t, never, q.next())
}
