package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/plain"
)

// defaultGrace stands for 2 s, or what usualGrace returns if that is less.
const defaultGrace = time.Duration(math.MinInt64)

// job is a command that runs while something is held.
type job struct {
	server *serverFlags
	std    streams
	grace  time.Duration
	argv   []string

	waiting waiting
	once    once

	endRest  bool // end what the command leaves behind
	signals  chan os.Signal
	terminal bool // one controls us
}

// environment returns ours without the credentials: they are zklock's, not the command's.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, envAuth+"=") })
}

func (j *job) flags(f *flags) {
	f.DurationVar(&j.grace, "grace", defaultGrace, "how long the command has between TERM and KILL (default 2s, or a tenth of the session timeout if that is less)")
	f.retell("session-timeout", "session timeout to ask for: about the time until the next one holds after a crash (default 20s, or ten times --grace if that is more)")
	f.BoolVar(&j.endRest, "end-rest", false, "when the command has ended, end what it has left behind (TERM, then KILL after --grace) instead of keeping the lock until that has ended")
}

// parse takes PATH -- COMMAND and finds the command, before anything is locked.
func (j *job) parse(f *flags, args []string) (path string, err error) {
	dashes := slices.Index(args, "--")
	if dashes < 0 {
		_, err := f.parseAlone(args)
		return "", cmp.Or(err, misuse("%s: no command: zklock %s %s", f.Name(), f.Name(), f.synopsis))
	}
	args, j.argv = args[:dashes], args[dashes+1:]
	positional, err := f.parse(args, 1, 1)
	if err != nil {
		return "", err
	}
	if len(j.argv) == 0 {
		return "", misuse("%s: no command behind --: zklock %s %s", f.Name(), f.Name(), f.synopsis)
	}
	if j.grace < 0 && j.grace != defaultGrace {
		return "", misuse("%s: --grace %v is negative", f.Name(), j.grace)
	}
	if j.server.session == 0 {
		j.server.session = 10 * max(2*time.Second, j.grace)
	}
	if j.server.label == "" && !j.server.anonymous {
		j.server.label = labelOf(j.argv)
	}
	return positional[0], nil
}

// parseAlone takes PATH without a command. If there is one, the error says that -- is missing before it.
func (f *flags) parseAlone(args []string) (path string, err error) {
	positional, err := f.parse(args, 1, math.MaxInt)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return "", err
	case err != nil && len(args) > 1:
		return "", fmt.Errorf("%w (a command stands behind --)", err)
	case err != nil:
		return "", err
	case len(positional) > 1:
		return "", misuse("%s: -- is missing before the command: zklock %s %s -- %s ...", f.Name(), f.Name(), plain.Short(positional[0], 60), plain.Short(positional[1], 60))
	}
	return positional[0], nil
}

func (j *job) command() (*exec.Cmd, error) {
	path, err := exec.LookPath(j.argv[0])
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EISDIR):
		return nil, exit{codeCannotRun, err}
	case err != nil:
		return nil, exit{codeNotFound, err}
	}
	cmd := exec.Command(path, j.argv[1:]...)
	cmd.Args[0] = j.argv[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = j.std.in, j.std.out, j.std.err
	return cmd, nil
}

// acquire connects and takes the lock unless a signal comes first. The client is to be closed also if there is an error.
func (j *job) acquire(take func(context.Context, *zklock.Client) (*zklock.Hold, error)) (*zklock.Client, *zklock.Hold, error) {
	limited, stop := j.waiting.limit(context.Background())
	defer stop()
	ctx, cancel := context.WithCancelCause(limited)
	defer cancel(nil)
	type answer struct {
		client *zklock.Client
		hold   *zklock.Hold
		err    error
	}
	answered := make(chan answer, 1)
	// Owned by this call, which waits for it; ends with ctx at the latest.
	go func() {
		client, err := j.server.connect(ctx)
		if err != nil {
			answered <- answer{err: err}
			return
		}
		if err = j.settleGrace(client.SessionTimeout()); err != nil {
			answered <- answer{client: client, err: err}
			return
		}
		hold, err := take(ctx, client)
		answered <- answer{client, hold, notAcquired(err)}
	}()
	var told error // to end
	for {
		select {
		case sig := <-j.signals:
			if code, ends := endsWaiting(sig); ends {
				told = j.exitAfter(sig, code)
				cancel(told)
			}
		case a := <-answered:
			if told == nil {
				return a.client, a.hold, a.err
			}
			if a.hold != nil {
				j.release(a.hold)
			}
			return a.client, nil, told
		}
	}
}

// exitAfter is the exit with a code after a signal that has ended us or the command.
func (j *job) exitAfter(by os.Signal, code int) error {
	if by == os.Interrupt && j.sharesTerminal() {
		return interrupted{exit{code: code}}
	}
	return exit{code: code}
}

// sharesTerminal reports whether a terminal sends its signals to us, to the command and to the shell that has started us.
func (j *job) sharesTerminal() bool { return j.terminal && sharesGroup() && !leadsSession() }

// notAcquired gives the code for it to every error of a lock but those with one of their own.
func notAcquired(err error) error {
	var e exit
	switch {
	case err == nil || errors.As(err, &e):
		return err
	case errors.Is(err, zklock.ErrEvicted):
		return exit{codeLost, err}
	case errors.Is(err, zk.ErrNoAuth), errors.Is(err, zk.ErrInvalidACL):
		return exit{codeNoPerm, err}
	case errors.Is(err, zklock.ErrInvalid), errors.Is(err, zklock.ErrLimit), errors.Is(err, zklock.ErrMismatch):
		return exit{codeUsage, err}
	case errors.Is(err, zklock.ErrNotConnected):
		return exit{codeUnavailable, err}
	case errors.Is(err, zklock.ErrLocked), errors.Is(err, context.DeadlineExceeded):
		return exit{codeNotAcquired, err}
	}
	return err
}

// settleGrace refuses a grace that a healthy session would run into.
func (j *job) settleGrace(timeout time.Duration) error {
	if j.grace == defaultGrace {
		j.grace = min(2*time.Second, usualGrace(timeout))
	}
	if most := longestGrace(timeout); j.grace > most {
		return misuse("--grace %v is too long for the session timeout of %v that the server has granted: at most %v", j.grace, timeout, most)
	}
	return nil
}

// release gives the lock back; if that fails it ends with the session all the same.
func (j *job) release(hold *zklock.Hold) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := hold.Unlock(ctx); err != nil && !errors.Is(err, zklock.ErrLost) {
		j.std.report(err)
	}
}
