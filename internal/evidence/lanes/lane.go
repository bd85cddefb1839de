// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
)

// lane is a list of commands that run one after the other.
type lane struct {
	name  string
	nice  bool // runs with low priority, because it computes; lanes that depend on real time go first
	steps []step
}

// step is one command.
type step struct {
	dir  string
	args []string
}

// command is the lane of the command's tests.
const command = "command"

// goTest is a step that runs the tests of packages.
func goTest(dir string, packages ...string) step {
	return step{dir, append([]string{"go", "test", "-json", "-timeout", "20m"}, packages...)}
}

// The modules whose tests need real servers. The first one builds the images if no registry has one.
const servers, containers = "integration", "zkcontainer"

// kerberos is the module whose tests need a KDC on this machine, and servers in containers.
const kerberos = "adapters/kerberos"

// heavy are the modules that are tested only by a run of everything: they compile the most, wait for a browser or a KDC, and test
// code that few commits can break. `make lint` checks them on each commit.
var heavy = []string{"adapters/caddy", "adapters/caddy/test", "adapters/gocron/test", kerberos, "adapters/leaderelection", "adapters/leaderelection/test", browser}

// leftOut describes the tests that a run on a commit leaves to a run of everything.
const leftOut = "heavy modules; the command's long tests; 10,000 cycles of each kind; the promises with names instead of addresses, and with clients that share a connection; most seeds of healthy worlds; the patches for go-zookeeper; on real servers: ZooKeeper 3.9, Curator and kazoo, seven of nine faults, sequences of parity, a restore, long runs"

// image returns a step that builds the servers' image of a Debian suite, or waits until another lane has built it. Without an
// image, the tests report what they did not test.
func image(suite string) step {
	return step{servers, []string{"sh", "-c", "image/build " + suite + " || :"}}
}

// needsEngine reports whether one of the lanes needs a container engine.
func needsEngine(all []lane) bool {
	return slices.ContainsFunc(all, func(l lane) bool {
		return slices.ContainsFunc(l.steps, func(s step) bool { return s.dir == servers || s.dir == containers })
	})
}

// startEngine starts the container engine, once for all lanes. If it fails, no lane tries again: image/build and the tests
// notice at once that no engine answers.
func startEngine(ctx context.Context, out io.Writer) {
	setup := exec.CommandContext(ctx, "./setup")
	setup.Dir, setup.Stdout, setup.Stderr = servers, out, out
	if err := setup.Run(); err != nil {
		fmt.Fprintln(out, "no container engine:", err)
	}
}

// browser is the module whose tests need a browser.
const browser = "cmd/zklock/browser"

// lanes returns the lanes for a commit or for everything. Tests that run real processes are in a lane that is not nice.
func lanes(library, nested []string, everything bool) []lane {
	commands, own := goTest(".", "./cmd/..."), goTest(".", library...)
	if !everything {
		commands.args = append(commands.args, "-short")
		own.args = append(own.args, "-skip", "^TestPatchesEndTheTraps$")
	}
	all := []lane{
		{name: command, steps: []step{commands}},
		{name: "library", nice: true, steps: []step{own}},
	}
	real, started, modules := lane{name: "servers"}, lane{name: "containers"}, lane{name: "modules", nice: true}
	for _, dir := range nested {
		switch {
		case !everything && slices.Contains(heavy, dir):
		case dir == servers && everything:
			real.steps = append(real.steps, step{dir, []string{"env", "ZKLOCK_TEST_JSON=1", "./run"}})
		case dir == servers:
			real.steps = append(real.steps, step{dir, []string{"env", "ZKLOCK_TEST_JSON=1", "ZKLOCK_TEST_COMMIT=1", "./run"}})
		case dir == containers && everything:
			// The last image is also for the other lane, which needs it later: no one must wait for it.
			started.steps = append(started.steps, image("bookworm"), goTest(dir, "./..."), image("trixie"))
		case dir == containers:
			started.steps = append(started.steps, image("bookworm-servers"), goTest(dir, "./..."))
		case dir == kerberos: // see below
		case dir == browser:
			modules.steps = append(modules.steps, step{dir, []string{"./setup"}}, goTest(dir, "./..."))
		default:
			modules.steps = append(modules.steps, goTest(dir, "./..."))
		}
	}
	if everything {
		modules.steps = append(modules.steps,
			step{".", append(goTest(".", "./internal/evidence/yields").args, "-args", "-all")},
			step{".", append(goTest(".", "./internal/evidence/sim").args, "-run", "^TestNothingIsLostInAHealthyWorld$", "-args", "-healthy", "20")},
			step{".", append(goTest(".", "./internal/evidence/promises").args, "-run", "^TestCyclesOfEveryKindLeaveNothingBehind$", "-args", "-cycles", "10000")})
		for _, manner := range []string{"name", "names", "attached", "neighbors"} {
			modules.steps = append(modules.steps, step{".", append(goTest(".", "./internal/evidence/promises").args, "-short", "-args", "-manner", manner)})
		}
	}
	if everything && slices.Contains(nested, kerberos) { // when the images are built
		on39 := goTest(kerberos, "./...")
		on39.args = append([]string{"env", "ZKLOCK_TEST_ZOOKEEPER=3.9"}, on39.args...)
		started.steps = append(started.steps, goTest(kerberos, "./..."), on39)
	}
	return append(all, real, started, modules)
}

// packages lists this module's packages except the command's, which has a separate lane.
func packages(ctx context.Context) ([]string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "./...").Output()
	if err != nil {
		return nil, err
	}
	var list []string
	for p := range strings.FieldsSeq(string(out)) {
		if !strings.Contains(p, "/cmd/") {
			list = append(list, p)
		}
	}
	return list, nil
}
