// SPDX-License-Identifier: Apache-2.0

package show

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/cmd/zklock/internal/cli"
	"github.com/zklock-go/zklock/cmd/zklock/internal/locks"
	"github.com/zklock-go/zklock/cmd/zklock/internal/servers"
	"github.com/zklock-go/zklock/cmd/zklock/internal/terminal"
	"github.com/zklock-go/zklock/operate"
)

// row returns the columns of a lock's line.
func row(l *locks.Lock, now time.Time) []string {
	held, owner := "-", "-"
	if who, ok := l.Holder(); ok {
		g := l.Longest()
		held, owner = duration(now.Sub(g.At)), Owner(who)
		if g.AtLeast {
			held = ">" + held
		}
		if who.Revoked {
			owner = "asked: " + owner
		}
	}
	return []string{fmt.Sprint(l.Waiting()), fmt.Sprint(l.Holding()), held, Text(l.Queue.Path), owner}
}

// topScreen returns the lines of the screen.
func topScreen(t *locks.Table, path string, st status, now time.Time, columns, limit int) []string {
	now = st.now(now)
	title := fmt.Sprintf("%s  %s: %s in use, %d waiting", now.Format(time.TimeOnly), Text(path), Count(t.Len(), "lock", "locks"), t.Waiting())
	g := grid{head: []string{"WAIT", "HOLD", "HELD", "LOCK", "HOLDER"}, cut: "HOLDER", columns: columns}
	busiest := t.Busiest()
	for _, l := range busiest[:min(len(busiest), limit)] {
		row := row(l, now)
		row[3] = terminal.ShortenLeft(row[3], columns/2)
		g.rows = append(g.rows, row)
	}
	var text bytes.Buffer
	g.print(&text)
	lines := append(append([]string{title}, st.lines()...), strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")...)
	for i, line := range lines {
		lines[i] = terminal.Shorten(line, columns)
	}
	return lines
}

// Screen shows the busiest locks at and below path on a terminal until ctx is done: at most limit of them, or as many as fit
// if limit is zero.
func Screen(ctx context.Context, client *zklock.Client, path string, limit int, contact *servers.Contact, std cli.Streams) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changes, gaps := make(chan *operate.Queue), make(chan operate.Incomplete)
	var failed error
	// Owned by this call; ends with ctx, or with the first error, and closes changes.
	go func() {
		defer close(changes)
		for q, err := range operate.Watch(ctx, client, path) {
			var missing *operate.Incomplete
			switch {
			case errors.As(err, &missing):
				gaps <- *missing
			case err != nil:
				failed = err
				return
			default:
				changes <- q
			}
		}
	}()
	defer func() {
		cancel()
		for open := true; open; { // until the goroutine has ended
			select {
			case _, open = <-changes:
			case <-gaps:
			}
		}
	}()
	s := terminal.New(std.Out)
	defer s.Close()
	table := locks.NewTable(time.Now())
	var st status
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case q, ok := <-changes:
			if !ok {
				return unlessEnded(ctx, failed)
			}
			table.Update(q, time.Now())
		case st.gaps = <-gaps:
		case now := <-tick.C:
			columns, rows := s.Size()
			st.silentSince = contact.SilentSince()
			most := max(1, rows-3-len(st.lines()))
			if limit > 0 {
				most = min(most, limit)
			}
			if err := s.Draw(topScreen(table, path, st, now, columns, most)); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// unlessEnded returns err, or nil if the user ended the command.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// TopJSON is a line that top prints. The field names are part of the command's contract.
type TopJSON struct {
	Time    time.Time       `json:"time"`
	Path    string          `json:"path"`
	Held    int             `json:"held"`
	Waiting int             `json:"waiting"`
	Permits int             `json:"permits,omitempty"`
	HeldFor float64         `json:"held_for"` // in seconds, by the longest holder; zero if there is none
	AtLeast bool            `json:"at_least,omitempty"`
	Holders []contenderJSON `json:"holders"`
	Next    *contenderJSON  `json:"next,omitempty"` // the first waiter
}

// Lines prints a line of JSON for each change at and below path until ctx is done.
func Lines(ctx context.Context, client *zklock.Client, path string, contact *servers.Contact, std cli.Streams) error {
	table := locks.NewTable(time.Now())
	return Follow(ctx, client, path, contact, std, func(q *operate.Queue, gaps *operate.Incomplete) error {
		if gaps != nil {
			return SayGaps(std.Err, gaps)
		}
		return JSON(std.Out, newTopJSON(table.Update(q, time.Now())), false)
	})
}

func newTopJSON(l *locks.Lock) TopJSON {
	out := TopJSON{
		Time: l.Seen.UTC(), Path: l.Queue.Path, Held: l.Holding(), Waiting: l.Waiting(),
		Permits: l.Queue.Permits, Holders: []contenderJSON{},
	}
	if g := l.Longest(); !g.At.IsZero() {
		out.HeldFor, out.AtLeast = l.Seen.Sub(g.At).Seconds(), g.AtLeast
	}
	for _, who := range l.Queue.Contenders {
		c := newContenderJSON(who)
		if who.Holds {
			out.Holders = append(out.Holders, c)
		} else if out.Next == nil {
			out.Next = &c
		}
	}
	return out
}
