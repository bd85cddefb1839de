// SPDX-License-Identifier: Apache-2.0

package guardian

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// at is a moment after the start of a test's clock.
func at(d time.Duration) time.Time { return time.Unix(0, 0).Add(d) }

//zklock:promise P2.10
func TestTheScheduleLeavesAHealthyCommandAlone(t *testing.T) {
	t.Parallel()
	const session = 10 * time.Second
	s := newSchedule(LongestGrace(session), session)
	for certain := session * 35 / 100; certain < session*95/100; certain += 100 * time.Millisecond {
		what, next := s.next(at(0), certain+time.Millisecond)
		assert.Equal(t, noAction, what, certain)
		assert.Positive(t, next)
	}
	assert.False(t, s.hasWarned())
}

//zklock:promise P2.10
func TestTheScheduleLeavesACommandAloneWhoseServerFails(t *testing.T) {
	t.Parallel()
	for session := time.Second; session <= time.Minute; session += time.Second {
		s := newSchedule(UsualGrace(session), session)
		assert.LessOrEqual(t, s.needed(), session/5, session)
		what, _ := s.next(at(0), session/5-renewal(session))
		assert.Equal(t, noAction, what, session)
	}
}

func TestTheScheduleWarnsWhenTheGraceIsLeftAndEndsWhenTheMarginIs(t *testing.T) {
	t.Parallel()
	s := newSchedule(2*time.Second, 10*time.Second) // margin: 0.5 s
	what, next := s.next(at(0), 2600*time.Millisecond)
	assert.Equal(t, noAction, what)
	assert.Equal(t, 100*time.Millisecond, next)
	what, _ = s.next(at(100*time.Millisecond), 2500*time.Millisecond)
	assert.Equal(t, warnCommand, what)
	what, next = s.next(at(1900*time.Millisecond), 700*time.Millisecond)
	assert.Equal(t, noAction, what)
	assert.Equal(t, 200*time.Millisecond, next)
	what, _ = s.next(at(2100*time.Millisecond), 500*time.Millisecond)
	assert.Equal(t, killCommand, what)
}

func TestTheScheduleGivesNoMoreThanTheGraceWhenTheLeaseIsRenewed(t *testing.T) {
	t.Parallel()
	s := newSchedule(2*time.Second, 10*time.Second)
	what, _ := s.next(at(0), 2500*time.Millisecond)
	assert.Equal(t, warnCommand, what)
	what, _ = s.next(at(1999*time.Millisecond), 9*time.Second)
	assert.Equal(t, noAction, what)
	what, _ = s.next(at(2000*time.Millisecond), 9*time.Second)
	assert.Equal(t, killCommand, what)
}

func TestTheScheduleEndsACommandWithoutTimeLeftAtOnce(t *testing.T) {
	t.Parallel()
	s := newSchedule(2*time.Second, 10*time.Second)
	what, _ := s.next(at(0), 0)
	assert.Equal(t, killCommand, what)
	assert.True(t, s.hasWarned())
}

func TestTheScheduleNeverSleepsLong(t *testing.T) {
	t.Parallel()
	for _, session := range []time.Duration{time.Second, 10 * time.Second, 40 * time.Second} {
		_, next := newSchedule(0, session).next(at(0), session)
		assert.LessOrEqual(t, next, time.Second)
		assert.LessOrEqual(t, next, session/20)
	}
}
