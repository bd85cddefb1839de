package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"text/tabwriter"
)

// streams are what a command talks to: real files, for a child gets them as they are.
type streams struct{ in, out, err *os.File }

type subcommand struct {
	name, about string
	run         func(args []string, std streams) error
}

func subcommands() []subcommand {
	return []subcommand{
		{"demo", "show the library at work, with no server to install", runDemo},
		{"run", "run a command while holding a lock", runRun},
		{"elect", "run a command as the elected leader, or say who leads", runElect},
		{"ls", "list who holds and who waits", runLs},
		{"revoke", "ask a holder to let go", runRevoke},
		{"evict", "take a contender out of its queue", runEvict},
		{"serve", "run the in-process server, for development", runServe},
	}
}

func dispatch(args []string, std streams) error {
	if len(args) == 0 {
		usage(std.err)
		return exit{code: codeUsage}
	}
	switch args[0] {
	case "-h", "-help", "--help", "help":
		usage(std.out)
		return nil
	}
	for _, c := range subcommands() {
		if c.name != args[0] {
			continue
		}
		err := c.run(args[1:], std)
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	return misuse("no command %q: see zklock --help", args[0])
}

func usage(w io.Writer) {
	fmt.Fprint(w, "zklock takes locks in ZooKeeper.\n\nUsage: zklock COMMAND [flags] ...\n\n")
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	for _, c := range subcommands() {
		fmt.Fprintf(table, "  %s\t%s\n", c.name, c.about)
	}
	table.Flush()
	fmt.Fprint(w, "\n`zklock COMMAND --help` tells about one of them.\n")
}

// What the process says of itself when it ends. The numbers are those of sysexits.h as far as that has them.
const (
	codeFailure     = 1
	codeUsage       = 64
	codeUnavailable = 69 // no server was reached
	codeNotAcquired = 75 // the lock was not to be had in time
	codeLost        = 79 // the lock was lost while the command ran
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

func oneLine(err error) string {
	return strings.ReplaceAll(strings.TrimPrefix(err.Error(), "zklock: "), "\n", "; ")
}

// untilInterrupted is the context of commands that simply stop when they are told to.
func untilInterrupted() (context.Context, context.CancelFunc) {
	return signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
}
