// SPDX-License-Identifier: Apache-2.0

package show

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/cmd/zklock/internal/cli"
	"github.com/zklock-go/zklock/cmd/zklock/internal/servers"
	"github.com/zklock-go/zklock/operate"
)

// status says how far what a watch shows can be relied on.
type status struct {
	silentSince time.Time // since when no server has answered; zero if one does
	gaps        operate.Incomplete
}

// now returns the time of what is shown: while no server answers, the clocks of holders must not run on.
func (s status) now(now time.Time) time.Time {
	if s.silentSince.IsZero() {
		return now
	}
	return s.silentSince
}

// lines returns notices to show next to the locks.
func (s status) lines() (lines []string) {
	if !s.silentSince.IsZero() {
		lines = append(lines, noAnswer(s.silentSince))
	}
	if s.gaps != (operate.Incomplete{}) {
		lines = append(lines, s.gaps.Error())
	}
	return lines
}

func noAnswer(since time.Time) string {
	return fmt.Sprintf("no server has answered since %s: what is shown was known then", since.Format(time.TimeOnly))
}

// SayGaps says what a watch does not cover.
func SayGaps(out io.Writer, gaps *operate.Incomplete) error {
	_, err := fmt.Fprintln(out, "zklock: "+gaps.Error())
	return err
}

// noticePace is how often SayWhetherServersAnswer looks.
const noticePace = 500 * time.Millisecond

// SayWhetherServersAnswer prints a line when no server answers, and when one does again, until ctx is done.
func SayWhetherServersAnswer(ctx context.Context, contact *servers.Contact, out io.Writer) {
	tick := time.NewTicker(noticePace)
	defer tick.Stop()
	for silent := false; ; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		since := contact.SilentSince()
		switch {
		case !since.IsZero() && !silent:
			fmt.Fprintln(out, "zklock: "+noAnswer(since))
		case since.IsZero() && silent:
			fmt.Fprintln(out, "zklock: a server answers again")
		}
		silent = !since.IsZero()
	}
}

// Follow calls each for every queue that changes at and below path, until ctx is done or a call fails. It says on
// standard error when no server answers.
func Follow(ctx context.Context, client *zklock.Client, path string, contact *servers.Contact, std cli.Streams, each func(*operate.Queue, *operate.Incomplete) error) error {
	ctx, cancel := context.WithCancel(ctx)
	said := make(chan struct{})
	// Owned by this call, which waits; ends with ctx.
	go func() {
		defer close(said)
		SayWhetherServersAnswer(ctx, contact, std.Err)
	}()
	defer func() {
		cancel()
		<-said
	}()
	for q, err := range operate.Watch(ctx, client, path) {
		var gaps *operate.Incomplete
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !errors.As(err, &gaps):
			return err
		}
		if err := each(q, gaps); err != nil {
			return err
		}
	}
	return nil
}
