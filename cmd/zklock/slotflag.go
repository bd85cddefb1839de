package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // a container of nothing but this command knows time zones, too
	"unicode"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/plain"
	"github.com/zklock-go/zklock/slots"
)

// slotChoice is what --once says: the period that a time falls into, or a name.
type slotChoice struct {
	at     time.Time
	period time.Duration // zero for a name
	name   string
}

func (c slotChoice) slot(client *zklock.Client, path string) *slots.Slot {
	if c.period > 0 {
		return slots.At(client, path, c.at, c.period)
	}
	return slots.Named(client, path, c.name)
}

// Words for periods, as cron has them, with and without its @. Months and years differ in length and are names.
var (
	periods = map[string]time.Duration{"hourly": time.Hour, "daily": 24 * time.Hour, "midnight": 24 * time.Hour, "weekly": 7 * 24 * time.Hour}
	dates   = map[string]string{"monthly": "2006-01", "yearly": "2006", "annually": "2006"}
)

// parseSlot reads the value of --once at a time.
func parseSlot(text string, now time.Time) (slotChoice, error) {
	text = strings.TrimSpace(text)
	word, isCron := strings.CutPrefix(text, "@")
	word, zone, hasZone := strings.Cut(word, "@")
	word = strings.ToLower(strings.TrimSpace(word))
	if every, ok := strings.CutPrefix(word, "every"); ok && isCron {
		word = strings.TrimSpace(every)
	}
	period, err := time.ParseDuration(word)
	isPeriod := err == nil
	if known := periods[word]; known > 0 {
		period, isPeriod = known, true
	}
	layout := dates[word]
	switch {
	case !isPeriod && layout == "":
		return slotChoice{name: text}, checkSlotName(text)
	case isPeriod && period <= 0:
		return slotChoice{}, fmt.Errorf("%v is not a period", period)
	case hasZone:
		place, err := time.LoadLocation(strings.TrimSpace(zone))
		if err != nil {
			return slotChoice{}, fmt.Errorf("%s: there is no such time zone: write it as in %s@Europe/Berlin", plain.Short(text, 40), word)
		}
		now = now.In(place)
	case layout != "" || period > time.Hour:
		if err := checkOwnZone(os.Getenv("TZ")); err != nil {
			return slotChoice{}, fmt.Errorf("%s: %w: write a place, as in %s@Europe/Berlin", plain.Short(text, 40), err, word)
		}
	}
	if layout != "" {
		return slotChoice{name: now.Format(layout)}, nil
	}
	return slotChoice{at: now, period: period}, nil
}

// checkOwnZone refuses a TZ that the time package does not read, such as CET-1CEST: it counts in UTC then and tells nobody,
// while cron and the command follow TZ.
func checkOwnZone(tz string) (err error) {
	name := strings.TrimPrefix(tz, ":")
	switch {
	case name == "" || runtime.GOOS == "windows": // where TZ means nothing
		return nil
	case filepath.IsAbs(name):
		var data []byte
		if data, err = os.ReadFile(name); err == nil {
			_, err = time.LoadLocationFromTZData(name, data)
		}
	default:
		_, err = time.LoadLocation(name)
	}
	if err != nil {
		return fmt.Errorf("the host's time zone TZ=%s is not known here", plain.Short(tz, 40))
	}
	return nil
}

// date is how names may begin that do not begin with a letter: with a year, or a number of six digits at least.
var date = regexp.MustCompile(`^((19|20)\d\d([-/._wW].*)?|\d{6,}([-/._T:].*)?)$`)

// checkSlotName refuses a name that may be a period by mistake: a name is done once for ever.
func checkSlotName(name string) error {
	first, _, _ := strings.Cut(name, " ")
	switch {
	case name == "":
		return fmt.Errorf("wants a slot")
	case unicode.IsLetter([]rune(name)[0]) && !strings.EqualFold(first, "every"), date.MatchString(name):
		return nil
	}
	advice := ""
	if meant := meantPeriod(name); meant > 0 {
		advice = fmt.Sprintf("write %s, or ", shortDuration(meant))
	}
	return fmt.Errorf("%s looks like a period and is none: %sa number and h, m or s (300s, 5m, 1h30m, 24h), hourly, daily, weekly, or one of these with a place (24h@Europe/Berlin); a name begins with a letter, or is a date", plain.Short(name, 20), advice)
}

// amount is a number with a unit, as people write it.
var amount = regexp.MustCompile(`^\s*(\d+(?:[.,]\d+)?)\s*([a-zA-Z]*)\s*`)

// meantPeriod returns the period that a text probably means, zero if there is none.
func meantPeriod(text string) (sum time.Duration) {
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

// shortDuration is d.String() without units of which there are none at the end.
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
