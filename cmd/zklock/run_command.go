package main

import (
	"context"

	"github.com/zklock-go/zklock"
)

const runAbout = `
Waits for the lock at PATH, runs COMMAND while holding it, and releases it when the
command and all that it has started have ended. The command finds ZKLOCK_PATH,
ZKLOCK_NODE and ZKLOCK_TOKEN in its environment: give the token, which grows with every
grant, to whatever you write to.

If the lock is about to be lost, the command and the processes it has started get TERM,
and KILL after --grace, early enough that they have ended before another can hold; if it
was taken away (evict), they get KILL at once. A second process sees to that, so it is
done also if zklock itself is killed or stopped. A request to let go (revoke) is passed
on as TERM. Signals are passed on to the command.

A job that cron starts on several hosts wants --no-wait, or it runs once for each host,
and --once or --at-least, or it can run again on a host whose clock is behind.

` + exitCodes

// exitCodes is part of the help of what runs a command.
const exitCodes = `Exit code: the command's (128 plus the signal's number if one ended it), or
  64 wrong usage                      75 not acquired: another holds (see -E)
  69 no server reached                77 the server does not permit it
  70 the guardian has ended           79 lock lost, and the command ended
  74 run: done, --once not written    80 lock lost, and something goes on
  126 command cannot be executed      127 command not found
  2 no thread or memory for zklock: nothing was run; 1 any other failure of zklock
With each of its own codes, zklock says why on standard error.`

func runCommand(std streams) *command {
	f := newFlags(std, "run", "[flags] PATH -- COMMAND [ARGS...]", runAbout)
	j := &job{server: f.server().security(f), std: std}
	j.server.owner(f)
	f.StringVar(&j.server.label, "label", "", "`text` that others see as the owner (default: made of the command)")
	j.flags(f)
	var w waiting
	w.flags(f)
	var o once
	o.flags(f)
	shared := f.Bool("shared", false, "share the lock with others that do: a read lock")
	permits := f.Int("semaphore", 0, "let `n` hold at a time; all must say the same number")
	return &command{f, func(args []string) error {
		path, err := j.parse(f, args)
		if err == nil {
			err = w.check(f, j.server)
		}
		if err == nil {
			err = o.check(f)
		}
		switch {
		case err != nil:
			return err
		case f.given("semaphore") && *permits < 1:
			return misuse("run: --semaphore %d is not positive", *permits)
		case f.given("semaphore") && *shared:
			return misuse("run: --semaphore and --shared contradict each other")
		case f.given("lock-delay") && *permits > 0:
			return misuse("run: --lock-delay does nothing with --semaphore")
		case o.wanted() && (*shared || *permits > 0):
			return misuse("run: --once wants the lock for itself: not with --shared or --semaphore")
		}
		j.waiting, j.once = w, o
		return w.recode(j.run(func(ctx context.Context, client *zklock.Client) (*zklock.Hold, error) {
			take := func(ctx context.Context) (*zklock.Hold, error) {
				return o.take(ctx, client, path, locking(client, path, *shared, *permits, w.noWait))
			}
			if w.noWait {
				return j.server.attempt(ctx, take)
			}
			return take(ctx)
		}))
	}}
}

// locking returns the way to obtain what the flags ask for.
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
