// SPDX-License-Identifier: Apache-2.0

package faults

import "github.com/zklock-go/zklock/compare/ways"

// grain is the shortest overlap, in seconds, that counts: replies arrive through a pipe from another process.
const grain = 0.05

// A Policy says whether a holder stops at a doubt.
type Policy bool

// The policies.
const (
	Careful   Policy = true  // it stops at the first doubt
	Confident Policy = false // it keeps working until its library reports that the lock is lost
)

// Stopped returns when the holder stopped relying on its lock, and whether a signal of its library was the reason. If not,
// that is the time of the release.
func (t Trial) Stopped(p Policy) (at float64, told bool) {
	for _, s := range t.Signs {
		if s.At < t.Released && (s.Word == ways.Loss || bool(p) && s.Word == ways.Doubt) {
			return s.At, true
		}
	}
	return t.Released, false
}

// Next returns when another contender was first granted the lock before the holder released it.
func (t Trial) Next() (at float64, granted bool) {
	for _, g := range t.Grants {
		if g.Who != 0 && g.From < t.Released && (!granted || g.From < at) {
			at, granted = g.From, true
		}
	}
	return at, granted
}

// Together returns how long the holder relied on its lock after another contender had been granted it.
func (t Trial) Together(p Policy) float64 {
	next, granted := t.Next()
	stopped, _ := t.Stopped(p)
	if !granted || stopped-next < grain {
		return 0
	}
	return stopped - next
}

// Needless reports whether the holder stopped early although no one else was granted the lock before it released.
func (t Trial) Needless(p Policy) bool {
	_, told := t.Stopped(p)
	_, granted := t.Next()
	return told && !granted
}

// Beside counts the pairs of grants to different contenders that overlap.
func (t Trial) Beside() int {
	n := 0
	for i, a := range t.Grants {
		for _, b := range t.Grants[:i] {
			if a.Who != b.Who && min(a.To, b.To)-max(a.From, b.From) > grain {
				n++
			}
		}
	}
	return n
}

// Back returns the time, in seconds after the holder's release, by which every contender that was granted the lock again
// had its first grant.
func (t Trial) Back() float64 {
	first := map[int]float64{}
	for _, g := range t.Grants {
		if at, known := first[g.Who]; g.From > t.Released && (!known || g.From < at) {
			first[g.Who] = g.From
		}
	}
	last := 0.0
	for _, at := range first {
		last = max(last, at-t.Released)
	}
	return last
}
