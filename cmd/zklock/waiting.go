package main

import (
	"context"
	"errors"
	"time"
)

// waiting is how long a command waits for what it wants to hold.
type waiting struct {
	wait     time.Duration
	noWait   bool
	busyCode int
}

// shortConnectTimeout is how long a command that does not wait tries to reach a server, unless it is told.
const shortConnectTimeout = 2 * time.Second

func (w *waiting) flags(f *flags) {
	f.in(aboutWaiting, func() {
		f.DurationVar(&w.wait, "wait", unset, "give up after this time, in which connecting is counted; 0 does not wait (default: wait for as long as it takes)")
		f.BoolVar(&w.noWait, "no-wait", false, "give up at once if another holds; the same as --wait 0")
		f.IntVar(&w.busyCode, "conflict-exit-code", codeNotAcquired, "exit with this `code` when given up so")
		f.alias("E", "conflict-exit-code")
	})
}

// check returns what is wrong with the flags, and has server wait no longer than they say.
func (w *waiting) check(f *flags, server *serverFlags) error {
	switch {
	case f.given("wait") && w.wait < 0:
		return misuse("%s: --wait %v is negative", f.Name(), w.wait)
	case w.noWait && w.wait > 0:
		return misuse("%s: --wait %v and --no-wait contradict each other", f.Name(), w.wait)
	case w.busyCode < 0 || w.busyCode > 255:
		return misuse("%s: --conflict-exit-code %d is not 0 to 255", f.Name(), w.busyCode)
	}
	w.noWait = w.noWait || w.wait == 0
	if w.noWait {
		server.hasty = true
		if !f.given("connect-timeout") {
			server.patience = min(server.patience, shortConnectTimeout)
		}
	}
	return nil
}

// limit returns a context that ends when the waiting has to.
func (w *waiting) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	if w.wait > 0 {
		return context.WithTimeout(ctx, w.wait)
	}
	return context.WithCancel(ctx)
}

// recode gives the error that another holds the exit code that was asked for.
func (w *waiting) recode(err error) error {
	var e exit
	if errors.As(err, &e) && e.code == codeNotAcquired {
		e.code = w.busyCode
		return e
	}
	return err
}
