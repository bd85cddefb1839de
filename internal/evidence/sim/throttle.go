package sim

import (
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/zklock-go/zklock/zktest"
)

// throttle is a server's answer to a part of all requests. What is sent again is carried out in the end.
type throttle struct {
	mu   sync.Mutex
	dice *rand.Rand     // guarded by mu
	row  map[string]int // guarded by mu: how often a client was refused the same, one after the other
}

func newThrottle(r *rand.Rand) *throttle {
	return &throttle{dice: rand.New(rand.NewPCG(r.Uint64(), r.Uint64())), row: map[string]int{}}
}

func (t *throttle) judge(q *zktest.Request) zktest.Verdict {
	switch q.Op {
	case zktest.OpPing, zktest.OpCreateSession, zktest.OpCloseSession, zktest.OpAuth, zktest.OpSASL: // which servers never throttle
		return zktest.Pass
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	same := fmt.Sprint(q.Client, q.Op)
	for _, p := range slices.Concat(q.Paths, []string{q.Path}) {
		if strings.HasSuffix(p, "-") { // a create, which has another name each time
			p = path.Dir(p)
		}
		same += p
	}
	if t.row[same] == 3 || t.dice.IntN(2) == 0 {
		delete(t.row, same)
		return zktest.Pass
	}
	t.row[same]++
	return zktest.Answer(-127)
}
