// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"
)

func TestBadFlagsAreRefused(t *testing.T) {
	for flags, want := range map[string]string{
		"--only nothing":                     "--only: unknown work, use one of uncontended",
		"--ways zklock,nothing":              `--ways: unknown name "nothing", use sql-insert`,
		"--faults nothing":                   `--faults: unknown name "nothing", use slow`,
		"--sizes 8,0":                        `--sizes: "0" is not a size`,
		"--sizes many":                       `--sizes: "many" is not a size`,
		"--rounds -1":                        "--rounds: -1 is negative",
		"--only ensemble --ways redis-setnx": "redis-setnx is not measured in the work ensemble",
		"--only goroutines --ways kazoo":     "kazoo is not measured in the work goroutines",
		"--quick more":                       `unexpected argument "more"`,
	} {
		if _, err := parse(strings.Fields(flags)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: error = %v, want %s", flags, err, want)
		}
	}
}

func TestFlagsChooseFromThePlan(t *testing.T) {
	o, err := parse(strings.Fields("--quick --only latency --ways zklock,etcd-mutex --sizes 1,2 --rounds 3"))
	if err != nil {
		t.Fatal(err)
	}
	plan, err := o.plan()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(plan.Distant, []int{1, 2}) || plan.Rounds != 3 || len(plan.Faults) == 0 {
		t.Errorf("plan = %+v", plan)
	}
	// Two ways and the floor, two sizes, three rounds.
	if n := plan.Samples(); n != 18 {
		t.Errorf("%d samples, want 18", n)
	}
}
