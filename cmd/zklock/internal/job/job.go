// SPDX-License-Identifier: Apache-2.0

// Package job acquires a lock, has a command run under it, and releases it: for run and elect.
package job

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/cmd/zklock/internal/cli"
	"github.com/zklock-go/zklock/cmd/zklock/internal/guardian"
	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
	"github.com/zklock-go/zklock/cmd/zklock/internal/servers"
	"github.com/zklock-go/zklock/internal/escape"
)

// defaultGrace stands for 2 s or guardian.UsualGrace, whichever is less.
const defaultGrace = time.Duration(math.MinInt64)

// Job is a command that runs while a lock or a leadership is held.
type Job struct {
	Server *servers.Flags
	std    cli.Streams
	grace  time.Duration
	limit  time.Duration // how long the command may run; zero means no limit
	argv   []string

	Path     string
	Election bool // the lock is an election
	Shared   bool // the lock is shared with other readers
	Permits  int  // the number of holders at once, or zero: one, or any number of readers
	waiting  waiting
	Once     Once
	health   healthFlags

	endRest  bool // end the processes that the command leaves running
	signals  chan os.Signal
	terminal bool // this process has a controlling terminal
}

// environment returns zklock's environment without its credentials, which are not meant for the command.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, servers.EnvAuth+"=") })
}

// New adds the flags of a subcommand that runs a command, and returns the job that they describe.
func New(f *cli.Flags) *Job {
	j := &Job{Server: servers.New(f).Security(f).Owner(f), std: f.Streams}
	j.waiting.flags(f)
	f.DurationVar(&j.grace, "grace", defaultGrace, "time between TERM and KILL (default 2s, or a tenth of the session timeout if that is less)")
	f.DurationVar(&j.limit, "max-run", cli.Unset, "once the command has run for this time, end it and everything it started (TERM, then KILL after --grace), and exit with 124 (default: no limit)")
	j.health.flags(f)
	f.SetText("session-timeout", "session timeout to request; after a crash, the next holder waits about this long (default 20s, or ten times --grace if that is more)")
	f.Foreign("use --max-run to end a command that runs too long, or --wait to limit how long to wait for the lock", "timeout")
	f.Foreign("write the command after --, as in: zklock run PATH -- sh -c '...'", "c", "command", "shell")
	f.Foreign("use --no-wait", "nonblock", "nb", "try")
	f.Foreign("use --no-wait to give up if the lock is held, or --semaphore for several holders at once", "n")
	f.Foreign("use --wait with a unit, as in --wait 5s", "w")
	f.Foreign("the lock is released once the command has exited: leave it out", "u", "unlock", "o", "close")
	f.Foreign("use --session-timeout", "ttl")
	f.Foreign("use --label", "name")
	f.BoolVar(&j.endRest, "end-rest", false, "once the command has exited, end processes it left running (TERM, then KILL after --grace) instead of keeping the lock until they exit")
	return j
}

// NoWait reports whether the job must not wait for the lock.
func (j *Job) NoWait() bool { return j.waiting.noWait }

// Parse parses PATH -- COMMAND, checks the flags, and sets the defaults that depend on the command.
func (j *Job) Parse(f *cli.Flags, args []string) error {
	err := j.parseCommand(f, args)
	if err == nil {
		err = j.waiting.check(f, j.Server)
	}
	if err == nil {
		err = j.Once.check(f)
	}
	if err == nil {
		err = j.health.check(f)
	}
	return err
}

func (j *Job) parseCommand(f *cli.Flags, args []string) error {
	dashes := slices.Index(args, "--")
	if dashes < 0 {
		_, err := f.ParseAlone(args)
		return cmp.Or(err, outcome.Misuse("%s: no command: zklock %s %s (to hold the lock until Ctrl-C: -- sleep infinity)", f.Name(), f.Name(), f.Synopsis))
	}
	args, j.argv = args[:dashes], args[dashes+1:]
	positional, err := f.Parse(args, 1, 1)
	if err != nil {
		return err
	}
	if len(j.argv) == 0 {
		return outcome.Misuse("%s: no command after --: zklock %s %s", f.Name(), f.Name(), f.Synopsis)
	}
	if j.argv[0] == "" {
		return outcome.Misuse("%s: the command after -- is empty", f.Name())
	}
	if j.grace < 0 && j.grace != defaultGrace {
		return outcome.Misuse("%s: --grace %v is negative", f.Name(), j.grace)
	}
	if f.Given("max-run") && j.limit <= 0 {
		return outcome.Misuse("%s: --max-run %v is not positive", f.Name(), j.limit)
	}
	if j.Server.Session == 0 {
		j.Server.Session = 10 * max(2*time.Second, j.grace)
	}
	if j.Server.Label == "" && !j.Server.Anonymous {
		j.Server.Label = labelOf(j.argv)
	}
	j.Path = positional[0]
	return nil
}

func (j *Job) command() (*exec.Cmd, error) {
	path, err := exec.LookPath(j.argv[0])
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EISDIR):
		return nil, outcome.CannotRun.Of(err)
	case err != nil && needsShell(j.argv[0]):
		return nil, outcome.NotFound.Errorf("%w: that is for a shell: use sh -c '%s'", err, escape.Short(strings.Join(j.argv, " "), 60))
	case err != nil:
		return nil, outcome.NotFound.Of(err)
	}
	cmd := exec.Command(path, j.argv[1:]...)
	cmd.Args[0] = j.argv[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = j.std.In, j.std.Out, j.std.Err
	return cmd, nil
}

// assignment matches a word that sets a variable.
var assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)

// shellWords are commands that shells run themselves.
var shellWords = []string{
	".", ":", "[[", "alias", "bg", "break", "case", "cd", "continue", "eval", "exec", "exit", "export", "fg", "for", "if", "jobs", "popd", "pushd", "read", "return", "set", "shift",
	"source", "trap", "type", "ulimit", "umask", "unset", "until", "wait", "while", "{", "(", "!",
}

// needsShell reports whether a word that is no program may be meant for a shell.
func needsShell(word string) bool {
	return strings.ContainsFunc(word, unicode.IsSpace) || strings.ContainsAny(word, "|&;<>$`") || assignment.MatchString(word) || slices.Contains(shellWords, word)
}

// settleGrace sets the default grace. It rejects a grace so long that the command would be ended in a healthy session.
func (j *Job) settleGrace(timeout time.Duration) error {
	if j.grace == defaultGrace {
		j.grace = min(2*time.Second, guardian.UsualGrace(timeout))
	}
	if most := guardian.LongestGrace(timeout); j.grace > most {
		return outcome.Misuse("--grace %v is too long for the session timeout of %v that the server granted: it must be at most %v", j.grace, timeout, most)
	}
	return nil
}

// release unlocks. If that fails, the lock still ends with the session.
func (j *Job) release(hold *zklock.Hold) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := hold.Unlock(ctx); err != nil && !errors.Is(err, zklock.ErrLost) {
		outcome.Print(j.std.Err, err)
	}
}
