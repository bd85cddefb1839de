package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"time"

	"github.com/zklock-go/zklock"
)

const runAbout = `
Waits for the lock at PATH, runs COMMAND while holding it, and releases it when the
command has ended. The command finds ZKLOCK_PATH, ZKLOCK_NODE and ZKLOCK_TOKEN in its
environment: give the token, which grows with every grant, to whatever you write to.

If the lock is about to be lost, the command and the processes it has started get TERM,
and KILL after --grace, early enough that they have ended before another can hold; if it
was taken away (evict), they get KILL at once. A request to let go (revoke) is passed on as TERM.
Signals are passed on to the command.

Exit code: the command's (128 plus the signal's number if one ended it), or
  64 wrong usage     69 no server reached     75 lock not acquired     79 lock lost
  126 command cannot be run     127 command not found`

func runRun(args []string, std streams) error {
	f := newFlags(std, "run", "[flags] PATH -- COMMAND [ARGS...]", runAbout)
	j := job{server: f.server(), std: std}
	j.flags(f)
	wait := f.Duration("wait", 0, "give up after this time (default: wait for as long as it takes)")
	noWait := f.Bool("no-wait", false, "give up at once if the lock is taken")
	shared := f.Bool("shared", false, "share the lock with others that do: a read lock")
	permits := f.Int("semaphore", 0, "let `n` hold at a time; all must say the same number")
	path, err := j.parse(f, args)
	switch {
	case err != nil:
		return err
	case *wait < 0 || *noWait && *wait > 0:
		return misuse("run: --wait and --no-wait contradict each other")
	case *permits > 0 && *shared:
		return misuse("run: --semaphore and --shared contradict each other")
	case *permits < 0:
		return misuse("run: --semaphore %d is negative", *permits)
	}
	return j.run(func(ctx context.Context, client *zklock.Client) (*zklock.Hold, error) {
		if *wait > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, *wait)
			defer cancel()
		}
		return take(ctx, client, path, *shared, *permits, *noWait)
	})
}

func take(ctx context.Context, client *zklock.Client, path string, shared bool, permits int, noWait bool) (*zklock.Hold, error) {
	lock, try := client.Mutex(path).Lock, client.Mutex(path).TryLock
	switch {
	case shared:
		lock, try = client.RWMutex(path).RLock, client.RWMutex(path).TryRLock
	case permits > 0:
		s := client.Semaphore(path, permits)
		lock = s.Permits(1).Lock
		try = func(ctx context.Context) (*zklock.Hold, error) { return s.TryAcquire(ctx, 1) }
	}
	if noWait {
		return try(ctx)
	}
	return lock(ctx)
}

// defaultGrace stands for 2 s, or what the session timeout allows if that is less.
const defaultGrace = time.Duration(math.MinInt64)

// job is a command that runs while something is held.
type job struct {
	server *serverFlags
	std    streams
	grace  time.Duration
	argv   []string

	signals chan os.Signal
}

func (j *job) flags(f *flags) {
	f.DurationVar(&j.grace, "grace", defaultGrace, "how long the command has between TERM and KILL (default 2s, or less with a short session timeout)")
}

// parse takes PATH -- COMMAND and finds the command, before anything is locked.
func (j *job) parse(f *flags, args []string) (path string, err error) {
	dashes := slices.Index(args, "--")
	if dashes >= 0 {
		args, j.argv = args[:dashes], args[dashes+1:]
	}
	positional, err := f.parse(args, 1, 1)
	if err != nil {
		return "", err
	}
	if len(j.argv) == 0 {
		return "", misuse("usage: zklock %s %s", f.Name(), f.synopsis)
	}
	if j.grace < 0 && j.grace != defaultGrace {
		return "", misuse("%s: --grace %v is negative", f.Name(), j.grace)
	}
	if j.server.session == 0 {
		j.server.session = max(10*time.Second, 3*j.grace)
	}
	if j.server.label == "" {
		j.server.label = j.argv[0]
	}
	return positional[0], nil
}

// run takes the lock, runs the command and gives the lock back.
func (j *job) run(take func(context.Context, *zklock.Client) (*zklock.Hold, error)) error {
	cmd, err := j.command()
	if err != nil {
		return err
	}
	// Buffered, so that none is missed between the waiting and the command.
	j.signals = make(chan os.Signal, 16)
	signal.Notify(j.signals, passedOn...)
	defer signal.Stop(j.signals)
	ignoreSuspension()

	client, hold, err := j.acquire(take)
	if client != nil {
		defer client.Close()
	}
	if err != nil {
		return err
	}
	cmd.Env = append(os.Environ(),
		"ZKLOCK_PATH="+hold.Path(), "ZKLOCK_NODE="+hold.Node(), "ZKLOCK_TOKEN="+strconv.FormatInt(hold.Token(), 10))
	outcome := j.supervise(cmd, hold, newLeash(j.grace, client.SessionTimeout()))
	if !errors.Is(outcome, zklock.ErrLost) {
		j.release(hold)
	}
	return outcome
}

func (j *job) command() (*exec.Cmd, error) {
	path, err := exec.LookPath(j.argv[0])
	if err != nil {
		return nil, exit{codeNotFound, err}
	}
	cmd := exec.Command(path, j.argv[1:]...)
	cmd.Args[0] = j.argv[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = j.std.in, j.std.out, j.std.err
	return cmd, nil
}

// acquire connects and takes the lock unless a signal comes first. The client is to be closed also if there is an error.
func (j *job) acquire(take func(context.Context, *zklock.Client) (*zklock.Hold, error)) (*zklock.Client, *zklock.Hold, error) {
	ctx, cancel := context.WithCancelCause(context.Background())
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
	var interrupted error
	for {
		select {
		case sig := <-j.signals:
			if code, ends := endsWaiting(sig); ends {
				interrupted = exit{code: code}
				cancel(interrupted)
			}
		case a := <-answered:
			if interrupted == nil {
				return a.client, a.hold, a.err
			}
			if a.hold != nil {
				j.release(a.hold)
			}
			return a.client, nil, interrupted
		}
	}
}

// notAcquired gives the code for it to every error of a lock but those with one of their own.
func notAcquired(err error) error {
	var e exit
	switch {
	case err == nil || errors.As(err, &e):
		return err
	case errors.Is(err, zklock.ErrInvalid), errors.Is(err, zklock.ErrLimit):
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
	most := longestGrace(timeout)
	if j.grace == defaultGrace {
		j.grace = min(2*time.Second, most)
	}
	if j.grace > most {
		return misuse("--grace %v is too long for the session timeout of %v that the server has granted: at most %v", j.grace, timeout, most)
	}
	return nil
}

// supervise runs the command and returns its outcome. The command is told to end, and made to, while the hold is still certain.
func (j *job) supervise(cmd *exec.Cmd, hold *zklock.Hold, l *leash) error {
	c, err := startChild(cmd)
	if err != nil {
		return exit{codeCannotRun, err}
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	revoked := hold.Revoked()
	for {
		select {
		case err := <-c.exited:
			return j.outcome(c, hold, l, err)
		case sig := <-j.signals:
			c.signal(sig)
			continue
		case <-revoked:
			revoked = nil
			c.signal(terminate)
			continue
		case <-hold.Context().Done():
		case <-timer.C:
		}
		timer.Reset(j.enforce(c, hold, l))
	}
}

// enforce does to the command what the leash says and returns when to look again.
func (j *job) enforce(c *child, hold *zklock.Hold, l *leash) time.Duration {
	what, next := l.pull(time.Now(), hold.Remaining())
	switch what {
	case warn:
		fmt.Fprintf(j.std.err, "zklock: the lock on %s is about to be lost: no quorum answers. Ending the command.\n", hold.Path())
		c.signal(terminate)
	case end:
		c.kill()
	}
	return next
}

func (j *job) outcome(c *child, hold *zklock.Hold, l *leash, err error) error {
	lost := hold.Check()
	if lost == nil && l.pulled() {
		lost = fmt.Errorf("%w: no quorum answered in time", zklock.ErrLost)
	}
	if lost != nil {
		c.kill() // what the command has left behind
		return exit{codeLost, fmt.Errorf("the command was ended: %w", lost)}
	}
	var status *exec.ExitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &status):
		return exit{code: exitCode(status)}
	}
	return exit{codeCannotRun, err}
}

// release gives the lock back; if that fails it ends with the session all the same.
func (j *job) release(hold *zklock.Hold) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := hold.Unlock(ctx); err != nil && !errors.Is(err, zklock.ErrLost) {
		j.std.report(err)
	}
}
