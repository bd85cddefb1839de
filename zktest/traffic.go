package zktest

import (
	"maps"
	"sync"
	"sync/atomic"
)

// traffic counts what goes over all connections.
type traffic struct {
	in, out atomic.Int64 // bytes

	mu       sync.Mutex
	requests map[Op]int
}

func newTraffic() *traffic { return &traffic{requests: make(map[Op]int)} }

func (t *traffic) count(op Op) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.requests[op]++
}

// counts returns how many requests of each type there were.
func (t *traffic) counts() map[Op]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.requests)
}

func (t *traffic) reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.requests)
	t.in.Store(0)
	t.out.Store(0)
}
