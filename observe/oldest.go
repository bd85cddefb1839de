// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"sync"
	"time"
)

// Oldest records how long the oldest hold of each group has lasted, for an Observer with a metric of
// it: a hold that is older than usual points to a job that hangs. The zero value is ready for use, by
// several goroutines at the same time.
type Oldest[Group comparable] struct {
	mu    sync.Mutex
	began map[Group]map[held]time.Time // guarded by mu: zero if the end was delivered before Acquired
}

// held identifies a hold of one lock.
type held struct{ path, node string }

// Observe records the beginning or the end of a hold that belongs to the group. Other events are
// ignored.
func (o *Oldest[Group]) Observe(group Group, e Event) {
	var began time.Time
	switch e.Kind {
	case Acquired:
		began = time.Now()
	case Released, Lost, Ended:
	default:
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	holds := o.began[group]
	if holds == nil {
		holds = map[held]time.Time{}
		if o.began == nil {
			o.began = map[Group]map[held]time.Time{}
		}
		o.began[group] = holds
	}
	key := held{e.Path, e.Node}
	if _, other := holds[key]; other {
		delete(holds, key) // both its beginning and its end were delivered
		return
	}
	holds[key] = began
}

// Ages returns for each group that has had a hold how long its oldest hold has lasted, or zero if there
// is none now.
func (o *Oldest[Group]) Ages() map[Group]time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	now, ages := time.Now(), make(map[Group]time.Duration, len(o.began))
	for group, holds := range o.began {
		ages[group] = 0
		for _, began := range holds {
			if !began.IsZero() {
				ages[group] = max(ages[group], now.Sub(began))
			}
		}
	}
	return ages
}
