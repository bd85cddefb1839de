// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"

	"github.com/zklock-go/zklock/internal/evidence/history"
)

// Job is one run: a plan and a schedule.
type Job struct {
	Plan     []byte // JSON; if nil, the plan is made or drawn with the fields below
	Name     string // name of the file with the plan
	Seed     uint64
	Made     string // name of a made plan, or "" to draw one
	Shorten  int
	Hostile  string
	Faults   string
	Focus    string
	Schedule uint64
}

// args returns the command line of the simulator's tests.
func (j Job) args() []string {
	args := []string{"sim.test", "-test.run=^TestPlan$", "-test.timeout=0"}
	if j.Plan != nil {
		return append(args, "-plan=-")
	}
	return append(args, "-plan=drawn", "-seed="+strconv.FormatUint(j.Seed, 10), "-made="+j.Made, "-shorten="+strconv.Itoa(j.Shorten),
		"-hostile="+j.Hostile, "-faults="+j.Faults, "-focus="+j.Focus)
}

// Command returns the command line that repeats the job.
func (j Job) Command() string {
	line := fmt.Sprintf("make replay SCHEDULE=%d", j.Schedule)
	if j.Plan != nil {
		return line + " PLAN=" + j.Name
	}
	line += fmt.Sprintf(" SEED=%d", j.Seed)
	if j.Made != "" {
		return line + fmt.Sprintf(" ARGS=%q", fmt.Sprintf("-made '%s'", j.Made))
	}
	var rest []string
	for _, f := range []struct{ name, value, usual string }{
		{"shorten", strconv.Itoa(j.Shorten), "8"}, {"hostile", j.Hostile, ""}, {"faults", j.Faults, ""}, {"focus", j.Focus, ""},
	} {
		if f.value != f.usual {
			rest = append(rest, fmt.Sprintf("-%s '%s'", f.name, f.value))
		}
	}
	if len(rest) > 0 {
		line += fmt.Sprintf(" ARGS=%q", strings.Join(rest, " "))
	}
	return line
}

// Result is the result of a job.
type Result struct {
	Text    []byte // the simulator's output
	History *history.History
	Verdict []history.Violation
}

// Machine runs the simulator. Its jobs may run at the same time.
type Machine struct {
	runtime wazero.Runtime
	module  wazero.CompiledModule
}

// Build compiles the simulator with the named defects. The caller must close the machine.
func Build(ctx context.Context, root string, defects ...string) (*Machine, error) {
	dir, err := os.MkdirTemp("", "replay")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "sim.wasm")
	if err := compile(ctx, root, defects, dir, binary, "GOOS=wasip1", "GOARCH=wasm"); err != nil {
		return nil, err
	}
	code, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	return load(ctx, code)
}

// load translates the code for this machine. It caches the translation between runs of the program.
func load(ctx context.Context, code []byte) (*Machine, error) {
	config := wazero.NewRuntimeConfig()
	if dir, err := os.UserCacheDir(); err == nil {
		if cache, err := wazero.NewCompilationCacheWithDir(filepath.Join(dir, "zklock-replay")); err == nil {
			config = config.WithCompilationCache(cache)
		}
	}
	m := &Machine{runtime: wazero.NewRuntimeWithConfig(ctx, config)}
	_, err := wasi_snapshot_preview1.Instantiate(ctx, m.runtime)
	if err == nil {
		m.module, err = m.runtime.CompileModule(ctx, code)
	}
	if err != nil {
		return nil, errors.Join(err, m.Close(ctx))
	}
	return m, nil
}

// Close releases the machine's resources.
func (m *Machine) Close(ctx context.Context) error { return m.runtime.Close(ctx) }

// Run runs one job.
func (m *Machine) Run(ctx context.Context, j Job) (*Result, error) {
	var out, trouble bytes.Buffer
	config := wazero.NewModuleConfig().WithName("").WithArgs(j.args()...).WithStdin(bytes.NewReader(j.Plan)).
		WithStdout(&out).WithStderr(&trouble).WithRandSource(schedule(j.Schedule)).WithNanotime(clock(), 1)
	module, err := m.runtime.InstantiateModule(ctx, m.module, config)
	if module != nil {
		err = errors.Join(err, module.Close(ctx))
	}
	var exit *sys.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 0 {
		err = nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s%s", err, lastOf(trouble.String()), lastOf(out.String()))
	}
	return read(out.Bytes())
}

// schedule returns the machine's source of randomness, from which the runtime decides which goroutine runs next.
func schedule(seed uint64) *rand.ChaCha8 {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	return rand.NewChaCha8(key)
}

// clock returns a clock that advances a little with each call. The simulation does not depend on it, because its time is virtual.
func clock() sys.Nanotime {
	now := int64(0)
	return func() int64 { now += 100; return now }
}

// lastOf returns the end of a long text.
func lastOf(text string) string { return text[max(0, len(text)-2000):] }

// read returns the history and the verdict in the simulator's output.
func read(out []byte) (*Result, error) {
	end := bytes.LastIndexByte(out, '}') + 1
	last := bytes.LastIndex(out[:end], []byte("\n{\"verdict\":")) + 1
	if last == 0 {
		return nil, fmt.Errorf("the run has no verdict: %s", lastOf(string(out)))
	}
	res := &Result{Text: append(out[:end:end], '\n')}
	var verdict struct{ Verdict []history.Violation }
	err := json.Unmarshal(out[last:end], &verdict)
	if err == nil {
		res.Verdict = verdict.Verdict
		res.History, err = history.Load(bytes.NewReader(out[:last]))
	}
	return res, err
}
