// SPDX-License-Identifier: Apache-2.0

// Package show prints queues, cycles and the busiest locks: as tables, as JSON, and live.
package show

import (
	"bytes"
	"fmt"
	"io"
	"time"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/cmd/zklock/internal/locks"
	"github.com/zklock-go/zklock/cmd/zklock/internal/terminal"
	"github.com/zklock-go/zklock/operate"
)

// View holds the output and format in which queues are shown.
type View struct {
	Out          io.Writer
	Columns      int
	Wide         bool
	JSON, Pretty bool
}

// Queue writes q with a single Write.
func (v View) Queue(q *operate.Queue) error {
	if v.JSON {
		return JSON(v.Out, newQueueJSON(q), v.Pretty)
	}
	var b bytes.Buffer
	v.table(&b, q, time.Now())
	_, err := v.Out.Write(b.Bytes())
	return err
}

// Say writes a line about path.
func (v View) Say(format string, path string, more ...any) error {
	_, err := fmt.Fprintf(v.Out, format, append([]any{Text(path)}, more...)...)
	return err
}

// SayUnused says that path does not exist. That is not a failure: ZooKeeper removes empty directories.
func (v View) SayUnused(path string) error {
	return v.Say("%s does not exist: it has not been used recently\n", path)
}

func (v View) table(w io.Writer, q *operate.Queue, now time.Time) {
	held := holders(q)
	why := ""
	if locks.IsDelayed(q) {
		why = " (lock delay)"
	}
	clock, path := now.Format(time.TimeOnly)+"  ", Text(q.Path)
	count := fmt.Sprintf(": %d held, %d waiting%s", held, len(q.Contenders)-held, why)
	if v.Columns > 0 && !v.Wide {
		if v.Columns-terminal.Width(clock+count) < leastCut {
			clock = ""
		}
		path = terminal.ShortenLeft(path, max(leastCut, v.Columns-terminal.Width(clock+count)))
	}
	fmt.Fprintf(w, "%s%s%s\n", clock, path, count)
	if len(q.Contenders) == 0 {
		return
	}
	t := grid{head: []string{"STATE", "KIND", "AGE", "OWNER", "TOKEN", "NODE"}, cut: "OWNER", drop: []string{"TOKEN", "KIND", "AGE"}, columns: v.Columns}
	if v.Wide {
		t.head = []string{"STATE", "KIND", "AGE", "OWNER", "TOKEN", "SESSION", "NODE"}
		t.columns = 0
	}
	for _, who := range q.Contenders {
		row := []string{stateOf(who), string(who.Kind), ago(now, who.Since), Owner(who), fmt.Sprint(who.Token)}
		if v.Wide {
			row = append(row, fmt.Sprintf("0x%x", who.Session), Text(Base(who)))
		} else {
			row = append(row, terminal.ShortenLeft(Text(Ending(Base(who))), 20))
		}
		t.rows = append(t.rows, row)
	}
	t.print(w)
}

// QueueJSON is the output of ls --json. The field names are part of the command's contract.
type QueueJSON struct {
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
	Session string    `json:"session"` // hexadecimal, because some JSON parsers round numbers of this size
	Since   time.Time `json:"since"`   // when the node was created
	Revoked bool      `json:"revoked,omitempty"`
	Host    string    `json:"host,omitempty"`
	PID     int       `json:"pid,omitempty"`
	Label   string    `json:"label,omitempty"`
	Cohort  bool      `json:"cohort,omitempty"` // the place is shared by a process's goroutines
	Data    []byte    `json:"data,omitempty"`   // base64
}

func newQueueJSON(q *operate.Queue) QueueJSON {
	out := QueueJSON{Path: q.Path, Issued: q.Issued, Permits: q.Permits, Contenders: []contenderJSON{}}
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
