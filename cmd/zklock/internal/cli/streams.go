// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Streams are a command's standard streams. They are files so that a child process can inherit them.
type Streams struct{ In, Out, Err *os.File }

// UntilInterrupted returns the context of a command that simply stops on INT, QUIT or TERM.
func UntilInterrupted() (context.Context, context.CancelFunc) {
	return signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGQUIT, syscall.SIGTERM)
}
