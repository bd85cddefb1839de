// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// promises is the directory of the tests of the library's promises.
const promises = "internal/evidence/promises"

// try shows the chosen mutations to the tests in a random order, until the budget is spent.
func (p *pkg) try(chosen []mutation) (tried []result, _ error) {
	dir, err := os.MkdirTemp("", "survivors")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	overlay, err := p.writeOverlay(dir)
	if err != nil {
		return nil, err
	}
	var suites []*suite
	if p.hasTests {
		suites = append(suites, &suite{in: p.dir, outcome: noticedByOwn, overlay: overlay, binary: filepath.Join(dir, "own.test")})
	}
	if !*own {
		suites = append(suites, &suite{in: promises, outcome: noticedByPromises, overlay: overlay, binary: filepath.Join(dir, "promises.test")})
	}
	order := slices.Clone(chosen)
	r := rand.New(rand.NewPCG(*seed, 0))
	r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	for _, s := range suites {
		if err := s.prepare(); err != nil {
			return nil, err
		}
	}
	start := time.Now()
	for _, m := range order {
		if *budget > 0 && time.Since(start) > *budget {
			break
		}
		outcome := show(m, suites)
		tried = append(tried, result{m, outcome})
		if outcome == unnoticed || outcome == unreached {
			fmt.Printf("%s:%d: %s (%s)\n", m.File, m.Line, m, outcome)
		}
	}
	slices.SortFunc(tried, func(a, b result) int { return cmp.Compare(a.Number, b.Number) })
	return tried, nil
}

// writeOverlay writes the mutated files, and returns the name of the file that tells the go command where they are.
func (p *pkg) writeOverlay(dir string) (string, error) {
	root, err := filepath.Abs(*root)
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for name, text := range p.texts {
		to := filepath.Join(dir, strings.ReplaceAll(name, "/", "-"))
		replace[filepath.Join(root, name)] = to
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o600)
}

// show runs the tests that reach a mutation, until one fails.
func show(m mutation, suites []*suite) string {
	outcome := unreached
	for _, s := range suites {
		for batch := range s.batches(m.Number) {
			outcome = unnoticed
			if s.notices(m.Number, batch) {
				return s.outcome
			}
		}
	}
	return outcome
}

// A suite is a package's test binary in which each mutation can be switched on.
type suite struct {
	in      string // the directory
	outcome string // of a mutation that it notices
	overlay string
	binary  string
	tests   []test
}

// A test is a test, an example or a fuzz target with its seeds.
type test struct {
	Name    string
	Took    time.Duration
	Reached map[int]bool // mutations; it may miss those that only some runs reach
}

// prepare builds the suite and finds out which mutations its tests reach.
func (s *suite) prepare() error {
	cmd := exec.Command("go", "test", "-c", "-p", "1", "-vet=off", "-trimpath", "-overlay", s.overlay, "-o", s.binary, "./"+s.in)
	cmd.Dir = *root
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	s.tests, err = known(s.binary, s.findReached)
	slices.SortStableFunc(s.tests, func(a, b test) int {
		return cmp.Or(cmp.Compare(a.Took/slow, b.Took/slow), cmp.Compare(len(a.Reached), len(b.Reached)))
	})
	return err
}

// findReached runs each test alone and without a mutation, and records which mutations it reaches. A test that fails is left out.
func (s *suite) findReached() (tests []test, _ error) {
	out, err := s.command(context.Background(), "-test.list", "^(Test|Example|Fuzz)").Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.in, err)
	}
	for name := range strings.Lines(string(out)) {
		t := test{Name: strings.TrimSpace(name), Reached: map[int]bool{}}
		list := s.binary + ".reached"
		ctx, cancel := context.WithTimeout(context.Background(), *long)
		cmd := s.command(ctx, "-test.run", "^"+t.Name+"$", "-test.short")
		cmd.Env = append(os.Environ(), "MUTATION=0", "REACHED="+list)
		start := time.Now()
		out, err := cmd.CombinedOutput()
		cancel()
		t.Took = time.Since(start)
		text, listErr := os.ReadFile(list)
		if os.IsNotExist(listErr) {
			continue
		}
		if listErr = cmp.Or(listErr, os.Remove(list)); listErr != nil {
			return nil, listErr
		}
		if err != nil {
			fmt.Printf("left out: %s fails in %s without a mutation: %.200s\n", t.Name, s.in, out)
			continue
		}
		for _, word := range strings.Fields(string(text)) {
			number, err := strconv.Atoi(word)
			if err != nil {
				return nil, err
			}
			t.Reached[number] = true
		}
		tests = append(tests, t)
	}
	return tests, nil
}

// slow is how long a test takes that runs after the faster ones.
const slow = 500 * time.Millisecond

// batches yields the tests that reach a mutation. The fast ones come first, and of these the ones that reach few other mutations.
func (s *suite) batches(number int) func(yield func([]test) bool) {
	var reaching []test
	for _, t := range s.tests {
		if t.Reached[number] {
			reaching = append(reaching, t)
		}
	}
	return func(yield func([]test) bool) {
		for size := 15; len(reaching) > 0; size *= 4 {
			n := min(size, len(reaching))
			if !yield(reaching[:n]) {
				return
			}
			reaching = reaching[n:]
		}
	}
}

// notices reports whether one of these tests fails or takes far longer than without the mutation.
func (s *suite) notices(number int, tests []test) bool {
	names := make([]string, len(tests))
	var took time.Duration
	for i, t := range tests {
		names[i] = regexp.QuoteMeta(t.Name)
		took += t.Took
	}
	ctx, cancel := context.WithTimeout(context.Background(), min(*long, 5*time.Second+4*took))
	defer cancel()
	cmd := s.command(ctx, "-test.run", "^("+strings.Join(names, "|")+")$", "-test.short", "-test.failfast", "-test.timeout", "0")
	cmd.Env = append(os.Environ(), fmt.Sprint("MUTATION=", number))
	return cmd.Run() != nil
}

func (s *suite) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, s.binary, args...)
	cmd.Dir = filepath.Join(*root, s.in)
	cmd.WaitDelay = time.Second
	return cmd
}
