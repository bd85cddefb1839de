// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"time"

	"github.com/zklock-go/zklock/cmd/zklock/internal/cli"
	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
	"github.com/zklock-go/zklock/cmd/zklock/internal/servers"
)

// waiting says how long a command waits for its lock.
type waiting struct {
	wait     time.Duration
	noWait   bool
	busyCode int
}

// shortConnectTimeout is the default of --connect-timeout for a command that does not wait.
const shortConnectTimeout = 2 * time.Second

func (w *waiting) flags(f *cli.Flags) {
	f.In(cli.Waiting, func() {
		f.DurationVar(&w.wait, "wait", cli.Unset, "give up after this time, including connecting; 0 means do not wait (default: wait forever)")
		f.BoolVar(&w.noWait, "no-wait", false, "give up at once if the lock is held; same as --wait 0")
		f.IntVar(&w.busyCode, "conflict-exit-code", int(outcome.NotAcquired), "exit `code` if the lock was not acquired")
		f.Alias("E", "conflict-exit-code")
	})
}

// check validates the flags. If zklock must not wait, check also shortens how long server tries to connect.
func (w *waiting) check(f *cli.Flags, server *servers.Flags) error {
	switch {
	case f.Given("wait") && w.wait < 0:
		return outcome.Misuse("%s: --wait %v is negative", f.Name(), w.wait)
	case w.noWait && w.wait > 0:
		return outcome.Misuse("%s: --wait %v and --no-wait cannot be combined", f.Name(), w.wait)
	case w.busyCode < 0 || w.busyCode > 255:
		return outcome.Misuse("%s: --conflict-exit-code %d is not between 0 and 255", f.Name(), w.busyCode)
	}
	w.noWait = w.noWait || w.wait == 0
	if w.wait > server.Patience && !f.Given("connect-timeout") {
		server.Patience = w.wait
	}
	if w.noWait {
		server.Hasty = true
		if !f.Given("connect-timeout") {
			server.Patience = min(server.Patience, shortConnectTimeout)
		}
	}
	return nil
}

// limit returns a context that ends when --wait has passed.
func (w *waiting) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	if w.wait > 0 {
		return context.WithTimeout(ctx, w.wait)
	}
	return context.WithCancel(ctx)
}

// recode replaces the exit code for a lock that was not acquired with that of --conflict-exit-code.
func (w *waiting) recode(err error) error {
	if outcome.NotAcquired.Is(err) {
		return outcome.Recode(err, w.busyCode)
	}
	return err
}
