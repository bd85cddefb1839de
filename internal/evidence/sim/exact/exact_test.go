// SPDX-License-Identifier: Apache-2.0

// Package exact has the only test that tools/replay compiles to WebAssembly. It imports as little as possible, because the code is
// translated again for each defect.
package exact

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"testing"
	"testing/synctest"

	"github.com/zklock-go/zklock/internal/evidence/sim"
)

var (
	planned = flag.String("plan", "", "run the plan in this file and print its history; - reads standard input, drawn uses the plan that the other flags select")
	choice  sim.Choice
)

func TestMain(m *testing.M) {
	flag.Uint64Var(&choice.Seed, "seed", 1, "the seed from which the plan is drawn")
	flag.StringVar(&choice.Made, "made", "", "use this made plan instead of a drawn one")
	flag.StringVar(&choice.Hostile, "hostile", "", "kinds of faults in addition to those of every plan")
	flag.StringVar(&choice.Faults, "faults", "", "use only faults whose names match this pattern")
	flag.IntVar(&choice.Shorten, "shorten", 1, "divide the duration of the run by this number")
	flag.StringVar(&choice.Focus, "focus", "", "use this recipe for all locks")
	debug.SetGCPercent(400) // the runs allocate much and retain little
	os.Exit(m.Run())
}

// TestPlan runs one plan and prints its history as lines of JSON. The last line is the verdict.
func TestPlan(t *testing.T) {
	if *planned == "" {
		t.Skip("only with -plan: tools/replay")
	}
	plan, err := thePlan()
	if err != nil {
		t.Fatal(err)
	}
	var res *sim.Result
	synctest.Test(t, func(t *testing.T) { res = sim.Run(t, plan) })
	if err := res.History.Save(os.Stdout); err != nil {
		t.Fatal(err)
	}
	line, err := json.Marshal(map[string]any{"verdict": res.Broken()})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(string(line))
}

// thePlan returns the plan that the flags select.
func thePlan() (*sim.Plan, error) {
	if *planned == "drawn" {
		return choice.Draw()
	}
	in := os.Stdin
	if *planned != "-" {
		f, err := os.Open(*planned)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(in)
	if err != nil {
		return nil, err
	}
	var plan sim.Plan
	return &plan, json.Unmarshal(text, &plan)
}
