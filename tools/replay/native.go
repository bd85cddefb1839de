package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/zklock-go/zklock/internal/sim/mutants"
)

// runner does jobs.
type runner interface {
	Run(ctx context.Context, j Job) (*Result, error)
	Close(ctx context.Context) error
}

// Native runs the simulator as this machine's own code. That is many times faster, and a job's runs are alike, not
// identical: good enough to cut a plan, and to look for one.
type Native struct{ dir, binary string }

// BuildNative compiles the simulator, with a defect if one is named. The caller closes what it gets.
func BuildNative(ctx context.Context, root, mutant string) (*Native, error) {
	dir, err := os.MkdirTemp("", "replay")
	if err != nil {
		return nil, err
	}
	n := &Native{dir, filepath.Join(dir, "sim.test")}
	if err := compile(ctx, root, mutant, dir, n.binary); err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	return n, nil
}

// Close removes the compiled simulator.
func (n *Native) Close(context.Context) error { return os.RemoveAll(n.dir) }

// Run does one job.
func (n *Native) Run(ctx context.Context, j Job) (*Result, error) {
	cmd := exec.CommandContext(ctx, n.binary, j.args()[1:]...)
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	cmd.Stdin = bytes.NewReader(j.Plan)
	var trouble bytes.Buffer
	cmd.Stderr = &trouble
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%w: %s%s", err, lastOf(trouble.String()), lastOf(string(out)))
	}
	return read(out)
}

// compile compiles the simulator's tests.
func compile(ctx context.Context, root, mutant, dir, binary string, env ...string) error {
	args := []string{"test", "-c", "-o", binary}
	if mutant != "" {
		m, err := mutants.Named(mutant)
		if err != nil {
			return err
		}
		overlay, err := m.Overlay(root, dir)
		if err != nil {
			return err
		}
		args = append(args, "-overlay", overlay)
	}
	build := exec.CommandContext(ctx, "go", append(args, "./internal/sim")...)
	build.Dir = root
	build.Env = append(os.Environ(), env...)
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("compile the simulator: %w: %s", err, out)
	}
	return nil
}

// machine compiles the simulator for the kind of machine that is asked for.
func (s *settings) machine(ctx context.Context) (runner, error) {
	if s.native {
		return BuildNative(ctx, s.root, s.mutant)
	}
	return Build(ctx, s.root, s.mutant)
}
