package faults

import "github.com/zklock-go/zklock/compare/ways"

// grain is below what can be told apart: an answer has to come through a pipe from another process.
const grain = 0.05

// Policy is what a holder does about a doubt.
type Policy bool

// The policies.
const (
	Careful   Policy = true  // it stops at the first doubt
	Confident Policy = false // it works on until its library says that the lock is lost
)

// Stopped returns when the holder ceased to rely on its lock, and whether its library made it do so.
func (t Trial) Stopped(p Policy) (at float64, told bool) {
	for _, s := range t.Signs {
		if s.At < t.Released && (s.Word == ways.Loss || bool(p) && s.Word == ways.Doubt) {
			return s.At, true
		}
	}
	return t.Released, false
}

// Next returns when another was first granted the lock while the holder had not released it.
func (t Trial) Next() (at float64, granted bool) {
	for _, g := range t.Grants {
		if g.Who != 0 && g.From < t.Released && (!granted || g.From < at) {
			at, granted = g.From, true
		}
	}
	return at, granted
}

// Together returns for how long the holder relied on its lock while another had already been granted it.
func (t Trial) Together(p Policy) float64 {
	next, granted := t.Next()
	stopped, _ := t.Stopped(p)
	if !granted || stopped-next < grain {
		return 0
	}
	return stopped - next
}

// Needless reports whether the holder was stopped although nobody else was let in before it released.
func (t Trial) Needless(p Policy) bool {
	_, told := t.Stopped(p)
	_, granted := t.Next()
	return told && !granted
}

// Beside counts the grants among the others that overlap one another.
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

// Back is how long after the holder's release the last of those that were granted the lock again had waited for it.
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
