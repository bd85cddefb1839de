// SPDX-License-Identifier: Apache-2.0

//go:build unix

package terminal

import (
	"os"
	"os/signal"
	"syscall"
)

// aroundSuspension calls before and after when the user suspends this process (Ctrl-Z) and resumes it, until stop is called.
// It ignores Ctrl-Z if no shell could resume the process: if its group is that of the session's leader.
func aroundSuspension(before, after func()) (stop func()) {
	if signal.Ignored(syscall.SIGTSTP) {
		return func() {}
	}
	suspended, resumed := make(chan os.Signal, 1), make(chan os.Signal, 1)
	ended, done := make(chan struct{}), make(chan struct{})
	signal.Notify(suspended, syscall.SIGTSTP)
	signal.Notify(resumed, syscall.SIGCONT)
	// Owned by the caller, which ends it with stop and waits.
	go func() {
		defer close(done)
		for {
			select {
			case <-suspended:
				if group := syscall.Getpgrp(); group == SessionID() {
					continue
				}
				before()
				drain(resumed)
				syscall.Kill(os.Getpid(), syscall.SIGSTOP) // a Go program cannot restore the default action of TSTP
				<-resumed
				after()
			case <-ended:
				return
			}
		}
	}()
	return func() {
		signal.Stop(suspended)
		close(ended)
		<-done
		signal.Stop(resumed)
	}
}

// drain removes a signal that was received earlier.
func drain(signals <-chan os.Signal) {
	select {
	case <-signals:
	default:
	}
}
