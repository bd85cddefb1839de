// SPDX-License-Identifier: Apache-2.0

package show

import (
	"bytes"
	"fmt"
	"io"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/cmd/zklock/internal/locks"
)

// Cycles shows cycles. partly says that some of the locks could not be read.
func (v View) Cycles(path string, found []locks.Cycle, partly bool) error {
	switch {
	case v.JSON:
		return JSON(v.Out, newCyclesJSON(found), v.Pretty)
	case len(found) == 0 && partly:
		return v.Say("no cycles among the locks at or below %s that could be read\n", path)
	case len(found) == 0:
		return v.Say("no cycles at or below %s\n", path)
	}
	var b bytes.Buffer
	for _, c := range found {
		writeCycle(&b, c)
	}
	fmt.Fprint(&b, "It is a deadlock only if the goroutine that holds is the one that waits. Then one of the sessions must release its\nlock: see zklock revoke and zklock evict.\n")
	_, err := v.Out.Write(b.Bytes())
	return err
}

// writeCycle describes a cycle in words.
func writeCycle(w io.Writer, c locks.Cycle) {
	fmt.Fprintf(w, "%d sessions wait for each other in a cycle:\n", len(c))
	for _, s := range c {
		verb := "holds"
		if !s.Blocked.Holds {
			verb = "is ahead in the queue"
		}
		fmt.Fprintf(w, "  %s waits for %s, where %s %s\n", sessionOf(s.Waits), Text(s.Path), sessionOf(s.Blocked), verb)
	}
	for _, s := range c {
		if s.Parallel {
			fmt.Fprintf(w, "  Session 0x%x waits at several locks, so it has several goroutines: another of them may release the lock.\n", s.Waits.Session)
		}
	}
}

// sessionOf returns a contender's session, with its owner if that is known.
func sessionOf(who zklock.Contender) string {
	text := fmt.Sprintf("session 0x%x", who.Session)
	if owner := Owner(who); owner != "" {
		text += " (" + owner + ")"
	}
	return text
}

// CyclesJSON is the output of ls --cycles --json. The field names are part of the command's contract.
type CyclesJSON struct {
	Cycles []cycleJSON `json:"cycles"`
}

type cycleJSON struct {
	Steps []stepJSON `json:"steps"` // each waits for the session of the next; the last waits for that of the first
}

type stepJSON struct {
	Path      string        `json:"path"`       // where the session waits
	Waits     contenderJSON `json:"waits"`      // with this node
	BlockedBy contenderJSON `json:"blocked_by"` // for this contender to leave
	Parallel  bool          `json:"parallel"`   // the session waits at several locks, so it must have several goroutines
}

func newCyclesJSON(found []locks.Cycle) CyclesJSON {
	out := CyclesJSON{Cycles: []cycleJSON{}}
	for _, c := range found {
		var steps []stepJSON
		for _, s := range c {
			steps = append(steps, stepJSON{s.Path, newContenderJSON(s.Waits), newContenderJSON(s.Blocked), s.Parallel})
		}
		out.Cycles = append(out.Cycles, cycleJSON{steps})
	}
	return out
}
