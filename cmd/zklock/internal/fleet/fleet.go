// SPDX-License-Identifier: Apache-2.0

// Package fleet simulates a small shop whose workers use all kinds of locks, for demonstrations.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/zklock-go/zklock"
)

// Connect returns a client with the given label.
type Connect func(ctx context.Context, label string) (*zklock.Client, error)

// Run runs the workers until ctx is done or one of them fails. Their locks are below root. If ctx is done, Run returns nil.
func Run(ctx context.Context, root string, connect Connect) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for _, w := range workers(root) {
		// Owned by this call, which waits; ends with ctx.
		all.Go(func() {
			if err := w.run(ctx, connect); err != nil && ctx.Err() == nil {
				cancel(fmt.Errorf("%s: %w", w.label, err))
			}
		})
	}
	<-ctx.Done()
	all.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// worker repeats one task.
type worker struct {
	label string
	turn  turn
}

// turn is one execution of a worker's task.
type turn = func(ctx context.Context, client *zklock.Client) error

func (w worker) run(ctx context.Context, connect Connect) error {
	client, err := connect(ctx, w.label)
	if err != nil {
		return err
	}
	defer client.Close()
	for ctx.Err() == nil {
		err := w.turn(ctx, client)
		if err != nil && ctx.Err() == nil && !isPartOfIt(err) {
			return err
		}
		rest(ctx, 200*time.Millisecond, 3*time.Second)
	}
	return nil
}

// isPartOfIt reports whether an error is one that a user of the demo can cause: an outage, a partition or an eviction.
func isPartOfIt(err error) bool {
	return errors.Is(err, zklock.ErrLost) || errors.Is(err, zklock.ErrEvicted) || errors.Is(err, zklock.ErrUncertain)
}

// workers returns the shop's workers.
func workers(root string) (all []worker) {
	add := func(n int, name string, turn turn) {
		if n == 1 {
			all = append(all, worker{name, turn})
			return
		}
		for i := range n {
			all = append(all, worker{fmt.Sprintf("%s %d", name, i+1), turn})
		}
	}
	add(7, "checkout", mutex(root+"/orders/checkout", 300*time.Millisecond, 1500*time.Millisecond))
	add(1, "daily report", mutex(root+"/reports/daily", 20*time.Second, 40*time.Second))
	add(2, "invoices", mutex(root+"/reports/invoices", time.Second, 4*time.Second))
	add(2, "stock writer", write(root+"/stock"))
	add(4, "stock reader", read(root+"/stock"))
	add(6, "label printer", permit(root+"/printers", 3))
	for i := range 3 {
		add(1, "node", lead(root+"/leader", fmt.Sprintf("10.0.0.%d:8080", 11+i)))
	}
	add(2, "cache", cohort(root+"/cache/rebuild"))
	add(1, "transfer a to b", both(root+"/accounts/a", root+"/accounts/b"))
	add(1, "transfer b to a", both(root+"/accounts/b", root+"/accounts/a"))
	return all
}

// rest waits for a random time between least and most, or until ctx is done.
func rest(ctx context.Context, least, most time.Duration) { restUnless(ctx, nil, least, most) }

// restUnless is like rest, but also returns when stop is closed.
func restUnless(ctx context.Context, stop <-chan struct{}, least, most time.Duration) {
	timer := time.NewTimer(least + rand.N(most-least))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-stop:
	case <-ctx.Done():
	}
}

// work simulates work under a hold and then unlocks it. It ends early if the hold is lost or revoked, or if ctx is done.
func work(ctx context.Context, hold *zklock.Hold, least, most time.Duration) error {
	inside, stop := context.WithCancel(hold.Context())
	defer stop()
	defer context.AfterFunc(ctx, stop)()
	restUnless(inside, hold.Revoked(), least, most)
	return hold.Unlock(context.WithoutCancel(ctx))
}

// under returns a turn that acquires a lock with acquire, works for a while and releases it.
func under(least, most time.Duration, acquire func(ctx context.Context, client *zklock.Client) (*zklock.Hold, error)) turn {
	return func(ctx context.Context, client *zklock.Client) error {
		hold, err := acquire(ctx, client)
		if err != nil {
			return err
		}
		return work(ctx, hold, least, most)
	}
}

func mutex(path string, least, most time.Duration) turn {
	return under(least, most, func(ctx context.Context, c *zklock.Client) (*zklock.Hold, error) { return c.Mutex(path).Lock(ctx) })
}

func write(path string) turn {
	return under(500*time.Millisecond, 2*time.Second, func(ctx context.Context, c *zklock.Client) (*zklock.Hold, error) { return c.RWMutex(path).Lock(ctx) })
}

func read(path string) turn {
	return under(500*time.Millisecond, 2*time.Second, func(ctx context.Context, c *zklock.Client) (*zklock.Hold, error) { return c.RWMutex(path).RLock(ctx) })
}

func permit(path string, permits int) turn {
	return under(time.Second, 4*time.Second, func(ctx context.Context, c *zklock.Client) (*zklock.Hold, error) {
		return c.Semaphore(path, permits).Acquire(ctx, 1)
	})
}

func lead(path, value string) turn {
	return under(6*time.Second, 15*time.Second, func(ctx context.Context, c *zklock.Client) (*zklock.Hold, error) {
		return c.Election(path).Campaign(ctx, []byte(value))
	})
}

func cohort(path string) turn {
	return under(500*time.Millisecond, 2*time.Second, func(ctx context.Context, c *zklock.Client) (*zklock.Hold, error) {
		return c.Cohort(path).Lock(ctx)
	})
}

// patience is how long a transfer waits for its second account. It is long enough for a cycle to be seen.
const patience = 8 * time.Second

// both acquires two locks one after the other. Two workers that do so in different orders can wait for each other.
func both(first, second string) turn {
	return func(ctx context.Context, c *zklock.Client) error {
		outer, err := c.Mutex(first).Lock(ctx)
		if err != nil {
			return err
		}
		rest(ctx, 500*time.Millisecond, 2*time.Second)
		waiting, stop := context.WithTimeout(ctx, patience)
		defer stop()
		inner, err := c.Mutex(second).Lock(waiting)
		switch {
		case err == nil:
			err = work(ctx, inner, time.Second, 2*time.Second)
		case waiting.Err() != nil:
			err = nil // give up and try again
		}
		return errors.Join(err, outer.Unlock(context.WithoutCancel(ctx)))
	}
}
