// SPDX-License-Identifier: Apache-2.0

// Package period parses the values of --every and --once: when a job is done once.
package period

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // for containers that hold nothing but this command
	"unicode"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/cmd/zklock/internal/spell"
	"github.com/zklock-go/zklock/internal/escape"
	"github.com/zklock-go/zklock/slots"
)

// Choice is what a job is done once for: the period that contains a time, or a name.
type Choice struct {
	at     time.Time
	period time.Duration // zero if the slot has a name
	name   string
	layout string // of the name of a month or a year; empty for other slots
}

// Slot returns the slot of the lock at path.
func (c Choice) Slot(client *zklock.Client, path string) *slots.Slot {
	if c.period > 0 {
		return slots.At(client, path, c.at, c.period)
	}
	return slots.Named(client, path, c.name)
}

// longest is more than the longest period that has a name.
const longest = 367 * day

// End returns when the period is over: the first time that belongs to the next one. A name has no end, so it returns the zero time.
func (c Choice) End() time.Time {
	if c.period == 0 && c.layout == "" {
		return time.Time{}
	}
	own, later := c.slotAt(c.at), max(2*c.period+day, longest)
	seconds := sort.Search(int(later/time.Second), func(n int) bool { return c.slotAt(c.at.Add(time.Duration(n)*time.Second)) != own })
	end := c.at.Add(time.Duration(seconds) * time.Second)
	nanos := sort.Search(int(time.Second), func(n int) bool { return c.slotAt(end.Add(-time.Duration(n))) == own })
	return end.Add(1 - time.Duration(nanos))
}

// slotAt returns the name of the period of this kind that contains t.
func (c Choice) slotAt(t time.Time) string {
	if c.layout != "" {
		return t.Format(c.layout)
	}
	return slots.At(nil, "", t, c.period).String()
}

// lengths and dates are cron's words for periods, with or without its @. Months and years differ in length, so they become
// names.
var (
	lengths = map[string]time.Duration{"hourly": time.Hour, "daily": day, "midnight": day, "weekly": 7 * day}
	dates   = map[string]string{"monthly": "2006-01", "yearly": "2006", "annually": "2006"}
)

const day = 24 * time.Hour

// known lists the periods that Every accepts.
const known = "1s to 1h (300s, 5m), 2h, 3h, 4h, 6h, 8h, 12h, 24h, whole days (48h), or hourly, daily, weekly, monthly, yearly; a time zone may follow (24h@Europe/Berlin)"

// Every parses the value of --every as of now.
func Every(text string, now time.Time) (Choice, error) {
	word, zone, hasZone := split(text)
	length, err := time.ParseDuration(word)
	if lengths[word] > 0 {
		length, err = lengths[word], nil
	}
	layout := dates[word]
	switch {
	case strings.TrimSpace(text) == "":
		return Choice{}, errors.New("needs a period: " + known)
	case layout == "" && err != nil:
		return Choice{}, fmt.Errorf("%s is not a period%s: use %s", escape.Short(text, 40), meant(word), known)
	case layout == "" && length <= 0:
		return Choice{}, fmt.Errorf("%s is not positive: use %s", escape.Short(text, 40), known)
	case layout == "" && length < time.Second:
		return Choice{}, fmt.Errorf("%s is shorter than 1s: use %s", escape.Short(text, 40), known)
	case layout == "" && !isRegular(length):
		return Choice{}, fmt.Errorf("%s does not divide a day into whole hours: use %s", escape.Short(text, 40), known)
	case hasZone:
		place, err := time.LoadLocation(zone)
		if err != nil || zone == "" {
			return Choice{}, fmt.Errorf("%s: unknown time zone: write it as in %s@Europe/Berlin", escape.Short(text, 40), word)
		}
		now = now.In(place)
	case layout != "" || length > time.Hour:
		if err := checkOwnZone(os.Getenv("TZ")); err != nil {
			return Choice{}, fmt.Errorf("%s: %w: add a time zone, as in %s@Europe/Berlin", escape.Short(text, 40), err, word)
		}
	}
	if layout != "" {
		return Choice{at: now, name: now.Format(layout), layout: layout}, nil
	}
	return Choice{at: now, period: length}, nil
}

// split returns the word before and the time zone behind an @. It accepts cron's spelling: @daily, @every 5m.
func split(text string) (word, zone string, hasZone bool) {
	text, isCron := strings.CutPrefix(strings.TrimSpace(text), "@")
	word, zone, hasZone = strings.Cut(text, "@")
	word = strings.ToLower(strings.TrimSpace(word))
	if every, ok := strings.CutPrefix(word, "every"); ok && isCron {
		word = strings.TrimSpace(every)
	}
	return word, strings.TrimSpace(zone), hasZone
}

// isRegular reports whether every day begins with a slot of this length, and every slot with a whole hour. The library
// accepts other lengths above an hour, but their slots begin at other times each day.
func isRegular(length time.Duration) bool {
	return length <= time.Hour || length%day == 0 || day%length == 0 && length%time.Hour == 0
}

// checkOwnZone rejects a TZ that the time package cannot parse, such as CET-1CEST. The package silently uses UTC then, while
// cron and the command follow TZ.
func checkOwnZone(tz string) (err error) {
	name := strings.TrimPrefix(tz, ":")
	switch {
	case name == "" || runtime.GOOS == "windows": // Windows ignores TZ
		return nil
	case filepath.IsAbs(name):
		var data []byte
		data, err = os.ReadFile(name)
		if err == nil {
			_, err = time.LoadLocationFromTZData(name, data)
		}
	default:
		_, err = time.LoadLocation(name)
	}
	if err != nil {
		return fmt.Errorf("the host's time zone TZ=%s is not supported", escape.Short(tz, 40))
	}
	return nil
}

// Once parses the value of --once. A named slot is done once and for all, so Once rejects every text that is a period, or may
// be a mistyped one: such a job would never run again.
func Once(text string) (Choice, error) {
	name := strings.TrimSpace(text)
	switch {
	case name == "":
		return Choice{}, errors.New("needs a name")
	case number.MatchString(name) && !date.MatchString(name):
		return Choice{}, fmt.Errorf("%s is no name: begin with a letter (job-%s), or use --every for a period", escape.Short(name, 40), escape.Short(name, 40))
	case isPeriodic(name):
		return Choice{}, fmt.Errorf("%s looks like a period, and a name is done once and never again: use --every with a period, or a name with a date (%s-2026-11-22)", escape.Short(name, 40), escape.Short(name, 40))
	case unicode.IsLetter([]rune(name)[0]), date.MatchString(name):
		return Choice{name: name}, nil
	}
	return Choice{}, fmt.Errorf("%s is neither a date nor a name: begin with a letter, or use --every for a period", escape.Short(name, 40))
}

// date matches the names that need not begin with a letter: those that begin with a year or with at least six digits.
var date = regexp.MustCompile(`^((19|20)\d\d([-/._wW].*)?|\d{6,}([-/._T:].*)?)$`)

// number matches numbers and versions.
var number = regexp.MustCompile(`^\d+(\.\d+)*$`)

// words are words that people use for periods.
var words = []string{
	"every", "each", "minutely", "hourly", "hour", "hours", "daily", "day", "days", "today", "tonight", "nightly", "night", "midnight", "noon", "weekly", "week",
	"weekday", "weekdays", "weekend", "weekends", "fortnightly", "biweekly", "monthly", "month", "quarterly", "quarter", "yearly", "year", "annually", "annual",
	"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", "mon", "tue", "wed", "thu", "fri", "sat", "sun", "reboot",
}

// isPeriodic reports whether a name is a period, a word for one, or similar to the words that Every accepts.
func isPeriodic(name string) bool {
	word, _, _ := split(name)
	first, _, _ := strings.Cut(word, " ")
	if date.MatchString(name) {
		return false
	}
	_, err := time.ParseDuration(word)
	return err == nil || meantLength(word) > 0 || slices.Contains(words, word) || first == "every" || first == "each" || nearPeriod(word) != ""
}

// nearPeriod returns the period that word is probably a mistyped form of, or "".
func nearPeriod(word string) string {
	if strings.ContainsFunc(word, func(r rune) bool { return !unicode.IsLetter(r) }) {
		return ""
	}
	return spell.Nearest(word, []string{"hourly", "daily", "weekly", "monthly", "yearly", "annually", "midnight", "nightly", "quarterly"})
}

// meant returns a suggestion to append to the error about a word that is not a period.
func meant(word string) string {
	if length := meantLength(word); length > 0 && isRegular(length) {
		return fmt.Sprintf(", did you mean %s?", shortDuration(length))
	}
	return spell.Suggest(word, []string{"hourly", "daily", "weekly", "monthly", "yearly"})
}

// amount matches a number with an optional unit, as people write it.
var amount = regexp.MustCompile(`^\s*(\d+(?:[.,]\d+)?)\s*([a-zA-Z]*)\s*`)

// meantLength returns the length of the period that text probably means, or zero.
func meantLength(text string) (sum time.Duration) {
	text = strings.TrimSpace(strings.TrimPrefix(strings.ToLower(text), "every"))
	units := map[string]time.Duration{"": time.Second, "s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour, "w": 7 * 24 * time.Hour}
	for text != "" {
		parts := amount.FindStringSubmatch(text)
		if parts == nil {
			return 0
		}
		number, _ := strconv.ParseFloat(strings.Replace(parts[1], ",", ".", 1), 64)
		unit, ok := units[parts[2][:min(1, len(parts[2]))]]
		if !ok || strings.HasPrefix(parts[2], "mo") {
			return 0
		}
		sum += time.Duration(number * float64(unit))
		text = text[len(parts[0]):]
	}
	return sum
}

// shortDuration returns d.String() without trailing zero units.
func shortDuration(d time.Duration) string {
	text := d.String()
	if rest, ok := strings.CutSuffix(text, "m0s"); ok {
		text = rest + "m"
	}
	if rest, ok := strings.CutSuffix(text, "h0m"); ok {
		text = rest + "h"
	}
	return text
}
