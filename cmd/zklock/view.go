package main

import (
	"bytes"
	"fmt"
	"io"
	"time"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/cmd/zklock/internal/locks"
	"github.com/zklock-go/zklock/operate"
)

// view is how queues are shown, and where.
type view struct {
	out          io.Writer
	columns      int
	wide         bool
	json, pretty bool
}

// show writes at once: an error is the whole list's.
func (v view) show(q *operate.Queue) error {
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

// sayUnused tells that there is no such path, which is no failure: ZooKeeper removes directories that are empty.
func (v view) sayUnused(path string) error {
	return v.say("%s does not exist: nobody has used it lately\n", path)
}

func (v view) table(w io.Writer, q *operate.Queue, now time.Time) {
	held := holders(q)
	why := ""
	if locks.IsDelayed(q) {
		why = " for the lock-delay"
	}
	clock, path := now.Format(time.TimeOnly)+"  ", shown(q.Path)
	count := fmt.Sprintf(": %d held, %d waiting%s", held, len(q.Contenders)-held, why)
	if v.columns > 0 && !v.wide {
		if v.columns-width(clock+count) < leastCut {
			clock = ""
		}
		path = shortenLeft(path, max(leastCut, v.columns-width(clock+count)))
	}
	fmt.Fprintf(w, "%s%s%s\n", clock, path, count)
	if len(q.Contenders) == 0 {
		return
	}
	t := grid{head: []string{"STATE", "KIND", "AGE", "OWNER", "TOKEN", "NODE"}, cut: "OWNER", drop: []string{"TOKEN", "KIND", "AGE"}, columns: v.columns}
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
	Node    string    `json:"node"`
	Holds   bool      `json:"holds"`
	Kind    string    `json:"kind"`
	Client  string    `json:"client,omitempty"`
	Token   int64     `json:"token"`
	Session string    `json:"session"` // hexadecimal: a number of that size does not survive every reader
	Since   time.Time `json:"since"`   // when the node was made
	Revoked bool      `json:"revoked,omitempty"`
	Host    string    `json:"host,omitempty"`
	PID     int       `json:"pid,omitempty"`
	Label   string    `json:"label,omitempty"`
	Cohort  bool      `json:"cohort,omitempty"` // kept by a process for its goroutines
	Data    []byte    `json:"data,omitempty"`   // in base64
}

func newQueueJSON(q *operate.Queue) queueJSON {
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
		Host: who.Host, PID: who.PID, Label: who.Label, Cohort: who.Cohort,
	}
	if who.Host == "" && !who.Anonymous {
		c.Data = who.Data
	}
	return c
}
