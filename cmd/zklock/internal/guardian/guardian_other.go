// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package guardian

import (
	"os"
	"os/exec"

	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
	"github.com/zklock-go/zklock/cmd/zklock/internal/proc"
)

// On systems without process groups, reapers and TERM, the guardian is not a separate process. It kills the command at once,
// together with the other processes that the system lets it find.

// Main ends this process: no guardian process is started on these systems.
func Main([]string) { os.Exit(int(outcome.Usage)) }

// guardian is a goroutine that watches the command.
type guardian struct {
	reports chan report
	orders  chan order
	lone    *proc.Lone
}

func startGuardian(cmd *exec.Cmd) (*guardian, error) {
	alone, err := proc.NewLone(cmd)
	if err != nil {
		return nil, err
	}
	g := &guardian{make(chan report, 64), make(chan order, 64), alone}
	// Owned by the guardian; ends with the command; Supervise waits for its last report.
	go func() {
		defer close(g.reports)
		watch := guard{tree: g.lone, answer: func(r report) { g.reports <- r }, notice: func(string) {}}
		watch.keep(g.orders)
	}()
	return g, nil
}

func (g *guardian) tell(o order) {
	select {
	case g.orders <- o:
	default:
	}
}

func (g *guardian) acknowledged() {}

func (g *guardian) left() []int { return nil }

func (g *guardian) stop() { g.lone.Close() }

func (g *guardian) takeOver(proc.Event) (denied []int) {
	g.lone.Kill()
	return nil
}
