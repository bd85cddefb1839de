package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"strconv"
	"time"

	"github.com/zklock-go/zklock"
)

// run takes the lock, runs the command and gives the lock back.
func (j *job) run(take func(context.Context, *zklock.Client) (*zklock.Hold, error)) error {
	cmd, err := j.command()
	if err != nil {
		return err
	}
	reserveThreads()
	reapStrangers()
	// Buffered, so that none is missed between the waiting and the command.
	j.signals = make(chan os.Signal, 16)
	listen(j.signals)
	defer signal.Stop(j.signals)
	if j.terminal = hasTerminal(); j.terminal {
		ignoreSuspension()
	}

	client, hold, err := j.acquire(take)
	if err != nil {
		if client != nil {
			client.Close()
		}
		return err
	}
	granted := time.Now()
	cmd.Env = append(environment(),
		"ZKLOCK_PATH="+hold.Path(), "ZKLOCK_NODE="+hold.Node(), "ZKLOCK_TOKEN="+strconv.FormatInt(hold.Token(), 10))
	outcome := j.supervise(cmd, hold, client.SessionTimeout())
	if goesOn(outcome) {
		return outcome // the session is left to its timeout: that is some time more for what goes on
	}
	if !errors.Is(outcome, zklock.ErrLost) {
		outcome = j.once.finish(client, hold, granted, j.signals, outcome)
		j.release(hold)
	}
	client.Close() // not deferred: a panic must not give the lock away while the command is at work
	return outcome
}

// goesOn reports whether something of the command is at work still.
func goesOn(outcome error) bool {
	var e exit
	return errors.As(outcome, &e) && e.code == codeAtLarge
}
