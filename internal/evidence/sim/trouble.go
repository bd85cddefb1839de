// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math/rand/v2"
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
		// Owned by this call, which waits for it; ends at until.
		go func() {
			defer streams.Done()
			f.torment(name, faults, until)
		}()
	}
	streams.Wait()
}

// torment draws and causes one fault of a stream after the other. Each has its own random stream, so that other faults can be left
// out without an effect on it.
func (f *fleet) torment(name string, faults []fault, until time.Duration) {
	for n := 0; ; n++ {
		r := stream(f.plan.Seed, fmt.Sprintf("faults %s/%d", name, n))
		time.Sleep(around(r, f.plan.Pause))
		if f.rec.Now() >= until || len(f.present()) == 0 { // every client was refused, and a violation says so
			return
		}
		f.harm(name, n, faults, r)
	}
}

// harm causes a fault, the n-th of a stream, and records it.
func (f *fleet) harm(name string, n int, faults []fault, r *rand.Rand) {
	x := faults[r.IntN(len(faults))]
	from := f.rec.Now()
	hit := x.do(f, r)
	f.rec.Fault(history.Window{
		From: from, To: f.rec.Now() + 1, Kind: x.name, Stream: name, Number: n, Clients: hit.only, First: hit.after,
	})
	f.count(x.name)
}
