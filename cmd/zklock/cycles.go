package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/cmd/zklock/internal/locks"
	"github.com/zklock-go/zklock/operate"
)

// listCircles shows the circles among the locks at and below path. Queues are read one after
// the other, so that a circle can be put together from different times. One that is there
// again in a second look, with the same nodes, was there all the time in between.
func listCircles(ctx context.Context, client *zklock.Client, path string, v view) error {
	queues, err := operate.Queues(ctx, client, path)
	if errors.Is(err, zk.ErrNoNode) {
		if !v.json {
			return v.sayUnused(path)
		}
		err = nil
	}
	found := locks.Circles(queues)
	if len(found) > 0 {
		queues, err = operate.Queues(ctx, client, path)
		found = locks.InBoth(found, locks.Circles(queues))
	}
	if err != nil && !errors.Is(err, zk.ErrNoAuth) { // else some could be read
		return err
	}
	if failed := v.showCircles(path, found); failed != nil {
		return failed
	}
	if err == nil && len(found) > 0 {
		return exit{code: codeCircle}
	}
	return err
}

func (v view) showCircles(path string, found []locks.Circle) error {
	if v.json {
		return writeJSON(v.out, newCirclesJSON(found), v.pretty)
	}
	if len(found) == 0 {
		return v.say("nobody waits in a circle at %s or below it\n", path)
	}
	var b bytes.Buffer
	for _, c := range found {
		tell(&b, c)
	}
	fmt.Fprint(&b, "It is a deadlock where the goroutine that holds is the one that waits. Then one of them has to let go:\nsee zklock revoke and zklock evict.\n")
	_, err := v.out.Write(b.Bytes())
	return err
}

// tell writes a circle in words.
func tell(w io.Writer, c locks.Circle) {
	fmt.Fprintf(w, "%d sessions wait for each other in a circle:\n", len(c))
	for _, s := range c {
		verb := "holds"
		if !s.Blocked.Holds {
			verb = "waits ahead of it"
		}
		fmt.Fprintf(w, "  %s waits for %s, where %s %s\n", sessionOf(s.Waits), shown(s.Path), sessionOf(s.Blocked), verb)
	}
	for _, s := range c {
		if s.Parallel {
			fmt.Fprintf(w, "  Session 0x%x waits at several locks, so it has several goroutines: it may get on.\n", s.Waits.Session)
		}
	}
}

// sessionOf names a contender's session, and its owner if that says who it is.
func sessionOf(who zklock.Contender) string {
	text := fmt.Sprintf("session 0x%x", who.Session)
	if owner := ownerOf(who); owner != "" {
		text += " (" + owner + ")"
	}
	return text
}

// circlesJSON is what ls --cycles --json prints: the names are part of the command's contract.
type circlesJSON struct {
	Cycles []circleJSON `json:"cycles"`
}

type circleJSON struct {
	Steps []stepJSON `json:"steps"` // each waits for the next one's session, the last for the first's
}

type stepJSON struct {
	Path      string        `json:"path"`      // where the session waits
	Waits     contenderJSON `json:"waits"`     // with this node
	BlockedBy contenderJSON `json:"blockedBy"` // for this one to leave
	Parallel  bool          `json:"parallel"`  // the session waits at several locks: it surely has several goroutines
}

func newCirclesJSON(found []locks.Circle) circlesJSON {
	out := circlesJSON{Cycles: []circleJSON{}}
	for _, c := range found {
		var steps []stepJSON
		for _, s := range c {
			steps = append(steps, stepJSON{s.Path, newContenderJSON(s.Waits), newContenderJSON(s.Blocked), s.Parallel})
		}
		out.Cycles = append(out.Cycles, circleJSON{steps})
	}
	return out
}
