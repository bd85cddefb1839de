// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/cmd/zklock/internal/cli"
	"github.com/zklock-go/zklock/cmd/zklock/internal/job"
	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
)

const runAbout = `
Waits for the lock at PATH, runs COMMAND while holding it, and releases it once the
command and every process it started have exited. ZKLOCK_PATH, ZKLOCK_NODE and
ZKLOCK_TOKEN are set in the command's environment. Pass the token, which increases with
every grant, along with your writes so that stale writers can be rejected.

If the lock is about to be lost, the command and the processes it started get TERM, and
KILL after --grace, early enough to exit before anyone else can hold the lock. If the
lock was taken away (zklock evict), they get KILL at once. A second process enforces this
even if zklock itself is killed or stopped. If the holder is asked to release the lock
(zklock revoke), the command gets TERM. Signals sent to zklock are passed to the command.
A command that hangs keeps the lock, unless --max-run says how long it may run.

For a cron job on several hosts, use --no-wait (otherwise it runs once per host) and
--every or --at-least (otherwise a host whose clock lags may run it again).

` + exitCodes

// exitCodes is part of the help of run and elect.
const exitCodes = `Exit code: the command's (128 plus the signal's number if one ended it), or
  64 usage error                      75 not acquired: the lock is held (see -E)
  69 no server reached                77 the server refused permission
  70 the guardian process died        79 lock lost, the command was ended
  73 no room for the name of --once   80 lock lost, a process is still running
  74 succeeded, slot not recorded     126 command cannot be executed
  82 the health check failed          127 command not found
  124 it ran longer than --max-run, and was ended
  2 zklock ran out of threads or memory, nothing was run; 1 any other failure of zklock
With each of its own codes, zklock prints the reason to standard error.`

func runCommand(std cli.Streams) *cli.Command {
	f := cli.NewFlags(std, "run", "[flags] PATH -- COMMAND [ARGS...]", runAbout)
	j := job.New(f)
	f.StringVar(&j.Server.Label, "label", "", "`text` shown to others as the owner (default: derived from the command)")
	j.Once.Flags(f)
	f.Foreign("exclusive is the default: leave it out", "e", "x", "exclusive")
	f.Foreign("use --shared", "s", "r", "read")
	f.BoolVar(&j.Shared, "shared", false, "take a read lock, shared with other --shared holders")
	f.IntVar(&j.Permits, "semaphore", 0, "allow `n` holders at once; all clients must use the same number")
	return f.Command(func(args []string) error {
		err := j.Parse(f, args)
		switch {
		case err != nil:
			return err
		case f.Given("semaphore") && j.Permits < 1:
			return outcome.Misuse("run: --semaphore %d is not positive", j.Permits)
		case f.Given("semaphore") && j.Shared:
			return outcome.Misuse("run: --semaphore and --shared cannot be combined")
		case f.Given("lock-delay") && j.Permits > 0:
			return outcome.Misuse("run: --lock-delay has no effect with --semaphore")
		case j.Once.Wanted() && (j.Shared || j.Permits > 0):
			return outcome.Misuse("run: --every and --once need an exclusive lock: they cannot be combined with --shared or --semaphore")
		}
		return j.Run(func(ctx context.Context, client *zklock.Client) (*zklock.Hold, error) {
			take := func(ctx context.Context) (*zklock.Hold, error) {
				return j.Once.Take(ctx, client, j.Path, locking(client, j.Path, j.Shared, j.Permits, j.NoWait()))
			}
			if j.NoWait() {
				return j.Server.Attempt(ctx, take, client.Election(j.Path).Leader)
			}
			return take(ctx)
		})
	})
}

// locking returns the function that acquires the kind of lock that the flags select.
func locking(client *zklock.Client, path string, shared bool, permits int, noWait bool) func(context.Context) (*zklock.Hold, error) {
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
		return try
	}
	return lock
}
