//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

const terminate = syscall.SIGTERM

// unguarded is what a command has to be told where it has no guardian of its own.
const unguarded = ""

// lastSignal is the greatest number of a signal anywhere. Where there are fewer, the others are never sent.
const lastSignal = 64

// passedOn returns the signals that the command gets when we get them: all that programs give a meaning to, but for those
// that would stop its helpers. The others tell of this process itself.
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

// fromTerminal are those that a terminal sends to everybody in its foreground group.
var fromTerminal = []os.Signal{syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGWINCH, syscall.SIGCONT}

// endsWaiting reports whether sig ends us while there is no command yet, and with which code.
func endsWaiting(sig os.Signal) (code int, ends bool) {
	switch sig {
	case syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT:
		return codeSignal + int(sig.(syscall.Signal)), true
	}
	return 0, false
}

// listen has signals delivered to signals, except those that were ignored when we were
// started (nohup, a script's background job): they stay so, for the command as well.
func listen(signals chan os.Signal) {
	ignoreWhatWasIgnored()
	signal.Notify(signals, passedOn()...)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // else a reader that goes ends us
}

// ignoreWhatWasIgnored completes what the Go runtime keeps of the signals that were
// ignored at the start, which is HUP and INT. Shells ignore QUIT together with INT.
func ignoreWhatWasIgnored() {
	if signal.Ignored(syscall.SIGINT) {
		signal.Ignore(syscall.SIGQUIT)
	}
}

// ignoreSuspension keeps a terminal from stopping us or, since it inherits this, the
// command: what is stopped cannot keep a lock and must not go on when it has passed. A
// command in the background that reads from the terminal gets an error instead.
func ignoreSuspension() { signal.Ignore(syscall.SIGTSTP, syscall.SIGTTOU, syscall.SIGTTIN) }

// hasTerminal reports whether a terminal controls us.
func hasTerminal() bool {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return false
	}
	tty.Close()
	return true
}

// stopSignal names the signal that has stopped a process.
func stopSignal(number int) string { return syscall.Signal(number).String() }
