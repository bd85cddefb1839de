// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// tally adds up results.
type tally struct {
	mu         sync.Mutex
	seeds      int
	virtual    time.Duration
	ops        int
	txns       int
	violations int
	failed     int
	idle       int // runs that broke no promise but had too few contended grants
	faults     map[string]int
}

func (t *tally) add(r *Result) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seeds++
	t.virtual += r.Virtual
	t.ops += len(r.History.Ops)
	t.txns += len(r.History.Txns)
	broken := len(r.Broken())
	t.violations += broken
	switch {
	case broken > 0:
		t.failed++
	case len(r.Violations) > 0:
		t.idle++
	}
	if t.faults == nil {
		t.faults = map[string]int{}
	}
	for kind, n := range r.Faults {
		t.faults[kind] += n
	}
}

// pace describes the work per minute of processor time, or returns "" if the processor time is unknown.
func (t *tally) pace(spent time.Duration) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if spent <= 0 {
		return ""
	}
	return fmt.Sprintf("; per minute of processor time: %.0f virtual hours, %.0f operations",
		t.virtual.Hours()/spent.Minutes(), float64(t.ops)/spent.Minutes())
}

func (t *tally) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(t.faults)) {
		kinds = append(kinds, fmt.Sprintf("%s %d", kind, t.faults[kind]))
	}
	return fmt.Sprintf("%d seeds, %.0f virtual hours, %d operations, %d transactions, %d violations in %d seeds, %d without enough contention; faults: %s",
		t.seeds, t.virtual.Hours(), t.ops, t.txns, t.violations, t.failed, t.idle, strings.Join(kinds, ", "))
}
