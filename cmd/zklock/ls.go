package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock"
)

const lsAbout = `
Lists the contenders of the lock or election at PATH, holders first, then the waiters in
the order of their turns, whatever library they use. It changes nothing.

AGE is how long ago a contender's node was made: of a holder that includes the time for
which it has waited ("zklock top" shows for how long it holds). A contender that was
asked to let go (revoke) is marked so. NODE is the end of the node's name; revoke and
evict take it as --node.`

func lsCommand(std streams) *command {
	f := newFlags(std, "ls", "[flags] PATH", lsAbout)
	server := f.server().security(f)
	v := view{out: std.out}
	f.BoolVar(&v.wide, "wide", false, "show sessions and the whole names of nodes")
	asJSON := f.Bool("json", false, "print JSON: one object a lock; with -r or --watch, each on one line")
	recursive := f.Bool("recursive", false, "list every lock below PATH that has contenders")
	f.alias("r", "recursive")
	watch := f.Bool("watch", false, "print again whenever contenders come or go, until Ctrl-C")
	return &command{f, func(args []string) error {
		positional, err := f.parse(args, 1, 1)
		if err != nil {
			return err
		}
		v.columns = columnsOf(std.out)
		if *asJSON {
			v.json, v.pretty = true, !*watch && !*recursive
		}
		return server.use(func(ctx context.Context, client *zklock.Client) error {
			switch path := positional[0]; {
			case *watch:
				return serverError(watchList(ctx, client, path, *recursive, v))
			case *recursive:
				return serverError(listAll(ctx, client, path, v))
			default:
				return serverError(listOne(ctx, client, path, v))
			}
		})
	}}
}

// serverError gives an error of the library the code of its cause: what the user has
// typed, or what the server refuses.
func serverError(err error) error {
	var e exit
	switch {
	case errors.As(err, &e):
	case errors.Is(err, zklock.ErrInvalid):
		return exit{codeUsage, err}
	case errors.Is(err, zk.ErrNoAuth):
		return exit{codeNoPerm, err}
	}
	return err
}

// listOne shows one queue. Of an empty one it tells why: there is no such path, or only locks below it.
func listOne(ctx context.Context, client *zklock.Client, path string, v view) error {
	q, err := client.Inspect(ctx, path)
	if err != nil || len(q.Contenders) > 0 || v.json {
		return orElse(err, func() error { return v.show(q) })
	}
	below, err := client.Queues(ctx, path)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return v.say("%s does not exist: nobody has used it lately\n", path)
	case err != nil:
		return err
	case len(below) > 0:
		return v.say("%s: nobody holds or waits here, but at %d locks below it (see ls -r)\n", path, len(below))
	}
	return v.show(q)
}

// orElse returns err if it is one, else what next returns.
func orElse(err error, next func() error) error {
	if err != nil {
		return err
	}
	return next()
}

func listAll(ctx context.Context, client *zklock.Client, path string, v view) error {
	queues, err := client.Queues(ctx, path)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return fmt.Errorf("%s does not exist", path)
	case len(queues) == 0 && !v.json && err == nil:
		return v.say("nobody holds or waits at %s or below it\n", path)
	}
	for _, q := range queues {
		if err := v.show(q); err != nil {
			return err
		}
	}
	return err // of what could not be read
}

// watchList shows queues at first and whenever they have changed.
func watchList(ctx context.Context, client *zklock.Client, path string, recursive bool, v view) error {
	q, err := client.Inspect(ctx, path)
	if !recursive && err == nil && len(q.Contenders) == 0 { // Watch is silent about it
		err = v.show(q)
	}
	if err != nil && !recursive {
		return err
	}
	for q, err := range client.Watch(ctx, path) {
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case !recursive && q.Path != path:
			continue
		}
		if err := v.show(q); err != nil {
			return err
		}
	}
	return nil
}

// view is how queues are shown, and where.
type view struct {
	out          io.Writer
	columns      int
	wide         bool
	json, pretty bool
}

// show writes at once: an error is the whole list's.
func (v view) show(q *zklock.Queue) error {
	if v.json {
		return writeJSON(v.out, newQueueJSON(q), v.pretty)
	}
	var b bytes.Buffer
	v.table(&b, q, time.Now())
	_, err := v.out.Write(b.Bytes())
	return err
}

func (v view) say(format string, path string, more ...any) error {
	_, err := fmt.Fprintf(v.out, format, append([]any{shown(path)}, more...)...)
	return err
}

func (v view) table(w io.Writer, q *zklock.Queue, now time.Time) {
	held := holders(q)
	fmt.Fprintf(w, "%s  %s: %d held, %d waiting\n", now.Format(time.TimeOnly), shown(q.Path), held, len(q.Contenders)-held)
	if len(q.Contenders) == 0 {
		return
	}
	t := grid{head: []string{"STATE", "KIND", "AGE", "OWNER", "TOKEN", "NODE"}, cut: 3, columns: v.columns}
	if v.wide {
		t.head = []string{"STATE", "KIND", "AGE", "OWNER", "TOKEN", "SESSION", "NODE"}
		t.columns = 0
	}
	for _, who := range q.Contenders {
		row := []string{stateOf(who), string(who.Kind), ago(now, who.Since), ownerOf(who), fmt.Sprint(who.Token)}
		if v.wide {
			row = append(row, fmt.Sprintf("0x%x", who.Session), shown(baseOf(who)))
		} else {
			row = append(row, shortenLeft(shown(ending(baseOf(who))), 20))
		}
		t.rows = append(t.rows, row)
	}
	t.print(w)
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
	Since   time.Time   `json:"since"`   // when the node was made
	Revoked bool        `json:"revoked,omitempty"`
	Host    string      `json:"host,omitempty"`
	PID     int         `json:"pid,omitempty"`
	Label   string      `json:"label,omitempty"`
	Data    []byte      `json:"data,omitempty"` // in base64
}

func newQueueJSON(q *zklock.Queue) queueJSON {
	out := queueJSON{Path: q.Path, Issued: q.Issued, Permits: q.Permits, Contenders: []contenderJSON{}}
	for _, who := range q.Contenders {
		out.Contenders = append(out.Contenders, newContenderJSON(who))
	}
	return out
}

func newContenderJSON(who zklock.Contender) contenderJSON {
	c := contenderJSON{
		Node: who.Node, Holds: who.Holds, Kind: who.Kind, Client: who.Client, Token: who.Token,
		Session: fmt.Sprintf("0x%x", who.Session), Since: who.Since.UTC(), Revoked: who.Revoked,
		Host: who.Host, PID: who.PID, Label: who.Label,
	}
	if who.Host == "" && !who.Anonymous {
		c.Data = who.Data
	}
	return c
}
