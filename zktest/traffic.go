// SPDX-License-Identifier: Apache-2.0

package zktest

import (
	"maps"
	"sync"
	"sync/atomic"
)

// traffic counts bytes and requests of all connections.
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

// counts returns the number of requests of each type.
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
