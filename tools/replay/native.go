// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/zklock-go/zklock/internal/evidence/sim/mutants"
)

// runner runs jobs.
type runner interface {
	Run(ctx context.Context, j Job) (*Result, error)
	Close(ctx context.Context) error
}

// Native runs the simulator as native code. That is many times faster than a Machine, but the runs of a job are only similar,
// not identical. This suffices to reduce a plan or to look for one.
type Native struct{ dir, binary string }

// BuildNative compiles the simulator with the named defects. The caller must close the result.
func BuildNative(ctx context.Context, root string, defects ...string) (*Native, error) {
	dir, err := os.MkdirTemp("", "replay")
	if err != nil {
		return nil, err
	}
	n := &Native{dir, filepath.Join(dir, "sim.test")}
	if err := compile(ctx, root, defects, dir, n.binary); err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	return n, nil
}

// Close removes the compiled simulator.
func (n *Native) Close(context.Context) error { return os.RemoveAll(n.dir) }

// Run runs one job.
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

// compile compiles the test that runs a plan.
func compile(ctx context.Context, root string, defects []string, dir, binary string, env ...string) error {
	var list []mutants.Mutant
	for _, name := range defects {
		m, err := mutants.Named(name)
		if err != nil {
			return err
		}
		list = append(list, m)
	}
	overlay, err := mutants.Together(list...).Overlay(root, dir)
	if err != nil {
		return err
	}
	args := []string{"test", "-c", "-o", binary, "-overlay", overlay}
	build := exec.CommandContext(ctx, "go", append(args, "./internal/evidence/sim/exact")...)
	build.Dir = root
	build.Env = append(os.Environ(), env...)
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("compile the simulator: %w: %s", err, out)
	}
	return nil
}

// machine compiles the simulator for the kind of machine that the flags select.
func (s *settings) machine(ctx context.Context) (runner, error) {
	if s.native {
		return BuildNative(ctx, s.root, s.defects()...)
	}
	return Build(ctx, s.root, s.defects()...)
}

// defects returns the defects that the flags name.
func (s *settings) defects() []string {
	if s.mutant == "" {
		return nil
	}
	return []string{s.mutant}
}
