package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// at is a moment after the start of a test's clock.
func at(d time.Duration) time.Time { return time.Unix(0, 0).Add(d) }

func TestLeashLeavesAHealthyCommandAlone(t *testing.T) {
	const session = 10 * time.Second
	l := newLeash(longestGrace(session), session)
	for certain := session * 35 / 100; certain < session*95/100; certain += 100 * time.Millisecond {
		what, next := l.pull(at(0), certain+time.Millisecond)
		assert.Equal(t, leave, what, certain)
		assert.Positive(t, next)
	}
	assert.False(t, l.pulled())
}

func TestLeashWarnsWhenTheGraceIsLeftAndEndsWhenTheMarginIs(t *testing.T) {
	l := newLeash(2*time.Second, 10*time.Second) // margin: 0.5 s
	what, next := l.pull(at(0), 2600*time.Millisecond)
	assert.Equal(t, leave, what)
	assert.Equal(t, 100*time.Millisecond, next)
	what, _ = l.pull(at(100*time.Millisecond), 2500*time.Millisecond)
	assert.Equal(t, warn, what)
	what, next = l.pull(at(1900*time.Millisecond), 700*time.Millisecond)
	assert.Equal(t, leave, what)
	assert.Equal(t, 200*time.Millisecond, next)
	what, _ = l.pull(at(2100*time.Millisecond), 500*time.Millisecond)
	assert.Equal(t, end, what)
}

func TestLeashGivesNoMoreThanTheGraceWhenTheLockComesBackToLife(t *testing.T) {
	l := newLeash(2*time.Second, 10*time.Second)
	what, _ := l.pull(at(0), 2500*time.Millisecond)
	assert.Equal(t, warn, what)
	what, _ = l.pull(at(1999*time.Millisecond), 9*time.Second)
	assert.Equal(t, leave, what)
	what, _ = l.pull(at(2000*time.Millisecond), 9*time.Second)
	assert.Equal(t, end, what)
}

func TestLeashEndsAtOnceWhatHasNoTimeLeft(t *testing.T) {
	l := newLeash(2*time.Second, 10*time.Second)
	what, _ := l.pull(at(0), 0)
	assert.Equal(t, end, what)
	assert.True(t, l.pulled())
}

func TestLeashNeverSleepsLong(t *testing.T) {
	for _, session := range []time.Duration{time.Second, 10 * time.Second, 40 * time.Second} {
		_, next := newLeash(0, session).pull(at(0), session)
		assert.LessOrEqual(t, next, time.Second)
		assert.LessOrEqual(t, next, session/20)
	}
}
