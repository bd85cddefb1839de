package main

import (
	"context"
	"os/exec"
	"strings"
)

// lane is a list of commands that run one after the other.
type lane struct {
	name  string
	nice  bool // computes, and leaves the processors to the lanes that wait for real time
	steps []step
}

// step is one command.
type step struct {
	dir  string
	args []string
}

// goTest is a step that runs the tests of packages.
func goTest(dir string, packages ...string) step {
	return step{dir, append([]string{"go", "test", "-json", "-timeout", "20m"}, packages...)}
}

// The modules whose tests need real servers. The first builds the images where no registry has one.
const servers, containers = "integration", "zkcontainer"

// image is a step that builds the servers' image of a Debian suite, or waits until another lane has. The tests say what
// they leave out without it.
func image(suite string) step {
	return step{servers, []string{"sh", "-c", "./setup && image/build " + suite + " || :"}}
}

// browser is the module whose tests need one.
const browser = "cmd/zklock/browser"

// lanes returns all lanes. What runs real processes has a lane that is not nice.
func lanes(library, nested []string) []lane {
	all := []lane{
		{name: "command", steps: []step{goTest(".", "./cmd/...")}},
		{name: "library", nice: true, steps: []step{goTest(".", library...)}},
	}
	real, started, modules := lane{name: "servers"}, lane{name: "containers"}, lane{name: "modules", nice: true}
	for _, dir := range nested {
		switch dir {
		case servers:
			real.steps = append(real.steps, step{dir, []string{"env", "ZKLOCK_TEST_JSON=1", "./run"}})
		case containers:
			// The last is for the other lane, which needs it later: nobody shall wait for it.
			started.steps = append(started.steps, image("bookworm"), goTest(dir, "./..."), image("trixie"))
		case browser:
			modules.steps = append(modules.steps, step{dir, []string{"./setup"}}, goTest(dir, "./..."))
		default:
			modules.steps = append(modules.steps, goTest(dir, "./..."))
		}
	}
	return append(all, real, started, modules)
}

// packages lists this module's packages but the command's, which has a lane of its own.
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
