// SPDX-License-Identifier: Apache-2.0

package sim

import "github.com/zklock-go/zklock/internal/evidence/history"

// Choice names a plan.
type Choice struct {
	Seed    uint64
	Made    string // the name of a made plan, or "" to draw one with the fields below
	Hostile string // names of kinds of faults in addition to the seed's
	Faults  string // a pattern of the faults that happen; "" means all
	Focus   string // the recipe of all locks, or "" to draw them
	Shorten int    // divides the duration of the run; 0 means 1
}

// Draw makes or draws the plan.
func (c Choice) Draw() (*Plan, error) {
	if c.Made != "" {
		return MadePlan(c.Made, c.Seed)
	}
	h := usual(c.Seed)
	if err := h.Parse(c.Hostile); err != nil {
		return nil, err
	}
	p := NewHostilePlan(c.Seed, h)
	p.Only = c.Faults
	if c.Focus != "" {
		p.Focus(history.Recipe(c.Focus))
	}
	p.Shorten(max(1, c.Shorten))
	return p, nil
}
