// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"strings"

	"github.com/zklock-go/zklock/internal/evidence/history"
	"github.com/zklock-go/zklock/internal/evidence/sim"
)

// bug is a file below testdata/bugs: a plan that has shown a broken promise, small enough to be read. shrink writes it without
// the fields Mended and Shows, which a person adds.
type bug struct {
	Showed   string // the rule, and what happened
	Found    string // what found it
	Mended   string // the subject of the commit that fixed it
	Mutant   string // the mutant that puts the defect back into the library
	Shows    string // in how many schedules it shows (replay robust)
	Schedule uint64
	Plan     sim.Plan
}

// save writes a bug file.
func (b *bug) save(name string) error {
	text, err := json.MarshalIndent(b, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(text, '\n'), 0o644)
}

// load reads the plan of a bug file, a plan file or a history into a job. A bug file also has a schedule.
func (j *Job) load(name string) error {
	if strings.HasSuffix(name, ".jsonl") {
		return j.loadHistory(name)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	var b struct {
		Schedule uint64
		Plan     json.RawMessage
	}
	if err := json.Unmarshal(text, &b); err != nil {
		return err
	}
	j.Name, j.Plan = name, text
	if b.Plan != nil {
		j.Plan, j.Schedule = b.Plan, b.Schedule
	}
	return nil
}

func (j *Job) loadHistory(name string) error {
	h, err := history.LoadFile(name)
	if err != nil {
		return err
	}
	plan, err := sim.PlanOf(h)
	if err != nil {
		return err
	}
	j.Name = name
	j.Plan, err = json.Marshal(plan)
	return err
}
