// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/evidence/history"
	"github.com/zklock-go/zklock/zktest"
)

// A process without a node may ask the quorum soon after it has connected, however often that is, because it searches for lost creates.
// Later it must not.
func TestAProcessThatRestsAsksTheQuorumOnlyAfterItHasConnected(t *testing.T) {
	const (
		connects = zktest.OpCreateSession
		asks     = zktest.OpMulti
		reads    = zktest.OpExists
	)
	type sent struct {
		at time.Duration
		op zktest.Op
	}
	// With round trips of an eighth of the timeout, a reply that is late once makes the process leave the server.
	searches := []sent{
		{20 * time.Second, connects}, {20360 * time.Millisecond, asks}, {21880 * time.Millisecond, asks},
		{31670 * time.Millisecond, connects}, {32030 * time.Millisecond, asks}, {33780 * time.Millisecond, asks},
	}
	for name, c := range map[string]struct {
		sent    []sent
		deleted time.Duration // when the node of the process was deleted
		want    int           // violations
	}{
		"it searches after each reconnect":         {searches, 0, 0},
		"it searches, and does not stop":           {append(searches, sent{48 * time.Second, asks}, sent{49 * time.Second, asks}), 0, 1},
		"it searches, and then only reads":         {append(searches, sent{48 * time.Second, reads}), 0, 0},
		"it has a node":                            {[]sent{{30 * time.Second, asks}, {47 * time.Second, asks}}, time.Minute, 0},
		"it learns after a while that it has none": {[]sent{{30 * time.Second, asks}, {31 * time.Second, asks}, {32 * time.Second, asks}, {33 * time.Second, asks}}, 30500 * time.Millisecond, 0},
		"it never learns that it has none":         {[]sent{{30 * time.Second, asks}, {31 * time.Second, asks}, {47 * time.Second, asks}}, 30500 * time.Millisecond, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fleet{
					plan: &Plan{Clients: []Client{{Name: "c0", Session: 4 * time.Second}}}, rec: history.NewRecorder(),
					sessions: map[int64]string{0x1: "c0.2"}, at: map[string]int{}, busy: map[string]time.Duration{}, contacts: newContacts(time.Second), known: map[string]int64{"/locks/a/x": 0x1},
				}
				f.rests()
				for _, s := range c.sent {
					time.Sleep(s.at - f.rec.Now())
					if s.at >= c.deleted {
						clear(f.known)
					}
					req := &zktest.Request{Op: s.op, Path: "/", Session: 0x1, Client: "c0.2"}
					if s.op == asks {
						req.Ops, req.Paths = []zktest.Op{zktest.OpCheck}, []string{"/"}
					}
					require.Equal(t, zktest.Pass, f.meet(req))
				}
				require.Len(t, f.broken, c.want)
			})
		})
	}
}

// A client may read as often as its callers need, even if most of them have ended their calls by then.
func TestACrowdMayReadOften(t *testing.T) {
	for name, c := range map[string]struct {
		callers, reads, later int // callers that each read, and reads of one caller after that
		want                  int // violations
	}{
		"one caller":                         {1, 199, 0, 0},
		"one caller again and again":         {1, 199, 1, 1},
		"a crowd":                            {60, 3, 100, 0},
		"a crowd, and one of it without end": {60, 3, 60*callerRepeats - 180, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fleet{rec: history.NewRecorder()}
				p := &process{f: f, name: "c0.0", open: map[*history.Handle]struct{}{}}
				f.procs = []*process{p}
				read := func() {
					f.countRepeats(&zktest.Request{Op: zktest.OpGetData, Path: "/locks/a/leases", Client: p.name})
				}
				var crowd []*history.Handle
				for range c.callers {
					crowd = append(crowd, p.begin(history.Op{}))
				}
				for range c.callers * c.reads {
					read()
				}
				for _, op := range crowd[1:] {
					p.done(op)
				}
				for range c.later {
					read()
				}
				require.Len(t, f.broken, c.want)
			})
		})
	}
}

// An acquire is judged by the number of permits that it used, which is not always the number that clients use when it fails.
func TestARefusalIsJudgedByTheNumberOfItsCall(t *testing.T) {
	const path = "/locks/a"
	for name, c := range map[string]struct{ used, want int }{
		"the number was changed":     {1, 0},
		"the number was not changed": {2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.Options{})
				client, err := zklock.Connect(t.Context(), srv.Addrs(), &zklock.Options{Dialer: srv.Dial})
				require.NoError(t, err)
				defer client.Close()
				f := &fleet{plan: &Plan{Hold: time.Second}, rec: history.NewRecorder(), said: map[string]int{path: c.used}, limits: map[string][]limit{path: {{0, 2}}}}
				p := &user{
					process: &process{f: f, open: map[*history.Handle]struct{}{}}, client: client, alive: t.Context(),
					eventCheck: &eventCheck{report: f.report, lenient: true},
				}
				l := Lock{Recipe: history.Semaphore, Path: path, Permits: c.used}
				p.doWith(l, history.Op{Recipe: l.Recipe, Path: path, Group: -1}, func(context.Context, func(context.Context) error) error {
					f.said[path] = 2
					return zklock.ErrMismatch
				}, stream(1, "refusal"))
				require.Len(t, f.broken, c.want)
			})
		})
	}
}
