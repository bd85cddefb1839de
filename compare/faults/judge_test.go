// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"testing"

	"github.com/zklock-go/zklock/compare/ways"
)

// held returns a trial whose holder received these signs and released ten seconds after the fault.
func held(signs []Sign, grants ...Grant) Trial {
	return Trial{Held: -2, Released: 10, Signs: signs, Grants: grants}
}

func TestOnlyHoldersThatRelyOnTheLockOverlap(t *testing.T) {
	suspended := []Sign{{4, ways.Doubt}, {8, ways.Loss}}
	for name, c := range map[string]struct {
		trial              Trial
		careful, confident float64
		needless           bool
	}{
		"nothing happened":                       {held(nil), 0, 0, false},
		"notified before the next grant":         {held(suspended, Grant{1, 9, 9.1}), 0, 0, false},
		"a grant between doubt and loss":         {held(suspended, Grant{1, 6, 6.1}), 0, 2, false},
		"a grant before any doubt":               {held(suspended, Grant{2, 3, 3.1}, Grant{1, 1, 1.1}), 3, 7, false},
		"never notified":                         {held(nil, Grant{1, 3, 3.1}), 7, 7, false},
		"notified after the release":             {held([]Sign{{11, ways.Loss}}, Grant{1, 10.5, 11}), 0, 0, false},
		"notified although no one was granted":   {held(suspended, Grant{1, 10.5, 11}), 0, 0, true},
		"the holder's own later turns":           {held(nil, Grant{0, 12, 13}), 0, 0, false},
		"an overlap shorter than a pipe's delay": {held([]Sign{{4, ways.Loss}}, Grant{1, 3.99, 4.1}), 0, 0, false},
		"trust after a doubt does not undo it":   {held([]Sign{{4, ways.Doubt}, {5, ways.Trust}}), 0, 0, true},
		"a holder that continues despite doubt":  {held([]Sign{{4, ways.Doubt}, {5, ways.Trust}}, Grant{1, 7, 7.1}), 0, 3, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.trial.Together(Careful); got != c.careful {
				t.Errorf("careful: together for %v, not %v", got, c.careful)
			}
			if got := c.trial.Together(Confident); got != c.confident {
				t.Errorf("confident: together for %v, not %v", got, c.confident)
			}
			if got := c.trial.Needless(Careful); got != c.needless {
				t.Errorf("needless: %v", got)
			}
		})
	}
}

func TestOverlappingGrantsAreCounted(t *testing.T) {
	one := held(nil, Grant{1, 1, 2}, Grant{2, 1.99, 3}, Grant{3, 2.5, 4}, Grant{3, 4.5, 5})
	if got := one.Beside(); got != 1 {
		t.Errorf("%d overlapping pairs, want 1: shorter overlaps than grain do not count", got)
	}
}

func TestBackIsTheLastFirstGrantAfterTheRelease(t *testing.T) {
	one := held(nil, Grant{1, 1, 2}, Grant{1, 11, 12}, Grant{0, 13, 14}, Grant{1, 20, 21})
	if got := one.Back(); got != 3 {
		t.Errorf("%v, want 3", got)
	}
}

func TestEveryClientIsAKnownWay(t *testing.T) {
	for _, c := range Clients {
		way, err := ways.Named(c.Way, ways.Endpoints{})
		if err != nil {
			t.Error(err)
			continue
		}
		if c.Family != way.Info().Family && c.Family != redis {
			t.Errorf("%s needs %s", c.Name, way.Info().Family)
		}
	}
	if n := len(grouped(Clients)); n != 4 {
		t.Errorf("%d kinds of servers, want 4", n)
	}
}

func TestEveryFaultHasANameOfItsOwn(t *testing.T) {
	if len(Named(nil)) != 9 || len(Named([]string{"slow links", "no such fault"})) != 1 {
		t.Error("want nine faults, and one by its name")
	}
	for _, f := range All {
		if f.hurt == nil || f.heal == nil {
			t.Errorf("%s has no action, or nothing that undoes it", f.Name)
		}
		if why := f.why("ZooKeeper"); why != "" {
			t.Errorf("%s: %s", f.Name, why)
		}
	}
}
