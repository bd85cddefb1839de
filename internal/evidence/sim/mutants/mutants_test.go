// SPDX-License-Identifier: Apache-2.0

package mutants

import (
	"flag"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/evidence/yields"
)

var (
	run   = flag.Bool("all", false, "look for every mutant, with the simulator or with its test")
	only  = flag.String("only", "", "use only mutants whose names match this pattern")
	made  = flag.Int("made", 2, "how many times a hunt runs all made plans before it draws seeds, each time with another seed")
	other = flag.Bool("simulator", false, "use the simulator to look for the mutants that have a test, and only for these")
	drawn = flag.Int("drawn", 20, "number of seeds for each of these")
	aged  = flag.Bool("stale", false, "use only mutants that were found before a file that they change had its present text")
	fresh = flag.Bool("fresh", false, "fail if there are such mutants")
	part  = flag.String("part", "1/1", "use only a part of the mutants: 2/7 is the second of seven")
)

const root = "../../../.."

func TestEveryMutantStillFitsTheLibrary(t *testing.T) {
	require.GreaterOrEqual(t, len(Table), 25)
	names := map[string]bool{}
	for _, m := range Table {
		require.False(t, names[m.Name], m.Name)
		names[m.Name] = true
		files, err := m.Apply(root)
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for name, text := range files {
			_, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
			require.NoError(t, err, m.Name)
		}
	}
}

// TestEveryMutantHasTheTestThatItNames reads the test files, because a test may have been renamed or moved.
func TestEveryMutantHasTheTestThatItNames(t *testing.T) {
	texts := map[string]string{}
	for _, m := range Table {
		if m.Test.Name == "" {
			continue
		}
		if _, ok := texts[m.Test.Dir]; !ok {
			files, err := filepath.Glob(filepath.Join(root, m.Test.Dir, "*_test.go"))
			require.NoError(t, err)
			for _, file := range files {
				text, err := os.ReadFile(file)
				require.NoError(t, err)
				texts[m.Test.Dir] += string(text)
			}
		}
		require.Contains(t, texts[m.Test.Dir], "\nfunc "+m.Test.Name+"(", m.Name)
	}
}

func TestEveryMutantIsFound(t *testing.T) {
	if !*run {
		t.Skip("only with -all: make mutants")
	}
	pattern := regexp.MustCompile(*only)
	var which, of int
	_, err := fmt.Sscanf(*part, "%d/%d", &which, &of)
	require.NoError(t, err)
	require.True(t, 1 <= which && which <= of, "-part %s", *part)
	known, err := found()
	require.NoError(t, err)
	again, err := stale(known)
	require.NoError(t, err)
	for i, m := range Table {
		if i%of == which-1 && pattern.MatchString(m.Name) && (!*other || m.Test.Name != "") && (!*aged || again[m.Name]) {
			f := find(t, m)
			fmt.Println(f)
			require.NoError(t, note(f))
			if why := f.failure(m); why != "" {
				t.Errorf("%s: %s", m.Name, why)
			}
		}
	}
}

const survived = "SURVIVED"

// find looks for the mutant with its test, or with the simulator if it has none.
func find(t *testing.T, m Mutant) finding {
	files, err := m.hashFiles()
	require.NoError(t, err)
	f := finding{Name: m.Name, Origin: m.Origin, Day: time.Now().UTC().Format(time.DateOnly), Files: files}
	dir := t.TempDir()
	switch {
	case !*other && m.Test.Name != "":
		f.Test = seek(t, m, m.Test.Dir, dir, try)
	case *other && !inSimulator(t, m):
		f.Simulator = "has no such code"
	default:
		f.Simulator = seek(t, m, "internal/evidence/sim", dir, hunt)
		if m.Test.Name != "" {
			f.Simulator = strings.Replace(f.Simulator, survived, "not found", 1)
		}
	}
	return f
}

// seek compiles the tests of a package with a mutant, and calls look with the binary.
func seek(t *testing.T, m Mutant, at, dir string, look func(m Mutant, binary string) (string, time.Duration)) string {
	binary := filepath.Join(dir, "mutant.test")
	overlay, err := m.Overlay(root, dir)
	require.NoError(t, err)
	build := exec.Command("go", "test", "-c", "-overlay", overlay, "-o", binary, "./"+at)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "does not compile: " + string(out)
	}
	by, spent := look(m, binary)
	return fmt.Sprintf("%s, %v", by, spent.Round(time.Second/10))
}

// inSimulator reports whether the simulator's tests depend on a package that the mutant changes.
func inSimulator(t *testing.T, m Mutant) bool {
	list := exec.Command("go", "list", "-deps", "-test", "./internal/evidence/sim")
	list.Dir = root
	out, err := list.Output()
	require.NoError(t, err)
	packages := strings.Fields(string(out))
	return slices.ContainsFunc(m.Edits, func(e Edit) bool {
		return slices.Contains(packages, path.Join("github.com/zklock-go/zklock", path.Dir(e.File)))
	})
}

// try runs the mutant's own test, which must fail: once, or with one seed of yields after the other.
func try(m Mutant, binary string) (by string, spent time.Duration) {
	for seed := 1; seed == 1 || seed <= m.Yields; seed++ {
		test := m.Test
		cmd := exec.Command(binary, "-test.run", "^"+test.Name+"$", "-test.timeout", "3m")
		cmd.Dir = filepath.Join(root, test.Dir)
		by = "`" + test.Name + "`"
		if m.Yields > 0 {
			cmd.Env = yields.Env(seed, yields.Longest(test.Dir))
			by += fmt.Sprintf(" with seed %d of yields", seed)
		}
		out, err := cmd.CombinedOutput()
		spent += spentBy(cmd)
		switch {
		case strings.Contains(string(out), "no tests to run"):
			return "does not have the test " + test.Name, spent
		case err != nil:
			return by, spent
		}
	}
	return survived, spent
}

func spentBy(cmd *exec.Cmd) time.Duration {
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}

// hunt looks for the mutant with the simulator.
func hunt(m Mutant, binary string) (string, time.Duration) {
	sim := exec.Command(binary, "-test.run", "^TestHunt$", "-test.timeout", "0", "-rounds", fmt.Sprint(*made), "-hunt", fmt.Sprint(seeds(m)),
		"-shorten", "4", "-focus", m.Focus, "-hostile", m.Trouble, "-faults", m.Faults)
	sim.Dir = filepath.Join(root, "internal", "evidence", "sim")
	sim.Env = append(os.Environ(), "GOMAXPROCS=1") // one bubble does hardly gain from more, and pays for it
	text, err := sim.CombinedOutput()
	if err == nil {
		return survived, spentBy(sim)
	}
	return verdict(string(text)), spentBy(sim)
}

// seeds is how many the simulator draws for a mutant: fewer for one that has a test.
func seeds(m Mutant) int {
	if m.Test.Name != "" {
		return min(*drawn, m.Bound())
	}
	return m.Bound()
}

var (
	caught  = regexp.MustCompile(`caught by (\S+) in (seed [^:]+):`)
	started = regexp.MustCompile(`(?m)^seed .+$`)
)

// verdict reads what ended the simulator.
func verdict(out string) string {
	found := caught.FindStringSubmatch(out)
	switch {
	case found != nil:
		return fmt.Sprintf("%s, %s", found[1], found[2])
	case strings.Contains(out, "of virtual time are still not over after"):
		return "spins, " + last(out)
	case strings.Contains(out, "not over after"):
		return "hangs, " + last(out)
	case strings.Contains(out, "panic: deadlock") || strings.Contains(out, "blocked goroutines remain"):
		return "goroutines left asleep"
	case strings.Contains(out, "panic:"):
		return "panic"
	}
	return "failed: " + out
}

// last returns the run that was started last.
func last(out string) string {
	runs := started.FindAllString(out, -1)
	return runs[len(runs)-1]
}

func TestARunThatDoesNotEndIsNamed(t *testing.T) {
	const runs = "seed 1 of \"contention/mutex\"\nseed 1 of \"contention/rw\"\n"
	require.Equal(t, `spins, seed 1 of "contention/rw"`, verdict(runs+"5m0s of virtual time are still not over after 3m0s; goroutines:\n"))
	require.Equal(t, `hangs, seed 1 of "contention/rw"`, verdict(runs+"not over after 24h0m0s of virtual time; goroutines:\n"))
	require.Empty(t, finding{Simulator: `hangs, seed 1 of "contention/rw"`}.failure(Mutant{}))
	require.NotEmpty(t, finding{Simulator: `spins, seed 1 of "contention/rw"`}.failure(Mutant{}), "it spins whatever the defect does")
}
