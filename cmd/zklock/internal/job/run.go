// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"time"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/cmd/zklock/internal/guardian"
	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
	"github.com/zklock-go/zklock/cmd/zklock/internal/proc"
	"github.com/zklock-go/zklock/cmd/zklock/internal/signals"
	"github.com/zklock-go/zklock/cmd/zklock/internal/terminal"
)

// Run acquires the lock with take, runs the command and releases the lock. It returns the outcome.
func (j *Job) Run(take func(context.Context, *zklock.Client) (*zklock.Hold, error)) error {
	err := j.runCommand(take)
	if j.Once.quiet && outcome.NotAcquired.Is(err) {
		err = outcome.NotAcquired.Of(nil) // most hosts of a fleet find the lock held
	}
	return j.waiting.recode(err)
}

func (j *Job) runCommand(take func(context.Context, *zklock.Client) (*zklock.Hold, error)) error {
	cmd, err := j.command()
	if err != nil {
		return err
	}
	guardian.ReserveThreads()
	proc.ReapStrangers(j.health.command != "")
	// Buffered, so that no signal is missed between waiting and running the command.
	j.signals = make(chan os.Signal, 16)
	signals.Listen(j.signals)
	defer signal.Stop(j.signals)
	j.terminal = terminal.HasControlling()
	if j.terminal {
		signals.IgnoreSuspension()
	}

	checks, stop := j.checks()
	defer stop()
	var healthy context.Context
	client, hold, err := j.acquire(func(ctx context.Context, client *zklock.Client) (hold *zklock.Hold, err error) {
		hold, healthy, err = j.whileHealthy(ctx, checks, func(ctx context.Context) (*zklock.Hold, error) { return take(ctx, client) })
		return hold, err
	})
	if err != nil {
		return err
	}
	granted := time.Now()
	cmd.Env = append(environment(),
		"ZKLOCK_PATH="+hold.Path(), "ZKLOCK_NODE="+hold.Node(), "ZKLOCK_TOKEN="+strconv.FormatInt(hold.Token(), 10), envHeld+"="+withHeld(hold.Node()))
	result := guardian.Supervise(guardian.Terms{
		Command: cmd, Hold: hold, Session: client.SessionTimeout(), Grace: j.grace, MaxRun: max(j.limit, 0), Healthy: healthy,
		EndRest: j.endRest, HasTerminal: j.terminal, Signals: j.signals,
	})
	if outcome.AtLarge.Is(result) {
		return result // let the session time out instead of closing it: the remaining processes get that much more time
	}
	if !errors.Is(result, zklock.ErrLost) {
		result = j.Once.finish(client, hold, granted, j.signals, result)
		j.release(hold)
	}
	// Not deferred: a panic must not release the lock while the command is running. Close waits for servers that do not answer.
	shutDown(client, closeTime)
	return j.withFailures(result)
}

// withFailures returns the outcome of a command. If the lock was lost because no server answers, it says which servers could not
// be reached, and why.
func (j *Job) withFailures(result error) error {
	failures := j.Server.Failures()
	if failures == "" || !outcome.Lost.Is(result) || j.Server.Contact.SilentSince().IsZero() {
		return result
	}
	return fmt.Errorf("%w (%s)", result, failures)
}
