// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math/rand/v2"
	"path"
	"sync"
	"time"

	"github.com/zklock-go/zklock/zktest"
)

// maxRefusals is how often in a row the same request is refused at most.
const maxRefusals = 3

// throttle makes servers refuse a part of the requests. A request that is retried succeeds eventually.
type throttle struct {
	*refusals
	dice *rand.Rand // guarded by mu
}

// refusals are what all throttles of a run have refused. If each counted alone, one that begins shortly after another has ended could
// refuse the same request again, more often than the client repeats it.
type refusals struct {
	mu      sync.Mutex
	row     map[string]int         // guarded by mu: the number of consecutive refusals of the same request of a client
	creates map[string][]time.Time // guarded by mu: the times of a client's last refused creates in a directory, at most maxRefusals
}

func newRefusals() *refusals {
	return &refusals{row: map[string]int{}, creates: map[string][]time.Time{}}
}

func newThrottle(r *rand.Rand, earlier *refusals) *throttle {
	return &throttle{refusals: earlier, dice: rand.New(rand.NewPCG(r.Uint64(), r.Uint64()))}
}

// createWindow is the time in which at most maxRefusals creates of a client in a directory are refused. Creates come from several
// goroutines, which back off after a refusal. If only consecutive refusals counted, one goroutine could be refused any number
// of times.
const createWindow = 10 * time.Second

func (t *throttle) judge(q *zktest.Request) zktest.Verdict {
	switch q.Op {
	case zktest.OpPing, zktest.OpCreateSession, zktest.OpCloseSession, zktest.OpAuth, zktest.OpSASL: // servers never throttle these
		return zktest.Pass
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	same, creates := fmt.Sprint(q.Client, q.Op), false
	ops, paths := q.Ops, q.Paths
	if q.Op != zktest.OpMulti {
		ops, paths = []zktest.Op{q.Op}, []string{q.Path}
	}
	for i, p := range paths {
		if ops[i] == zktest.OpCreate || ops[i] == zktest.OpCreate2 { // of a contender's node, whose name changes with each attempt
			p, creates = path.Dir(p), true
		}
		same += p
	}
	if creates {
		return t.judgeCreate(same)
	}
	if t.row[same] == maxRefusals || t.dice.IntN(2) == 0 {
		delete(t.row, same)
		return zktest.Pass
	}
	t.row[same]++
	return zktest.Answer(-127)
}

// judgeCreate judges a create. The caller must hold mu.
func (t *throttle) judgeCreate(same string) zktest.Verdict {
	last := t.creates[same]
	if len(last) == maxRefusals && time.Since(last[0]) < createWindow || t.dice.IntN(2) == 0 {
		return zktest.Pass
	}
	t.creates[same] = append(last[max(0, len(last)-maxRefusals+1):], time.Now())
	return zktest.Answer(-127)
}
