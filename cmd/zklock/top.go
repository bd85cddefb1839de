package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/cmd/zklock/internal/locks"
	"github.com/zklock-go/zklock/operate"
)

const topAbout = `
Shows the busiest locks at PATH and below it (default: all), live: how many hold and
wait, for how long the lock is held, and by which owner. It watches: while nothing
changes, it only asks, once in a session timeout, whether each directory is still as it
was seen.

HELD is how long ago the lock was granted, as seen from here: ">" stands before it for a
holder that was there before zklock came. On what is no terminal, and with --json, it
prints a line of JSON for each change.`

func topCommand(std streams) *command {
	f := newFlags(std, "top", "[flags] [PATH]", topAbout)
	server := f.server().security(f)
	asJSON := f.Bool("json", false, "print a line of JSON for each change, also on a terminal")
	limit := f.Int("limit", 0, "on a terminal, show at most so many `locks` (default: what fits it)")
	return &command{f, func(args []string) error {
		positional, err := f.parse(args, 0, 1)
		switch {
		case err != nil:
			return err
		case *limit < 0:
			return misuse("top: --limit %d is negative", *limit)
		}
		path := "/"
		if len(positional) == 1 {
			path = positional[0]
		}
		return server.use(func(ctx context.Context, client *zklock.Client) error {
			if *asJSON || !isDisplay(std.out) {
				return serverError(topLines(ctx, client, path, std))
			}
			return serverError(topDisplay(ctx, client, path, *limit, std))
		})
	}}
}

// row returns what the screen shows of a lock.
func row(l *locks.Lock, now time.Time) []string {
	held, owner := "-", "-"
	if who, ok := l.Holder(); ok {
		g := l.Longest()
		held, owner = duration(now.Sub(g.At)), ownerOf(who)
		if g.AtLeast {
			held = ">" + held
		}
		if who.Revoked {
			owner = "asked: " + owner
		}
	}
	return []string{fmt.Sprint(l.Waiting()), fmt.Sprint(l.Holding()), held, shown(l.Queue.Path), owner}
}

// topScreen returns what the screen shows.
func topScreen(t *locks.Table, path string, now time.Time, columns, limit int) []string {
	title := fmt.Sprintf("%s  %s: %d locks in use, %d waiting", now.Format(time.TimeOnly), shown(path), t.Len(), t.Waiting())
	g := grid{head: []string{"WAIT", "HOLD", "HELD", "LOCK", "HOLDER"}, cut: "HOLDER", columns: columns}
	busiest := t.Busiest()
	for _, l := range busiest[:min(len(busiest), limit)] {
		row := row(l, now)
		row[3] = shortenLeft(row[3], columns/2)
		g.rows = append(g.rows, row)
	}
	var text bytes.Buffer
	g.print(&text)
	lines := append([]string{title}, strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")...)
	for i, line := range lines {
		lines[i] = shorten(line, columns)
	}
	return lines
}

func topDisplay(ctx context.Context, client *zklock.Client, path string, limit int, std streams) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changes := make(chan *operate.Queue)
	var failed error
	// Owned by this call; ends with ctx, or with the first error, and closes changes.
	go func() {
		defer close(changes)
		for q, err := range operate.Watch(ctx, client, path) {
			if err != nil {
				failed = err
				return
			}
			changes <- q
		}
	}()
	defer func() {
		cancel()
		for range changes { // until the goroutine has ended
		}
	}()
	s := newDisplay(std.out)
	defer s.close()
	table := locks.NewTable(time.Now())
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case q, ok := <-changes:
			if !ok {
				return unlessEnded(ctx, failed)
			}
			table.Update(q, time.Now())
		case now := <-tick.C:
			columns, rows := s.size()
			most := max(1, rows-3)
			if limit > 0 {
				most = min(most, limit)
			}
			if err := s.draw(topScreen(table, path, now, columns, most)); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// unlessEnded returns err, or nil if somebody has ended the command.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// topJSON is a line of top: the names are part of the command's contract.
type topJSON struct {
	Time    time.Time       `json:"time"`
	Path    string          `json:"path"`
	Held    int             `json:"held"`
	Waiting int             `json:"waiting"`
	Permits int             `json:"permits,omitempty"`
	HeldFor float64         `json:"held_for"` // seconds, of the holder that has held longest; zero if nobody holds
	AtLeast bool            `json:"at_least,omitempty"`
	Holders []contenderJSON `json:"holders"`
	Next    *contenderJSON  `json:"next,omitempty"` // the first waiter
}

func topLines(ctx context.Context, client *zklock.Client, path string, std streams) error {
	table := locks.NewTable(time.Now())
	for q, err := range operate.Watch(ctx, client, path) {
		if err != nil {
			return unlessEnded(ctx, err)
		}
		if err := writeJSON(std.out, newTopJSON(table.Update(q, time.Now())), false); err != nil {
			return err
		}
	}
	return nil
}

func newTopJSON(l *locks.Lock) topJSON {
	out := topJSON{
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
