// SPDX-License-Identifier: Apache-2.0

package show

import (
	"fmt"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/escape"
	"github.com/zklock-go/zklock/operate"
)

// Names and data of contenders can come from anyone, so none of it is printed unescaped.

// Text returns text from others in a form that is safe to print on a terminal.
func Text(text string) string { return escape.Short(text, 512) }

// Base returns the name of a contender's node.
func Base(who zklock.Contender) string { return path.Base(who.Node) }

// Ending returns the end of a node's name, without the prefix that only makes it unique.
func Ending(name string) string {
	for _, infix := range []string{"lock-", "latch-", "lease-", "__WRIT__", "__READ__", "__lock__", "__rlock__"} {
		if i := strings.LastIndex(name, infix); i >= 0 {
			return name[i:]
		}
	}
	return name
}

func holders(q *operate.Queue) int {
	n := 0
	for _, who := range q.Contenders {
		if who.Holds {
			n++
		}
	}
	return n
}

// Count returns a number with its noun.
func Count(n int, one, many string) string {
	if n == 1 {
		many = one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func stateOf(who zklock.Contender) string {
	state := "waits"
	if who.Holds {
		state = "HOLDS"
	}
	if who.Revoked {
		state += ", asked"
	}
	return state
}

// ago returns how long ago since was. It compares the server's clock with ours, so it never shows a negative time.
func ago(now, since time.Time) string { return duration(now.Sub(since)) }

// duration formats d with at most two units: 3d4h, 5m10s, 12s.
func duration(d time.Duration) string {
	d = max(0, d).Round(time.Second)
	days, rest := d/(24*time.Hour), d%(24*time.Hour)
	switch {
	case days > 0:
		return fmt.Sprintf("%dd%dh", days, rest/time.Hour)
	case d >= time.Hour:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return d.String()
}

// Owner returns a contender's label, host and process, according to its own data.
func Owner(who zklock.Contender) string {
	var parts []string
	if who.Label != "" {
		parts = append(parts, escape.Short(who.Label, 60))
	}
	switch {
	case who.Host != "" && who.PID != 0:
		parts = append(parts, fmt.Sprintf("%s:%d", escape.Short(who.Host, 64), who.PID))
	case who.Anonymous:
	case len(who.Data) > 0 && utf8.Valid(who.Data):
		parts = append(parts, escape.Short(string(who.Data), 60))
	}
	if who.Client != "" && who.Client != operate.ClientZklock {
		parts = append(parts, "("+who.Client+")")
	}
	if who.Cohort {
		parts = append(parts, "(cohort)")
	}
	return strings.Join(parts, " ")
}

// Value returns a leader's value as one line of printable text.
func Value(leader zklock.Contender) string { return escape.Short(string(leader.Data), 4<<10) }
