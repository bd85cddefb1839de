//go:build unix

package main

import (
	"os"
	"os/signal"
	"slices"
	"syscall"
)

const terminate = syscall.SIGTERM

// unguarded is what a command has to be told where it has no guardian of its own.
const unguarded = ""

// passedOn are the signals that the command gets when we get them.
var passedOn = []os.Signal{
	syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT,
	syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH, syscall.SIGCONT,
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
	signal.Notify(signals, slices.DeleteFunc(slices.Clone(passedOn), signal.Ignored)...)
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
