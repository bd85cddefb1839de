package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/zklock-go/zklock/internal/evidence/sim/mutants"
)

// fields are the directories from whose files planted defects are drawn: those that promises rest on.
var fields = []string{".", "internal/conn", "internal/frames", "internal/lease", "internal/node", "internal/outcome", "internal/queue", "internal/session", "slots"}

// lane are the packages whose tests a planted defect is shown to, after those of its own. The simulator's made plans come before
// all of its package.
var lane = []planting{
	{in: "."}, {in: "internal/evidence/sim", args: []string{"-test.run", "MadePlan"}}, {in: "internal/queue"}, {in: "internal/session"},
	{in: "internal/lease"}, {in: "internal/conn"}, {in: "slots"}, {in: "operate"}, {in: "internal/evidence/sim"}, {in: "cmd/zklock"},
}

// A planting is a run of a directory's tests.
type planting struct {
	in   string
	args []string
}

func (p planting) String() string { return strings.TrimSpace(p.in + " " + strings.Join(p.args, " ")) }

// plant plants defects, one at a time, and prints what finds each: the tests of a commit, or the simulator with new seeds.
func plant(root string, count int, seed uint64) error {
	defects, texts, err := draw(root, count, seed)
	if err != nil {
		return err
	}
	w, err := openWorkshop()
	if err != nil {
		return err
	}
	defer os.RemoveAll(w.dir)
	for _, p := range lane {
		w.binaries[p.in] = filepath.Join(w.dir, strings.ReplaceAll(p.in, "/", "-")+".test")
	}
	for _, m := range defects {
		if own := filepath.Dir(m.File); hasTests(root, own) {
			w.binaries[own] = filepath.Join(w.dir, strings.ReplaceAll(own, "/", "-")+".test")
		}
	}
	if err := w.build(root, texts); err != nil {
		return err
	}
	by := map[string]int{}
	for i, m := range defects {
		start := time.Now()
		how, where := w.seek(m)
		by[how]++
		fmt.Printf("%d. %s:%d: %s: %s (%s, %v)\n", i+1, m.File, m.Line, m, how, where, time.Since(start).Round(time.Second))
	}
	fmt.Printf("%d defects: %v\n", len(defects), by)
	return nil
}

const (
	onCommit = "found on commit"
	bySoak   = "found by the simulator"
	byNobody = "found by nobody"
)

// seek shows a defect to the tests until one fails, and returns which.
func (w *workshop) seek(m mutation) (how, where string) {
	mark := filepath.Join(w.dir, "reached")
	_ = os.Remove(mark) // there may be none
	env := []string{fmt.Sprint("MUTATION=", m.Number), "REACHED=" + mark}
	first := lane
	if own := filepath.Dir(m.File); own != "." && w.binaries[own] != "" {
		first = slices.Concat([]planting{{in: own}}, lane)
	}
	for _, p := range first {
		if what := w.plantedIn(p, env); what != "" {
			return onCommit, what
		}
	}
	if *search > 0 {
		args := []string{"-test.run", "^TestSoak$", "-soak", search.String()}
		if what := w.plantedIn(planting{"internal/evidence/sim", args}, env); what != "" {
			return bySoak, what
		}
	}
	if _, err := os.Stat(mark); err != nil {
		return byNobody, unreached
	}
	return byNobody, unnoticed
}

// plantedIn runs tests until one fails, and returns which, or nothing.
func (w *workshop) plantedIn(p planting, env []string) string {
	ctx, cancel := context.WithTimeout(context.Background(), *long+*search)
	defer cancel()
	cmd := exec.CommandContext(ctx, w.binaries[p.in], append([]string{"-test.failfast", "-test.timeout", "0"}, p.args...)...)
	cmd.Dir = filepath.Join(*root, p.in)
	cmd.Env = append(os.Environ(), env...)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	switch {
	case err == nil:
		return ""
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return p.String() + " does not end"
	}
	return p.String() + " " + firstFailure(string(out))
}

// firstFailure returns the name of the test that failed first.
func firstFailure(out string) string {
	for line := range strings.Lines(out) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "--- FAIL: "); ok {
			name, _, _ = strings.Cut(name, " (")
			return name
		}
	}
	return "ends in a panic"
}

func hasTests(root, dir string) bool {
	names, _ := filepath.Glob(filepath.Join(root, dir, "*_test.go")) // the pattern is a good one
	return len(names) > 0
}

// draw draws the defects, and returns them with the texts of the files that they are in.
func draw(root string, count int, seed uint64) (defects []mutation, texts map[string]string, err error) {
	sources, err := sourcesIn(root)
	if err != nil {
		return nil, nil, err
	}
	r := rand.New(rand.NewPCG(seed, 0))
	chosen := map[int]bool{}
	for len(defects) < count {
		s := sources[r.IntN(len(sources))]
		m := s.all[r.IntN(len(s.all))]
		if !chosen[m.Number] && !isInTable(s, m) {
			chosen[m.Number] = true
			defects = append(defects, m)
		}
	}
	texts = map[string]string{}
	for _, m := range defects {
		i := slices.IndexFunc(sources, func(s *source) bool { return s.name == m.File })
		if texts[m.File] == "" {
			texts[m.File] = sources[i].rewritten(chosen)
			texts[filepath.Join(filepath.Dir(m.File), "mutated.go")] = fmt.Sprintf(switches, packageOf.FindStringSubmatch(sources[i].text)[1])
		}
	}
	return defects, texts, nil
}

// sourcesIn are the files that have mutations.
func sourcesIn(root string) (list []*source, err error) {
	next := 1
	for _, dir := range fields {
		names, _ := filepath.Glob(filepath.Join(root, dir, "*.go")) // the pattern is a good one
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			text, err := os.ReadFile(name)
			if err != nil {
				return nil, err
			}
			s := &source{name: filepath.Join(dir, filepath.Base(name)), text: string(text), next: next, planted: true}
			if err := s.collect(); err != nil {
				return nil, err
			}
			if next = s.next; len(s.all) > 0 {
				list = append(list, s)
			}
		}
	}
	return list, nil
}

// isInTable reports whether a mutant of the table changes that line too.
func isInTable(s *source, m mutation) bool {
	for _, x := range mutants.Table {
		for _, e := range x.Edits {
			if at := strings.Index(s.text, e.Old); e.File == m.File && at >= 0 {
				from := 1 + strings.Count(s.text[:at], "\n")
				if from <= m.Line && m.Line <= from+strings.Count(strings.TrimSpace(e.Old), "\n") {
					return true
				}
			}
		}
	}
	return false
}
