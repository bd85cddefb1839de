// SPDX-License-Identifier: Apache-2.0

// Package outcome says what became of zklock's work: as an exit code, and in words.
package outcome

import (
	"errors"
	"fmt"
	"io"
	"syscall"
)

// Verdict says what became of zklock's own work, and is printed as its exit code. The exit code of a command that zklock ran is
// never a verdict: see Ended. Where sysexits.h has a code for the case, it is used.
type Verdict int

// The verdicts. For CannotRun and NotFound, the codes are those of a shell.
const (
	Done         Verdict = 0
	Failure      Verdict = 1
	Usage        Verdict = 64
	Unavailable  Verdict = 69  // no server was reached
	Unguarded    Verdict = 70  // the guardian died, and the command was ended
	NoRoom       Verdict = 73  // the record of slots has no room, and nothing was run
	Unmarked     Verdict = 74  // the command succeeded, but its slot may not have been marked
	NotAcquired  Verdict = 75  // the lock was not acquired in time
	NoPermission Verdict = 77  // the server refused permission
	Lost         Verdict = 79  // the lock was lost while the command ran
	AtLarge      Verdict = 80  // the lock was lost, and a process of the command is still running
	Cycle        Verdict = 81  // ls --cycles found a cycle
	Unhealthy    Verdict = 82  // the health check failed, and the command was ended or was not started
	TimedOut     Verdict = 124 // the command ran longer than --max-run and was ended, as with timeout(1)
	CannotRun    Verdict = 126
	NotFound     Verdict = 127
)

// SignalBase plus a signal's number is the exit code of a process that the signal ended.
const SignalBase = 128

// Of returns an error with verdict v. If err is nil, nothing is printed.
func (v Verdict) Of(err error) error { return exit{v, err} }

// Errorf is like fmt.Errorf. The error has verdict v.
func (v Verdict) Errorf(format string, args ...any) error {
	return exit{v, fmt.Errorf(format, args...)}
}

// Is reports whether err has verdict v.
func (v Verdict) Is(err error) bool {
	var e exit
	return errors.As(err, &e) && e.verdict == v
}

// HasVerdict reports whether err has a verdict.
func HasVerdict(err error) bool {
	var e exit
	return errors.As(err, &e)
}

// Misuse returns an error about the arguments. Its verdict is Usage.
func Misuse(format string, args ...any) error { return Usage.Errorf(format, args...) }

// Interrupted returns the error for the end of zklock by INT, QUIT or TERM before it had done its work.
func Interrupted() error { return (SignalBase + Verdict(syscall.SIGINT)).Errorf("interrupted") }

// exit is an error with zklock's verdict.
type exit struct {
	verdict Verdict
	err     error // may be nil
}

func (e exit) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e exit) Unwrap() error { return e.err }

// recoded is an error for which an exit code other than its verdict's was chosen.
type recoded struct {
	error
	code int
}

func (r recoded) Unwrap() error { return r.error }

// Recode returns err with an exit code of the user's choice.
func Recode(err error, code int) error { return recoded{err, code} }

// Ended is the end of the command, or of zklock by a signal while no command was running. zklock exits with Code and prints
// nothing.
type Ended struct {
	Code  int
	Again bool // the parent shell received the interrupt as well
}

// Error returns "": nothing is printed.
func (Ended) Error() string { return "" }

// Print prints err on one line and returns the process's exit code.
func Print(w io.Writer, err error) int {
	var command Ended
	var own exit
	var chosen recoded
	code := int(Failure)
	switch {
	case err == nil:
		return 0
	case errors.As(err, &command):
		return command.Code
	case errors.As(err, &chosen):
		code = chosen.code
	case errors.As(err, &own):
		code = int(own.verdict)
	}
	if text := Explain(err); text != "" {
		fmt.Fprintln(w, "zklock: "+text)
	}
	return code
}
