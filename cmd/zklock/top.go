package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/operate"
)

const topAbout = `
Shows the busiest locks at PATH and below it (default: all), live: how many hold and
wait, for how long the lock is held, and by which owner. It watches, and asks for nothing
while nothing changes.

HELD is how long ago the lock was granted, as seen from here: ">" stands before it for a
holder that was there before zklock came. On what is no terminal, and with --json, it
prints a line of JSON for each change.`

func topCommand(std streams) *command {
	f := newFlags(std, "top", "[flags] [PATH]", topAbout)
	server := f.server().security(f)
	asJSON := f.Bool("json", false, "print a line of JSON for each change, also on a terminal")
	limit := f.Int("limit", 0, "show at most so many `locks` (default: what fits the terminal)")
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

// busy is a queue, and since when its holders were seen to hold.
type busy struct {
	queue *operate.Queue
	seen  time.Time
	held  map[string]grant // by node
}

// grant is when a contender was seen to have become a holder.
type grant struct {
	at      time.Time
	atLeast bool // it was one when we came
}

// lockTable is what top knows.
type lockTable struct {
	begun  time.Time
	queues map[string]*busy
}

func newLockTable() *lockTable { return &lockTable{time.Now(), map[string]*busy{}} }

// settling is how long after the begin a holder counts as one that was there before.
const settling = 2 * time.Second

// note takes a queue in.
func (t *lockTable) note(q *operate.Queue, now time.Time) *busy {
	before := t.queues[q.Path]
	next := &busy{queue: q, seen: now, held: map[string]grant{}}
	for _, who := range q.Contenders {
		if !who.Holds {
			continue
		}
		g := grant{at: now, atLeast: before == nil && now.Sub(t.begun) < settling}
		if before != nil {
			if known, ok := before.held[who.Node]; ok {
				g = known
			}
		}
		next.held[who.Node] = g
	}
	if t.queues[q.Path] = next; len(q.Contenders) == 0 {
		delete(t.queues, q.Path)
	}
	return next
}

// busiest returns the queues with most waiters first, and of those alike the one that is held longest.
func (t *lockTable) busiest(limit int) []*busy {
	var all []*busy
	for _, q := range t.queues {
		all = append(all, q)
	}
	slices.SortFunc(all, func(x, y *busy) int {
		if d := y.waiting() - x.waiting(); d != 0 {
			return d
		}
		if d := x.longest().at.Compare(y.longest().at); d != 0 {
			return d
		}
		return strings.Compare(x.queue.Path, y.queue.Path)
	})
	return all[:min(len(all), limit)]
}

func (b *busy) waiting() int { return len(b.queue.Contenders) - holders(b.queue) }

// longest returns the first grant of those that hold now.
func (b *busy) longest() grant {
	var first grant
	for _, g := range b.held {
		if first.at.IsZero() || g.at.Before(first.at) {
			first = g
		}
	}
	return first
}

func (b *busy) holder() (zklock.Contender, bool) {
	i := slices.IndexFunc(b.queue.Contenders, func(who zklock.Contender) bool { return who.Holds })
	if i < 0 {
		return zklock.Contender{}, false
	}
	return b.queue.Contenders[i], true
}

func (b *busy) row(now time.Time) []string {
	held, owner := "-", "-"
	if who, ok := b.holder(); ok {
		g := b.longest()
		held, owner = duration(now.Sub(g.at)), ownerOf(who)
		if g.atLeast {
			held = ">" + held
		}
		if who.Revoked {
			owner = "asked: " + owner
		}
	}
	return []string{fmt.Sprint(b.waiting()), fmt.Sprint(holders(b.queue)), held, shown(b.queue.Path), owner}
}

// lines returns what the screen shows.
func (t *lockTable) lines(path string, now time.Time, columns, limit int) []string {
	waiting := 0
	for _, q := range t.queues {
		waiting += q.waiting()
	}
	title := fmt.Sprintf("%s  %s: %d locks in use, %d waiting", now.Format(time.TimeOnly), shown(path), len(t.queues), waiting)
	g := grid{head: []string{"WAIT", "HOLD", "HELD", "LOCK", "HOLDER"}, cut: "HOLDER", columns: columns}
	for _, q := range t.busiest(limit) {
		row := q.row(now)
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
	table := newLockTable()
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case q, ok := <-changes:
			if !ok {
				return unlessEnded(ctx, failed)
			}
			table.note(q, time.Now())
		case now := <-tick.C:
			columns, rows := s.size()
			most := max(1, rows-3)
			if limit > 0 {
				most = min(most, limit)
			}
			if err := s.draw(table.lines(path, now, columns, most)); err != nil {
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
	table := newLockTable()
	for q, err := range operate.Watch(ctx, client, path) {
		if err != nil {
			return unlessEnded(ctx, err)
		}
		if err := writeJSON(std.out, newTopJSON(table.note(q, time.Now())), false); err != nil {
			return err
		}
	}
	return nil
}

func newTopJSON(b *busy) topJSON {
	out := topJSON{
		Time: b.seen.UTC(), Path: b.queue.Path, Held: holders(b.queue), Waiting: b.waiting(),
		Permits: b.queue.Permits, Holders: []contenderJSON{},
	}
	if g := b.longest(); !g.at.IsZero() {
		out.HeldFor, out.AtLeast = b.seen.Sub(g.at).Seconds(), g.atLeast
	}
	for _, who := range b.queue.Contenders {
		c := newContenderJSON(who)
		if who.Holds {
			out.Holders = append(out.Holders, c)
		} else if out.Next == nil {
			out.Next = &c
		}
	}
	return out
}
