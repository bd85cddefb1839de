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

// lane are the tests that planted defects are shown to, after those of their own packages. What is quick comes first, so that few are
// left for what takes long.
var lane = []planting{
	{in: "internal/evidence/sim", args: []string{"-test.run", "MadePlan"}, quick: true}, {in: "internal/queue"}, {in: "internal/session"}, {in: "internal/lease"},
	{in: "internal/conn"}, {in: "slots"}, {in: "operate"}, {in: "."}, {in: "internal/evidence/sim"}, {in: "cmd/zklock"},
}

// A planting is a run of a directory's tests.
type planting struct {
	in    string
	args  []string
	quick bool // a run that takes an eighth of the time that there is never ends
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
		w.add(p.in)
	}
	for _, m := range defects {
		if own := filepath.Dir(m.File); hasTests(root, own) {
			w.add(own)
		}
	}
	if err := w.build(root, texts); err != nil {
		return err
	}
	left := w.pass("own", defects, func(m mutation) planting {
		if own := filepath.Dir(m.File); own != "." { // that has its turn later, as it takes long
			return planting{in: own}
		}
		return planting{}
	})
	for _, p := range lane {
		left = w.pass("commit", left, func(mutation) planting { return p })
	}
	onCommit := count - len(left)
	if *search > 0 {
		soak := planting{in: "internal/evidence/sim", args: []string{"-test.run", "^TestSoak$", "-soak", search.String()}}
		left = w.pass("simulator", left, func(mutation) planting { return soak })
	}
	for _, m := range left {
		fmt.Printf("by nobody: %s:%d: %s\n", m.File, m.Line, m)
	}
	fmt.Printf("of %d defects %d are found on commit, %d by the simulator, %d by nobody\n", count, onCommit, count-onCommit-len(left), len(left))
	return nil
}

func (w *workshop) add(dir string) {
	w.binaries[dir] = filepath.Join(w.dir, strings.ReplaceAll(dir, "/", "-")+".test")
}

// pass shows each defect to tests, prints what finds it, and returns those that are not found.
func (w *workshop) pass(name string, defects []mutation, shown func(mutation) planting) (left []mutation) {
	start, tests := time.Now(), ""
	for _, m := range defects {
		p := shown(m)
		if w.binaries[p.in] == "" {
			left = append(left, m)
			continue
		}
		tests = p.String()
		if by := w.plantedIn(p, fmt.Sprint("MUTATION=", m.Number)); by != "" {
			fmt.Printf("%s: %s:%d: %s: %s\n", name, m.File, m.Line, m, by)
		} else {
			left = append(left, m)
		}
	}
	fmt.Printf("%d of %d are left after %s (%v)\n", len(left), len(defects), tests, time.Since(start).Round(time.Second))
	return left
}

// plantedIn runs tests until one fails, and returns which, or nothing.
func (w *workshop) plantedIn(p planting, env ...string) string {
	limit := *long + *search
	if p.quick {
		limit = *long / 8
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
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
