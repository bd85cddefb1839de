package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/zklock-go/zklock"
)

const lsAbout = `
Lists the contenders of the lock or election at PATH, holders first, then those who wait
in the order of their turns, whatever library they use. It changes nothing.`

func runLs(args []string, std streams) error {
	f := newFlags(std, "ls", "[flags] PATH", lsAbout)
	server := f.server()
	asJSON := f.Bool("json", false, "print JSON: one object, with --watch one a line")
	watch := f.Bool("watch", false, "print again whenever something has changed, until Ctrl-C")
	every := f.Duration("every", time.Second, "how often --watch looks")
	positional, err := f.parse(args, 1, 1)
	if err != nil {
		return err
	}
	if *every <= 0 {
		return misuse("ls: --every must be positive")
	}
	ctx, stop := untilInterrupted()
	defer stop()
	client, err := server.connect(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	show := printQueue
	if *asJSON {
		show = printQueueJSON(!*watch)
	}
	if *watch {
		return watchQueue(ctx, client, positional[0], *every, std.out, show)
	}
	q, err := client.Inspect(ctx, positional[0])
	if err != nil {
		return invalidIsMisuse(err)
	}
	return show(std.out, q, time.Now())
}

// invalidIsMisuse gives an error of the library about what the user has typed the code for that.
func invalidIsMisuse(err error) error {
	if errors.Is(err, zklock.ErrInvalid) {
		return exit{codeUsage, err}
	}
	return err
}

type showQueue func(w io.Writer, q *zklock.Queue, now time.Time) error

// watchQueue shows the queue again whenever it is another than before.
func watchQueue(ctx context.Context, client *zklock.Client, path string, every time.Duration, w io.Writer, show showQueue) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	var before []byte
	for {
		q, err := client.Inspect(ctx, path)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return invalidIsMisuse(err)
		}
		now, err := json.Marshal(q)
		if err != nil {
			return err
		}
		if !bytes.Equal(now, before) {
			before = now
			if err := show(w, q, time.Now()); err != nil {
				return err
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func printQueue(w io.Writer, q *zklock.Queue, now time.Time) error {
	holders := 0
	for _, who := range q.Contenders {
		if who.Holds {
			holders++
		}
	}
	fmt.Fprintf(w, "%s  %s: %d held, %d waiting\n", now.Format(time.TimeOnly), q.Path, holders, len(q.Contenders)-holders)
	if len(q.Contenders) == 0 {
		return nil
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "STATE\tKIND\tSINCE\tOWNER\tSESSION\tTOKEN\tNODE")
	for _, who := range q.Contenders {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t0x%x\t%d\t%s\n", stateOf(who), who.Kind, ago(now, who.Since), ownerOf(who), who.Session, who.Token, path.Base(who.Node))
	}
	return table.Flush()
}

func stateOf(who zklock.Contender) string {
	state := "waits"
	if who.Holds {
		state = "HOLDS"
	}
	if who.Revoked {
		state += ", asked to let go"
	}
	return state
}

// ago is by two clocks, the server's and ours: it is never shown as negative.
func ago(now, since time.Time) string { return max(0, now.Sub(since)).Round(time.Second).String() }

func ownerOf(who zklock.Contender) string {
	var parts []string
	switch {
	case who.Host != "" && who.PID != 0:
		parts = append(parts, fmt.Sprintf("%s:%d", who.Host, who.PID))
	case len(who.Data) > 0 && utf8.Valid(who.Data):
		parts = append(parts, fmt.Sprintf("%.60q", who.Data))
	}
	if who.Label != "" {
		parts = append(parts, fmt.Sprintf("%.60q", who.Label))
	}
	if who.Client != "" && who.Client != zklock.ClientZklock {
		parts = append(parts, "("+who.Client+")")
	}
	return strings.Join(parts, " ")
}

// queueJSON is what ls --json prints: the names are part of the command's contract.
type queueJSON struct {
	Path       string          `json:"path"`
	Issued     int64           `json:"issued"`
	Permits    int             `json:"permits,omitempty"` // of a semaphore
	Contenders []contenderJSON `json:"contenders"`
}

type contenderJSON struct {
	Node    string      `json:"node"`
	Holds   bool        `json:"holds"`
	Kind    zklock.Kind `json:"kind"`
	Client  string      `json:"client,omitempty"`
	Token   int64       `json:"token"`
	Session string      `json:"session"` // hexadecimal: a number of that size does not survive every reader
	Since   time.Time   `json:"since"`
	Revoked bool        `json:"revoked,omitempty"`
	Host    string      `json:"host,omitempty"`
	PID     int         `json:"pid,omitempty"`
	Label   string      `json:"label,omitempty"`
	Data    []byte      `json:"data,omitempty"` // in base64
}

func printQueueJSON(pretty bool) showQueue {
	return func(w io.Writer, q *zklock.Queue, _ time.Time) error {
		out := queueJSON{Path: q.Path, Issued: q.Issued, Permits: q.Permits, Contenders: []contenderJSON{}}
		for _, who := range q.Contenders {
			c := contenderJSON{
				Node: who.Node, Holds: who.Holds, Kind: who.Kind, Client: who.Client, Token: who.Token,
				Session: fmt.Sprintf("0x%x", who.Session), Since: who.Since.UTC(), Revoked: who.Revoked,
				Host: who.Host, PID: who.PID, Label: who.Label,
			}
			if who.Host == "" {
				c.Data = who.Data
			}
			out.Contenders = append(out.Contenders, c)
		}
		enc := json.NewEncoder(w)
		if pretty {
			enc.SetIndent("", "  ")
		}
		return enc.Encode(out)
	}
}
