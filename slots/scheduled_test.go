// SPDX-License-Identifier: Apache-2.0

package slots

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
)

// sinceAsked counts from the time at which it is asked, in whole seconds, as @every of robfig/cron does.
type sinceAsked time.Duration

func (d sinceAsked) Next(now time.Time) time.Time {
	return now.Add(time.Duration(d) - time.Duration(now.Nanosecond()))
}

// daily is due once a day at an hour of a place, as in a crontab.
type daily struct {
	hour  int
	place *time.Location
}

func (d daily) Next(now time.Time) time.Time {
	now = now.In(d.place)
	for day := now.Day(); ; day++ {
		at := time.Date(now.Year(), now.Month(), day, d.hour, 30, 0, 0, d.place)
		if at.After(now) {
			return at
		}
	}
}

// At any time, a schedule that counts from when it is asked is found out, and no other schedule is taken for one.
func TestSchedulesThatCountFromWhenTheyAreAskedAreFoundOut(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for range 10_000 {
		now := begin.Add(time.Duration(rand.Int64N(int64(2 * 365 * 24 * time.Hour))))
		if rand.IntN(2) == 0 {
			now = now.Truncate(time.Second)
		}
		counts := sinceAsked(time.Duration(2+rand.IntN(100_000)) * time.Second)
		require.ErrorIs(t, checkSchedule(counts, now), zklock.ErrInvalid, "%v at %v", time.Duration(counts), now)
		period := time.Duration(1 + rand.Int64N(int64(48*time.Hour)))
		require.NoError(t, checkSchedule(Every(period), now), "%v at %v", period, now)
		at := daily{rand.IntN(24), berlin}
		require.NoError(t, checkSchedule(at, now), "%v at %v", at.hour, now)
	}
}

func TestEveryCountsFromTheClock(t *testing.T) {
	at := time.Date(2026, 11, 22, 12, 7, 30, 5, time.UTC)
	for period, want := range map[time.Duration]time.Time{
		15 * time.Minute:   time.Date(2026, 11, 22, 12, 15, 0, 0, time.UTC),
		time.Hour:          time.Date(2026, 11, 22, 13, 0, 0, 0, time.UTC),
		24 * time.Hour:     time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC),
		7 * 24 * time.Hour: time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC), // a Monday
	} {
		require.Equal(t, want, Every(period).Next(at))
		require.Equal(t, want.Add(period), Every(period).Next(want), "later than the time given")
	}
}

// A scheduler that does not run a job for a long time, or that asks for many times ahead, does not use more and more memory.
func TestPlannedTimesAreBounded(t *testing.T) {
	var p planned
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := Every(time.Minute)
	for range 1000 {
		p.add(s.Next(now), now)
		p.add(s.Next(now), now)
		p.add(time.Time{}, now)
		require.LessOrEqual(t, len(p.times), 2)
		now = s.Next(now)
	}
	due, ok := p.take(now)
	require.True(t, ok)
	require.Equal(t, now, due)
	_, ok = p.take(now)
	require.False(t, ok)
}
