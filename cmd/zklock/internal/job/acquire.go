// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/cmd/zklock/internal/guardian"
	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
	"github.com/zklock-go/zklock/cmd/zklock/internal/servers"
	"github.com/zklock-go/zklock/cmd/zklock/internal/show"
	"github.com/zklock-go/zklock/cmd/zklock/internal/signals"
	"github.com/zklock-go/zklock/internal/escape"
)

// closeTime bounds how long giving up takes after a signal, and if servers answer.
const closeTime = time.Second

// acquire connects and acquires the lock, unless a signal comes first. If it returns an error, it has closed the client: if
// servers answer, no node is left.
func (j *Job) acquire(take func(context.Context, *zklock.Client) (*zklock.Hold, error)) (*zklock.Client, *zklock.Hold, error) {
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
	// Owned by this call, which waits for it, but not for long after a signal: then the process ends.
	go func() {
		client, err := j.Server.Connect(ctx)
		if err != nil {
			answered <- answer{err: err}
			return
		}
		err = j.settleGrace(client.SessionTimeout())
		if err != nil {
			answered <- answer{client: client, err: err}
			return
		}
		err = j.refuseNested(ctx, client)
		if err != nil {
			answered <- answer{client: client, err: j.notAcquired(nil, err)}
			return
		}
		q := j.askLater(ctx, client)
		ctx, release := servers.UntilDenied(ctx, client)
		defer release()
		hold, err := take(ctx, client)
		answered <- answer{client, hold, j.notAcquired(q, servers.OrDenial(client, err))}
	}()
	var told error            // set when a signal has ended the wait
	var late <-chan time.Time // closed when that was too long ago
	for {
		select {
		case sig := <-j.signals:
			if code, ends := signals.EndsWaiting(sig); ends && told == nil {
				told = guardian.ExitAfter(sig, code, j.terminal)
				late = time.After(closeTime)
				cancel(told)
			}
		case a := <-answered:
			switch {
			case told != nil:
				shutDown(a.client, closeTime) // also releases a hold that came too late
				return nil, nil, told
			case outcome.Unavailable.Is(a.err):
				shutDown(a.client, 0)
			case a.err != nil:
				shutDown(a.client, closeTime)
			}
			return a.client, a.hold, a.err
		case <-late:
			return nil, nil, told
		}
	}
}

// shutDown closes a client, for at most about d: the process ends after that, and what is left ends with the session.
func shutDown(client *zklock.Client, d time.Duration) {
	if client == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	closed := make(chan struct{})
	// Owned by the process; ends at most a second after ctx.
	go func() {
		defer close(closed)
		client.Shutdown(ctx)
	}()
	select {
	case <-closed:
	case <-ctx.Done():
	}
}

// notAcquired returns an acquire's error with the verdict of its cause.
func (j *Job) notAcquired(q *question, err error) error {
	err = outcome.ByCause(err)
	switch {
	case err == nil || outcome.HasVerdict(err):
		return err
	case errors.Is(err, zklock.ErrLocked):
		return outcome.NotAcquired.Of(errors.New(j.not() + ": " + j.heldBy(err)))
	case !errors.Is(err, context.DeadlineExceeded) || q == nil:
		return err
	}
	return j.gaveUp(q)
}

func (j *Job) not() string {
	if j.Election {
		return "not elected"
	}
	return "not acquired"
}

// heldBy returns who holds the lock, according to an error.
func (j *Job) heldBy(err error) string {
	var l servers.Locked
	errors.As(err, &l)
	return j.holding(l.Holder)
}

// holding says who holds the lock, if that is known.
func (j *Job) holding(who zklock.Contender) string {
	path := escape.Short(j.Path, 512)
	switch {
	case who.Node == "" || !who.Holds:
		return path + " is not free"
	case j.Election && who.Label == "" && who.Host == "" && !who.Anonymous: // a lock's contender describes itself in another way
		return fmt.Sprintf("%s is led by %q", path, show.Value(who))
	}
	return fmt.Sprintf("%s is held by %s", path, described(who))
}

// described returns what a contender says of itself.
func described(who zklock.Contender) string {
	text := "a client that does not say who it is"
	switch {
	case who.Label != "":
		text = fmt.Sprintf("%q", escape.Short(who.Label, 60))
	case who.Anonymous:
		text = "an anonymous client"
	case who.Host == "" && len(who.Data) > 0:
		text = fmt.Sprintf("%q", escape.Short(string(who.Data), 60))
	case who.Host != "":
		return fmt.Sprintf("process %d on %s", who.PID, escape.Short(who.Host, 64))
	}
	if who.Host != "" {
		text += fmt.Sprintf(" (host %s, process %d)", escape.Short(who.Host, 64), who.PID)
	}
	return text
}
