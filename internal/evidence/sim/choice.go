package sim

import "github.com/zklock-go/zklock/internal/evidence/history"

// Choice names a plan.
type Choice struct {
	Seed    uint64
	Made    string // the name of a made plan; "" means that it is drawn, as what follows says
	Hostile string // kinds of trouble besides those of the seed, by name
	Faults  string // a pattern of the faults that happen; "" means all
	Focus   string // the recipe of all locks; "" means as drawn
	Shorten int    // how many times shorter the run is made; 0 means once
}

// Draw makes the plan, or draws it.
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
