// Package exact holds the one test that tools/replay compiles to WebAssembly. It imports no more than it needs, for what is
// compiled is translated once more for each defect.
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
	planned = flag.String("plan", "", "carry out the plan in this file, - for the standard input, or drawn for the one that the other flags name, and print its history")
	choice  sim.Choice
)

func TestMain(m *testing.M) {
	flag.Uint64Var(&choice.Seed, "seed", 1, "the seed from which the plan is drawn")
	flag.StringVar(&choice.Made, "made", "", "the name of a made plan, in place of one that is drawn")
	flag.StringVar(&choice.Hostile, "hostile", "", "kinds of trouble besides what every plan has")
	flag.StringVar(&choice.Faults, "faults", "", "only the faults whose names match this pattern")
	flag.IntVar(&choice.Shorten, "shorten", 1, "make the run so many times shorter")
	flag.StringVar(&choice.Focus, "focus", "", "make every lock one of this recipe")
	debug.SetGCPercent(400) // the runs make much garbage and keep little
	os.Exit(m.Run())
}

// TestPlan carries out one plan and prints its history, a JSON object a line, the last of which is the verdict.
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

// thePlan is the one that the flags ask for.
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
