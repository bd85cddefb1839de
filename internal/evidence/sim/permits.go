// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/evidence/history"
	"github.com/zklock-go/zklock/zktest"
)

// resize changes the number of permits, as an operator does. From now on, all clients use the new number.
func (p *user) resize(l Lock, permits int) {
	p.f.mu.Lock()
	p.f.said[l.Path] = permits
	p.f.mu.Unlock()
	since := p.f.rec.Now()
	err := p.client.Semaphore(p.local(l.Path), permits).Resize(p.alive, permits)
	if err != nil && p.alive.Err() == nil && !errors.Is(err, zklock.ErrClosed) && !p.wasRefused(err, since) {
		p.f.report("P8", l.Path, fmt.Sprintf("%s: resize failed: %v", p.name, err))
	}
}

// permits returns the number of permits that clients use.
func (f *fleet) permits(l Lock) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := f.said[l.Path]; n > 0 {
		return n
	}
	return l.Permits
}

// noteLimit records a change of a semaphore's stored limit, if t is one. The caller must hold mu.
func (f *fleet) noteLimit(t zktest.Txn) {
	number, ok := strings.CutPrefix(string(t.Data), "zklock: permits ")
	permits, err := strconv.Atoi(number)
	if !ok || err != nil {
		return
	}
	path := strings.TrimSuffix(t.Path, "/leases")
	f.limits[path] = append(f.limits[path], limit{f.rec.Now(), permits})
	f.rec.Begin(history.Op{Kind: history.Resize, Recipe: history.Semaphore, Path: path, Weight: permits}).Finished(history.Granted, nil)
}

// disagreed reports whether the semaphore's stored number of permits differed from l.Permits at some time since then.
func (f *fleet) disagreed(l Lock, since time.Duration) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.limits[l.Path]
	for i, n := range all {
		over := i+1 < len(all) && all[i+1].from < since
		if !over && n.permits != l.Permits {
			return true
		}
	}
	return false
}
