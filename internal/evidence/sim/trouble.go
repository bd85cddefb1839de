// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/zklock-go/zklock/internal/evidence/history"
)

// trouble runs all streams of faults for the duration During, and returns when the last fault has ended.
func (f *fleet) trouble() {
	var streams sync.WaitGroup
	until := f.rec.Now() + f.plan.During
	for name, faults := range f.plan.troubles() {
		streams.Add(1)
		// Owned by this call, which waits for it; ends at until, or with the last step.
		go func() {
			defer streams.Done()
			if f.plan.Steps != nil {
				f.replay(name, faults)
				return
			}
			f.torment(name, faults, until)
		}()
	}
	streams.Wait()
}

// torment draws and causes one fault of a stream after the other. Each has its own random stream, so that other faults can be left
// out without an effect on it.
func (f *fleet) torment(name string, faults []fault, until time.Duration) {
	for n := 0; ; n++ {
		r := f.dice(name, n)
		time.Sleep(around(r, f.plan.Pause))
		if f.rec.Now() >= until {
			return
		}
		f.harm(Step{Stream: name, Number: n}, faults, r)
	}
}

// replay causes the faults of a stream that the plan lists.
func (f *fleet) replay(name string, faults []fault) {
	for _, s := range f.plan.Steps {
		if s.Stream != name {
			continue
		}
		r := f.dice(name, s.Number)
		around(r, f.plan.Pause)
		time.Sleep(s.At - f.rec.Now())
		f.harm(s, faults, r)
	}
}

func (f *fleet) dice(name string, n int) *rand.Rand {
	return stream(f.plan.Seed, fmt.Sprintf("faults %s/%d", name, n))
}

// harm causes one fault and records it. If the step has a kind, it overrides the drawn one.
func (f *fleet) harm(s Step, faults []fault, r *rand.Rand) {
	x := faults[r.IntN(len(faults))]
	if i := slices.IndexFunc(faults, func(x fault) bool { return x.name == s.Kind }); i >= 0 {
		x = faults[i]
	}
	from := f.rec.Now()
	hit := x.do(f, r)
	f.rec.Fault(history.Window{
		From: from, To: f.rec.Now() + 1, Kind: x.name, Stream: s.Stream, Number: s.Number, Clients: hit.only, First: hit.after,
	})
	f.count(x.name)
}
