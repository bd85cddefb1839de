// SPDX-License-Identifier: Apache-2.0

package yields

import (
	"flag"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	all   = flag.Bool("all", false, "run the promises' tests and the simulator, too")
	seed  = flag.Int("seed", 1, "the first seed")
	seeds = flag.Int("seeds", 0, "how many seeds to run; 0 means as many as each run has")
	only  = flag.String("only", "", "use only packages whose names match this pattern")
)

const root = "../../.."

// A drive runs tests of a package with yields.
type drive struct {
	pkg   string
	run   string // the tests' names
	seeds int
	sleep time.Duration // how long goroutines sleep at most: not at all in tests that expect exact times
	long  bool          // only with -all
}

var drives = []drive{
	{pkg: "internal/conn", run: "NoWakeUp", seeds: 20, sleep: Longest("internal/conn")},
	{pkg: "internal/session", run: "NoWakeUp", seeds: 20, sleep: Longest("internal/session")},
	{pkg: "internal/queue", run: "NoWakeUp", seeds: 10, sleep: Longest("internal/queue")},
	{pkg: "internal/evidence/promises", run: "NoWakeUp", seeds: 20, sleep: Longest("internal/evidence/promises"), long: true},
	{pkg: "internal/evidence/promises", run: ".", seeds: 1, long: true},
	{pkg: "internal/evidence/sim", run: "Breaks", seeds: 2, sleep: time.Millisecond, long: true},
}

// limit returns how long the tests may take. A goroutine that does not pause stops virtual time: then only this limit ends a test.
func (d drive) limit() time.Duration {
	if d.run == "NoWakeUp" {
		return 5 * time.Minute // they take seconds
	}
	return 40 * time.Minute
}

// unfit are the tests that yields break although the library keeps its promises, with the reasons.
var unfit = map[string]string{
	"TestAWaiterTakesTwoKilobytes":                 "It counts bytes, and the locks of package yield are larger than those of sync.",
	"TestTheWholeHoldEndsWhenAPartIsKnownToBeLost": "It looks at a hold of several locks between the end of a part's context and the calls of its hooks, which end the whole. Nobody else is granted the part's lock before these have returned.",
	"TestIdleHoldsCostOneHeartbeatForAll":          "It counts reads. In one moment a transaction may be sent before the heartbeat whose second touch it could be, which costs another read.",
}

// TestNoYieldBreaksAPromise runs tests with yields between the library's statements, with one seed after the other.
func TestNoYieldBreaksAPromise(t *testing.T) {
	pattern := regexp.MustCompile(*only)
	dir := t.TempDir()
	overlay, err := Overlay(root, dir, nil)
	require.NoError(t, err)
	binaries := map[string]string{}
	for _, d := range drives {
		if d.long && !*all || !pattern.MatchString(d.pkg) {
			continue
		}
		if binaries[d.pkg] == "" {
			binaries[d.pkg] = filepath.Join(dir, strings.ReplaceAll(d.pkg, "/", "_")+".test")
			build := exec.Command("go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", binaries[d.pkg], "./"+d.pkg)
			build.Dir = root
			out, err := build.CombinedOutput()
			require.NoError(t, err, string(out))
		}
		n := d.seeds
		if *seeds > 0 {
			n = *seeds
		}
		for s := *seed; s < *seed+n; s++ {
			t.Run(fmt.Sprintf("%s %s %d", d.pkg, d.run, s), func(t *testing.T) { d.with(t, binaries[d.pkg], s) })
		}
	}
}

// with runs the tests with a seed. One bubble runs at a time, because its yields are drawn from its name.
func (d drive) with(t *testing.T, binary string, s int) {
	tests := exec.Command(binary, "-test.short", "-test.parallel", "1", "-test.timeout", d.limit().String(),
		"-test.run", d.run, "-test.skip", "^("+strings.Join(slices.Sorted(maps.Keys(unfit)), "|")+")$")
	tests.Dir = filepath.Join(root, d.pkg)
	tests.Env = Env(s, d.sleep)
	if out, err := tests.CombinedOutput(); err != nil {
		t.Errorf("%v; again: make yields SEED=%d ARGS='-seeds 1 -only %s$'\n%s", err, s, d.pkg, out[max(0, len(out)-20_000):])
	}
}

func TestALineHasAYieldBeforeEachStatementThatGoroutinesShare(t *testing.T) {
	const before = `package p

import "sync"

type a struct {
	mu sync.Mutex
	n  int
}

func (x *a) f(c chan int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	y := 1
	if x.n > y {
		y++
	} else if y > 2 {
		x.n--
	}
	switch {
	case y > 0:
		<-c
	}
	select {
	case c <- y:
		go func() { x.n++ }()
	default:
	}
}
`
	const after = `package p; import zkyield "github.com/zklock-go/zklock/internal/evidence/yields/yield"

import "sync"

type a struct {
	mu zkyield.Mutex
	n  int
}

func (x *a) f(c chan int) {
	HERE x.mu.Lock()
	defer x.mu.Unlock()
	y := 1
	HERE if x.n > y {
		y++
	} else if y > 2 {
		HERE x.n--
	}
	switch {
	case y > 0:
		HERE <-c
	}
	HERE select {
	case c <- y:
		HERE go func() { HERE x.n++ }()
	default:
	}
}

var _ sync.Locker
`
	got, err := Rewrite("p.go", before, true)
	require.NoError(t, err)
	require.Equal(t, after, regexp.MustCompile(`zkyield\.Here\(\d+\);`).ReplaceAllString(got, "HERE"))

	got, err = Rewrite("p.go", "package p\n\nvar a = 1\n", true)
	require.NoError(t, err)
	require.Equal(t, "package p\n\nvar a = 1\n", got)
}
