// SPDX-License-Identifier: Apache-2.0

package zkcontainer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/testcontainers/testcontainers-go"
)

// reaperEnv makes a copy of the test binary act as the reaper of another process.
const reaperEnv = "ZKCONTAINER_REAPER"

// ryukImage is the image of testcontainers' reaper. testcontainers has deprecated its own name for it; a test compares them.
const ryukImage = "testcontainers/ryuk:0.14.0"

// ryukDisabled reports whether the program or its environment has disabled testcontainers' reaper.
func ryukDisabled() bool { return testcontainers.ReadConfig().Config.RyukDisabled }

// provideReaper ensures that what this process leaves behind will be removed. Without its image, testcontainers would try for
// minutes to start Ryuk.
func (e *Engine) provideReaper(ctx context.Context) error {
	if ryukDisabled() {
		return nil
	}
	if err := e.Fetch(ctx, ryukImage); err != nil {
		return fmt.Errorf("testcontainers' reaper: %w; set TESTCONTAINERS_RYUK_DISABLED=true to do without it: this package then removes its containers by itself", err)
	}
	return nil
}

// ours returns the prefix of this user's runs.
func ours() string { return fmt.Sprintf("u%d-", os.Getuid()) }

// sweepDeadRuns removes what this user's dead runs left behind.
func (e *Engine) sweepDeadRuns(ctx context.Context) error {
	runs, err := e.runs(ctx)
	for run := range runs {
		if run == e.run || !strings.HasPrefix(run, ours()) {
			continue
		}
		life, claimed := claim(run)
		if claimed != nil {
			continue // alive, or being swept by another process
		}
		err = errors.Join(err, e.remove(ctx, run), os.Remove(life.Name()), life.Close())
	}
	return err
}

// startReaper starts a copy of this program that cleans up after this process has ended. It has its own session, so that an
// interrupt that ends the tests does not end it too.
func (e *Engine) startReaper() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	reaper := exec.Command(self)
	reaper.Env = append(os.Environ(), reaperEnv+"="+e.run)
	reaper.SysProcAttr = detached()
	if err := reaper.Start(); err != nil {
		return err
	}
	return reaper.Process.Release()
}

// If the test binary was started as a reaper, it does nothing else. This has to happen in init, before main, so that users
// need no TestMain.
func init() {
	if run := os.Getenv(reaperEnv); run != "" {
		reap(run)
	}
}

// reap waits until a run's process has ended, removes what it left behind and exits.
func reap(run string) {
	life, err := outlive(run)
	if err == nil {
		var e *Engine
		e, err = connect()
		if err == nil {
			err = e.remove(context.Background(), run)
		}
		_ = os.Remove(life.Name())
	}
	if err != nil {
		os.Exit(1) // there is nowhere to report the error to
	}
	os.Exit(0)
}
