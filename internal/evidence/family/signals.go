// SPDX-License-Identifier: Apache-2.0

package family

import (
	"os"
	"os/signal"
	"syscall"
)

// DefaultSignals gives the signals that end a process their default effect in the processes that this one starts. Without it, a
// signal that this process ignores is ignored there, too: INT and QUIT in the background of a shell script, HUP under nohup.
func DefaultSignals() {
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s) // a signal that is caught has its default effect after exec
		}
	}
}
