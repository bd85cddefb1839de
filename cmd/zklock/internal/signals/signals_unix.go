// SPDX-License-Identifier: Apache-2.0

//go:build unix

package signals

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
)

// Terminate asks a command to end.
const Terminate = syscall.SIGTERM

// lastSignal is the highest signal number on any system. A system with fewer signals never sends the others.
const lastSignal = 64

// passedOn returns the signals that zklock passes to the command: all that programs use, except those that would stop it and
// its helpers. The remaining signals concern zklock's own process.
func passedOn() (signals []os.Signal) {
	for s := syscall.Signal(1); s <= lastSignal; s++ {
		switch s {
		case syscall.SIGKILL, syscall.SIGSTOP, syscall.SIGCHLD, syscall.SIGURG, syscall.SIGPIPE, syscall.SIGPROF, syscall.SIGXCPU, syscall.SIGXFSZ,
			syscall.SIGILL, syscall.SIGFPE, syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGTRAP, syscall.SIGABRT, syscall.SIGSYS,
			syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU:
		default:
			if !signal.Ignored(s) {
				signals = append(signals, s)
			}
		}
	}
	return signals
}

// FromTerminal are the signals that a terminal sends to its whole foreground group.
var FromTerminal = []os.Signal{syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGWINCH, syscall.SIGCONT}

// EndsWaiting reports whether sig ends zklock while no command is running, and the exit code.
func EndsWaiting(sig os.Signal) (code int, ends bool) {
	switch sig {
	case syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT:
		return outcome.SignalBase + int(sig.(syscall.Signal)), true
	}
	return 0, false
}

// Listen delivers signals to the channel, except those that were ignored when zklock was started (by nohup, or as a
// background job of a script). Those stay ignored, for the command as well.
func Listen(signals chan os.Signal) {
	ignoreWhatWasIgnored()
	signal.Notify(signals, passedOn()...)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // otherwise a closed standard output would end zklock
}

// ignoreWhatWasIgnored keeps QUIT ignored if INT is: shells ignore the two together. The Go runtime itself keeps only HUP
// and INT ignored.
func ignoreWhatWasIgnored() {
	if signal.Ignored(syscall.SIGINT) {
		signal.Ignore(syscall.SIGQUIT)
	}
}

// IgnoreSuspension keeps a terminal from stopping zklock and the command, which inherits this. A stopped process cannot keep
// a lock, and must not continue after the lock is lost. A background command that reads from the terminal gets an error
// instead.
func IgnoreSuspension() { signal.Ignore(syscall.SIGTSTP, syscall.SIGTTOU, syscall.SIGTTIN) }

// NameOf returns the name of a signal that stopped a process.
func NameOf(number int) string { return syscall.Signal(number).String() }

// Catch returns a channel that receives the signals that would end this process, except those that cannot be caught or
// that report a fault. The commands it starts do not inherit this.
func Catch() <-chan os.Signal {
	told := make(chan os.Signal, 16)
	for s := syscall.Signal(1); s < 32; s++ {
		switch s {
		case syscall.SIGKILL, syscall.SIGSTOP, syscall.SIGCHLD, syscall.SIGCONT, syscall.SIGURG,
			syscall.SIGILL, syscall.SIGFPE, syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGTRAP, syscall.SIGABRT,
			syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU: // zklock decides whether these are ignored
		default:
			if !signal.Ignored(s) {
				signal.Notify(told, s)
			}
		}
	}
	ignoreWhatWasIgnored()
	return told
}
