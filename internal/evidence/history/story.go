// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"
)

// event is one line of a story.
type event struct {
	at   time.Duration
	text string
}

// Story writes the events at the violations' locks in order of time, each on one line. Without violations, it writes the events
// at all locks.
func Story(w io.Writer, h *History, found []Violation) error {
	var events []event
	tell := func(at time.Duration, format string, args ...any) {
		events = append(events, event{at, fmt.Sprintf(format, args...)})
	}
	about := func(lock string) bool {
		return len(found) == 0 || slices.ContainsFunc(found, func(v Violation) bool { return v.Path == "" || v.Path == lock })
	}
	for _, f := range h.Faults {
		tell(f.From, "fault: %s begins", f.Kind)
		tell(f.To, "fault: %s is over", f.Kind)
	}
	tellServers(h, about, tell)
	for i := range h.Ops {
		if op := &h.Ops[i]; about(op.Path) {
			tellOp(op, tell)
		}
	}
	for _, v := range found {
		tell(v.At, "!! %s: %s (operations %v)", v.Rule, v.Text, v.Ops)
	}
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	for _, e := range events {
		if _, err := fmt.Fprintf(w, "%14.6fs  %s\n", e.at.Seconds(), e.text); err != nil {
			return err
		}
	}
	return nil
}

// tellServers adds the transactions on the queues.
func tellServers(h *History, about func(lock string) bool, tell func(time.Duration, string, ...any)) {
	there := map[string]string{} // node -> lock
	for _, t := range h.Txns {
		switch lock := there[t.Path]; {
		case t.Kind == Create && about(t.Lock):
			there[t.Path] = t.Lock
			tell(t.Time, "servers: %s is created for %s (%d)", brief(t.Path), cmp.Or(t.Client, "another"), t.Zxid)
		case t.Kind == Delete && lock != "":
			tell(t.Time, "servers: %s is deleted by %s", brief(t.Path), cmp.Or(t.Client, "somebody else"))
		case t.Kind == Share && lock != "":
			tell(t.Time, "servers: %s becomes a reader's", brief(t.Path))
		case t.Kind == Ended:
			gone := slices.DeleteFunc(slices.Clone(t.Gone), func(node string) bool { return there[node] == "" })
			if len(gone) > 0 {
				tell(t.Time, "servers: the session of %s ends, with %s", cmp.Or(t.Client, "another"), brief(gone...))
			}
		}
	}
}

// tellOp adds an operation's call, its return and the end of its hold.
func tellOp(op *Op, tell func(time.Duration, string, ...any)) {
	who := fmt.Sprintf("%s, operation %d:", op.Client, op.ID)
	switch {
	case op.Kind == Resize:
		tell(op.Call, "%s %s has %d permits from now on", who, op.Path, op.Weight)
		return
	case op.Kind == Observe:
		tell(op.Return, "%s sees leader %s, token %d", who, brief(op.Node), op.Token)
		return
	}
	tell(op.Call, "%s requests %s", who, op.Path)
	switch {
	case op.Outcome == Granted:
		tell(op.Return, "%s holds %s by %s, token %d", who, op.Path, brief(op.Node), op.Token)
		if op.Lost {
			tell(op.End, "%s is notified of the loss", who)
		} else if op.End > 0 {
			tell(op.End, "%s stops relying on it", who)
		}
		if op.Freed > 0 {
			tell(op.Freed, "%s has released it %s", who, op.Error)
		}
	case op.Outcome != Pending:
		tell(op.Return, "%s %s %s", who, op.Outcome, op.Error)
	}
}

// brief returns short forms of nodes' names, without most of the GUIDs.
func brief(nodes ...string) string {
	var names []string
	for _, node := range nodes {
		name := path.Base(node)
		if parts := strings.Split(name, "-"); len(parts) > 2 && len(parts[0]) > 8 {
			name = parts[0][:7] + "..." + strings.Join(parts[1:], "-")
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}
