package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/zklock-go/zklock/internal/plain"
)

// streams are what a command talks to: real files, for a child gets them as they are.
type streams struct{ in, out, err *os.File }

// What the process says of itself when it ends. The numbers are those of sysexits.h as far as that has them.
const (
	codeFailure     = 1
	codeUsage       = 64
	codeUnavailable = 69 // no server was reached
	codeUnguarded   = 70 // the guardian was ended, and the command with it
	codeUnmarked    = 74 // the command has ended, but it is not certain that its slot was marked
	codeNotAcquired = 75 // the lock was not to be had in time
	codeNoPerm      = 77 // the server refuses
	codeLost        = 79 // the lock was lost while the command ran
	codeAtLarge     = 80 // the same, and something of the command goes on
	codeCircle      = 81 // ls --cycles has found one
	codeCannotRun   = 126
	codeNotFound    = 127
	codeSignal      = 128 // plus the signal's number
)

// exit is an error that says with which code the process ends. Without a text it is silent.
type exit struct {
	code int
	err  error
}

func (e exit) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e exit) Unwrap() error { return e.err }

func misuse(format string, args ...any) error {
	return exit{codeUsage, fmt.Errorf(format, args...)}
}

// report prints err in one line and returns the process's exit code.
func (s streams) report(err error) int {
	if err == nil {
		return 0
	}
	code := codeFailure
	var e exit
	if errors.As(err, &e) {
		code = e.code
	}
	if text := oneLine(err); text != "" {
		fmt.Fprintln(s.err, "zklock: "+text)
	}
	return code
}

// interrupted is the exit after a Ctrl-C that the shell which has started us has got, too.
type interrupted struct{ exit }

func (i interrupted) Unwrap() error { return i.exit }

// endIfInterrupted ends this process by the signal of Ctrl-C if err says so. Otherwise a shell goes on with its script: it
// takes Ctrl-C as meant for a program that exits by itself.
func endIfInterrupted(err error) {
	if !errors.As(err, new(interrupted)) {
		return
	}
	signal.Reset(os.Interrupt)
	if self, err := os.FindProcess(os.Getpid()); err == nil && self.Signal(os.Interrupt) == nil {
		time.Sleep(time.Second) // it comes at any moment
	}
}

// oneLine returns err's text without what could act on a terminal: names and data of nodes are in it.
func oneLine(err error) string {
	text := strings.ReplaceAll(strings.TrimPrefix(err.Error(), "zklock: "), "\n", "; ")
	return strings.ReplaceAll(plain.Text(text), `\\`, `\`) // what was quoted before is not quoted again
}

// untilInterrupted is the context of commands that simply stop when they are told to.
func untilInterrupted() (context.Context, context.CancelFunc) {
	return signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
}
