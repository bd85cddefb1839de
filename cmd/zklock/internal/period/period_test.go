// SPDX-License-Identifier: Apache-2.0

package period

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zktest"
)

// A text that is not understood is refused, with the list of what is.
func TestInvalidPeriodsAreRefused(t *testing.T) {
	t.Parallel()
	for text, advice := range map[string]string{
		"1d": "did you mean 24h?", "1w": "did you mean 168h?", "5min": "mean 5m?", "90sec": "mean 1m30s?", "1h30": "is not a period", "0.5d": "mean 12h?", "5": "mean 5s?",
		"300": "mean 5m?", "3600": "mean 1h?", "86400": "mean 24h?", "1440min": "mean 24h?", "5 m": "mean 5m?", "1h 30m": "is not a period: use 1s to 1h", "1d12h": "is not a period",
		"5m/host": "is not a period", "every 5m": "mean 5m?", "2 months": "is not a period", "@reboot": "is not a period", "": "needs a period", " ": "needs a period",
		"-5m": "is not positive", "0s": "is not positive", "5m@Nowhere": "unknown time zone", "daily@": "unknown time zone",
		"nightly": "hourly, daily, weekly, monthly, yearly", "dayly": `did you mean "daily"?`, "day": "is not a period", "weekdays": "is not a period", "quarterly": "is not a period", "tuesday": "is not a period",
		"2026-11-22": "is not a period", "report": "is not a period",
		"90m": "does not divide a day into whole hours", "5h": "does not divide", "36h": "does not divide", "61m": "does not divide", "10000h": "does not divide",
	} {
		_, err := Every(text, time.Now())
		assert.ErrorContains(t, err, advice, text)
	}
	for _, text := range []string{"5m", "7m", "1h", "2h", "12h", "24h", "48h", "9600h", "Daily", "@hourly", "annually"} {
		_, err := Every(text, time.Now())
		assert.NoError(t, err, text)
	}
}

// A name is a slot forever: a job whose name was meant as a period would run once and never again.
//
//zklock:promise P10.9
func TestNoTextIsBothAPeriodAndAName(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"nightly", "day", "dayly", "weekdays", "quarterly", "tuesday", "daily", "Hourly", "@daily", "daily@Europe/Berlin", "24h", "5m", "5min", "1d", "300", "every 5m", "Every day",
		"montly", "wekly", "mon", "@reboot", "", " ", "5/7", "_x", "-5m", "@every 5m",
	} {
		_, err := Once(text)
		assert.Error(t, err, text)
	}
	_, err := Once("nightly")
	assert.ErrorContains(t, err, "nightly looks like a period, and a name is done once and never again: use --every")
	for _, name := range []string{"nightly-1", "2026-11-22", "20261122", "20261122T0500", "2026w47", "2026", "1795286400", "v1.2", "report-5", "a", "die Nacht", "ärger", "job@host", "everything", "apply"} {
		choice, err := Once(" " + name + "\n")
		require.NoError(t, err, name)
		assert.Equal(t, Choice{name: name}, choice)
		_, err = Every(name, time.Now())
		assert.Error(t, err, name)
	}
}

// Go reads names of zones and takes UTC for what the C library also reads.
func TestADayIsNotCountedInAnotherZoneThanTheHosts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "zone")
	require.NoError(t, os.WriteFile(file, []byte("no zone"), 0o600))
	for _, tz := range []string{"CET-1CEST,M3.5.0,M10.5.0/3", "Nowhere/Town", file, file + "none"} {
		t.Setenv("TZ", tz)
		for _, text := range []string{"24h", "daily", "@weekly", "monthly"} {
			_, err := Every(text, time.Now())
			assert.ErrorContains(t, err, "is not supported", "%s %s", tz, text)
		}
		for _, text := range []string{"1h", "hourly", "daily@Europe/Berlin", "monthly@UTC"} {
			_, err := Every(text, time.Now())
			assert.NoError(t, err, "%s %s", tz, text)
		}
	}
	for _, tz := range []string{"", "UTC", "Europe/Berlin", ":Europe/Berlin"} {
		t.Setenv("TZ", tz)
		_, err := Every("daily", time.Now())
		assert.NoError(t, err, tz)
	}
}

//zklock:promise P10.9
func TestAPeriodMeansWhatCronMeans(t *testing.T) {
	t.Parallel()
	client, err := zklock.Connect(t.Context(), zktest.Run(t).Addrs(), nil)
	require.NoError(t, err)
	defer client.Close()
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	// The day on which clocks are put back has 25 hours, of which two are called 2:30.
	now := time.Date(2026, 10, 24, 22, 30, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"5m":                    "2026-10-24T22:30:00.000000000Z",
		" 5m ":                  "2026-10-24T22:30:00.000000000Z",
		"@every 5m":             "2026-10-24T22:30:00.000000000Z",
		"hourly":                "2026-10-24T22:00:00.000000000Z",
		"24h":                   "2026-10-24T00:00:00",
		"daily":                 "2026-10-24T00:00:00",
		"24h@Europe/Berlin":     "2026-10-25T00:00:00",
		"@Daily@Europe/Berlin":  "2026-10-25T00:00:00",
		"weekly @Europe/Berlin": "2026-10-19T00:00:00",
		"@monthly":              "2026-10",
		"yearly":                "2026",
	} {
		choice, err := Every(text, now)
		require.NoError(t, err, text)
		assert.Equal(t, want, choice.Slot(client, "/l").String(), text)
	}
	days := map[string]int{}
	for at := time.Date(2026, 10, 24, 12, 0, 0, 0, berlin); at.Before(time.Date(2026, 10, 27, 0, 0, 0, 0, berlin)); at = at.Add(time.Hour) {
		choice, err := Every("24h@Europe/Berlin", at.UTC())
		require.NoError(t, err)
		days[choice.Slot(client, "/l").String()]++
	}
	assert.Equal(t, map[string]int{"2026-10-24T00:00:00": 12, "2026-10-25T00:00:00": 25, "2026-10-26T00:00:00": 24}, days)
}

// A period ends when the next one begins, even if it has 23 or 25 hours or is a month.
//
//zklock:promise P10.12
func TestAPeriodEndsWhenTheNextOneBegins(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	for _, c := range []struct {
		every   string
		at, end time.Time
	}{
		{"1s", time.Date(2026, 11, 22, 12, 7, 30, 5, time.UTC), time.Date(2026, 11, 22, 12, 7, 31, 0, time.UTC)},
		{"5m", time.Date(2026, 11, 22, 12, 7, 30, 5, time.UTC), time.Date(2026, 11, 22, 12, 10, 0, 0, time.UTC)},
		{"5m", time.Date(2026, 11, 22, 12, 10, 0, 0, time.UTC), time.Date(2026, 11, 22, 12, 15, 0, 0, time.UTC)},
		{"hourly", time.Date(2026, 11, 22, 12, 59, 59, 999, time.UTC), time.Date(2026, 11, 22, 13, 0, 0, 0, time.UTC)},
		{"daily@Europe/Berlin", time.Date(2026, 10, 25, 1, 0, 0, 0, berlin), time.Date(2026, 10, 26, 0, 0, 0, 0, berlin)},
		{"daily@Europe/Berlin", time.Date(2026, 3, 29, 1, 0, 0, 0, berlin), time.Date(2026, 3, 30, 0, 0, 0, 0, berlin)},
		{"weekly@Europe/Berlin", time.Date(2026, 10, 25, 1, 0, 0, 0, berlin), time.Date(2026, 10, 26, 0, 0, 0, 0, berlin)},
		{"monthly@Europe/Berlin", time.Date(2026, 2, 3, 4, 5, 6, 7, berlin), time.Date(2026, 3, 1, 0, 0, 0, 0, berlin)},
		{"yearly@Europe/Berlin", time.Date(2028, 1, 1, 0, 0, 0, 0, berlin), time.Date(2029, 1, 1, 0, 0, 0, 0, berlin)},
		{"9600h@Europe/Berlin", time.Date(2026, 2, 3, 4, 5, 6, 7, berlin), time.Time{}}, // at some midnight
	} {
		choice, err := Every(c.every, c.at)
		require.NoError(t, err)
		end := choice.End()
		if !c.end.IsZero() {
			assert.True(t, c.end.Equal(end), "%s at %v: %v", c.every, c.at, end)
		}
		own := choice.slotAt(c.at)
		assert.Equal(t, own, choice.slotAt(end.Add(-1)))
		assert.NotEqual(t, own, choice.slotAt(end))
	}
	name, err := Once("release-7")
	require.NoError(t, err)
	assert.True(t, name.End().IsZero())
}
