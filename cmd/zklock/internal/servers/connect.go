// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"cmp"
	"context"
	"errors"
	"net"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/cmd/zklock/internal/cli"
	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
)

// Use connects, calls do, and closes the client. The context is canceled by an interrupt or TERM.
func (s *Flags) Use(do func(ctx context.Context, client *zklock.Client) error) error {
	ctx, stop := cli.UntilInterrupted()
	defer stop()
	client, err := s.Connect(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	inside, release := UntilDenied(ctx, client)
	defer release()
	err = OrDenial(client, do(inside, client))
	switch {
	case err != nil && ctx.Err() != nil:
		return outcome.Interrupted()
	case err == nil && ctx.Err() == nil:
		return context.Cause(inside) // do may end without an error when its context does
	}
	return err
}

// Ask calls question, which sends a few requests. If it takes longer than --connect-timeout, the servers count as not
// reached.
func (s *Flags) Ask(ctx context.Context, question func(context.Context) error) error {
	return s.AskFor(ctx, s.Patience, question)
}

// AskFor is like Ask, with another time limit.
func (s *Flags) AskFor(ctx context.Context, patience time.Duration, question func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := question(limited)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return outcome.Unavailable.Errorf("no answer within %v (--connect-timeout)", patience)
	}
	return err
}

// Attempt calls take, which tries to acquire a lock without waiting for other contenders. If the lock is held, Attempt
// returns that error even if it came late, with the holder if find finds it. If no server answers, the servers count as not
// reached: a job that no host runs must not look like a job that another host runs.
func (s *Flags) Attempt(ctx context.Context, take func(context.Context) (*zklock.Hold, error), find func(context.Context) (zklock.Contender, error)) (*zklock.Hold, error) {
	var hold *zklock.Hold
	var answer error
	err := s.Ask(ctx, func(ctx context.Context) error {
		hold, answer = take(ctx)
		if errors.Is(answer, context.DeadlineExceeded) && !errors.Is(answer, zklock.ErrLocked) {
			return answer
		}
		if errors.Is(answer, zklock.ErrLocked) {
			holder, _ := find(ctx)
			answer = Locked{Holder: holder}
		}
		return nil
	})
	return hold, cmp.Or(err, answer)
}

// Connect returns a client with a session, or a one-line error that says why there is none. It gives up after
// --connect-timeout or when ctx is done.
func (s *Flags) Connect(ctx context.Context) (*zklock.Client, error) {
	opts, d, err := s.dialOptions()
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, s.Patience)
	defer cancel()
	inside, giveUp := context.WithCancelCause(limited)
	defer giveUp(nil)
	if s.Hasty {
		d.servers, d.failed, d.allFail = s.count(), map[string]bool{}, giveUp
	}
	until, _ := limited.Deadline()
	within := max(outcome.Roundly(time.Until(until)), time.Millisecond)
	unhook := context.AfterFunc(limited, d.abort) // a dial in progress must not outlive the timeout
	client, err := zklock.Connect(inside, []string{s.Address()}, opts)
	if err == nil && unhook() {
		s.Contact.expect(client.SessionTimeout())
		opts.Logger.Info("session established", "timeout", client.SessionTimeout())
		return client, nil
	}
	d.abort()
	switch {
	case err == nil:
		client.Close()
		err = context.Cause(limited)
	case errors.Is(context.Cause(inside), errNoneReached):
		return nil, outcome.Unavailable.Errorf("%w: %s", errNoneReached, d.outcome())
	}
	return nil, d.failure(ctx, within, err)
}

// Dialing returns options whose dialer connects to the same server each time it dials the same name, and a function that ends its dials.
func (s *Flags) Dialing() (opts *zklock.Options, abort func(), err error) {
	opts, d, err := s.dialOptions()
	if err != nil {
		return nil, nil, err
	}
	d.stays = true
	return opts, d.abort, nil
}

// dialOptions returns the options with their dialer.
func (s *Flags) dialOptions() (*zklock.Options, *dialer, error) {
	opts, err := s.Options()
	if err != nil {
		return nil, nil, err
	}
	d, err := s.newDialer(opts.Logger)
	if err != nil {
		return nil, nil, err
	}
	opts.Dialer = d.dial
	s.dialer = d
	return opts, d, nil
}

// failure returns the error of a client that has got no session.
func (d *dialer) failure(ctx context.Context, within time.Duration, err error) error {
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return outcome.Interrupted()
	case isLate(err) && d.answered(): // the session came too late
		return outcome.Unavailable.Errorf("no session within %v: the time was too short", within)
	case !errors.Is(err, context.DeadlineExceeded), errors.Is(err, zk.ErrAuthFailed), d.answered():
		return FailedToConnect(err) // the library says more
	}
	return outcome.Unavailable.Errorf("no server answered within %v: %s", within, cmp.Or(d.outcome(), "the time was too short"))
}

// isLate reports whether err says that the time was over, and nothing else. At that moment the dials end, too.
func isLate(err error) bool {
	return err == context.DeadlineExceeded || errors.Unwrap(err) == context.DeadlineExceeded ||
		errors.Is(err, context.DeadlineExceeded) && errors.Is(err, net.ErrClosed)
}

// FailedToConnect returns err with the verdict for its cause, or with Unavailable if there is none.
func FailedToConnect(err error) error {
	err = outcome.ByCause(err)
	if outcome.HasVerdict(err) {
		return err
	}
	return outcome.Unavailable.Of(err)
}

// Failures says which servers zklock could not reach when it last tried, and why, or returns "".
func (s *Flags) Failures() string { return s.dialer.failures() }

// Locked is an ErrLocked with the contender that was found to hold.
type Locked struct {
	Holder zklock.Contender
}

// Error returns the text of ErrLocked.
func (Locked) Error() string { return zklock.ErrLocked.Error() }

// Unwrap returns ErrLocked.
func (Locked) Unwrap() error { return zklock.ErrLocked }
