// Package fleet is a small shop whose workers use all kinds of locks: something to look at.
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

// Connect returns a client whose label others see.
type Connect func(ctx context.Context, label string) (*zklock.Client, error)

// Run has the workers at their work until ctx ends, which is not an error, or one of them fails. Their locks are below root.
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

// worker does one thing again and again.
type worker struct {
	label string
	turn  turn
}

// turn is what a worker does once.
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

// isPartOfIt reports whether an error is of those that an onlooker may bring about: an outage, a cut, an eviction.
func isPartOfIt(err error) bool {
	return errors.Is(err, zklock.ErrLost) || errors.Is(err, zklock.ErrEvicted) || errors.Is(err, zklock.ErrUncertain)
}

// workers returns the shop's staff.
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

// rest waits for a time between two others, or until ctx ends.
func rest(ctx context.Context, least, most time.Duration) { restUnless(ctx, nil, least, most) }

// restUnless is rest that also ends with stop.
func restUnless(ctx context.Context, stop <-chan struct{}, least, most time.Duration) {
	timer := time.NewTimer(least + rand.N(most-least))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-stop:
	case <-ctx.Done():
	}
}

// work is what is done under a hold. It ends early if the holder is asked to let go.
func work(ctx context.Context, hold *zklock.Hold, least, most time.Duration) error {
	inside, stop := context.WithCancel(hold.Context())
	defer stop()
	defer context.AfterFunc(ctx, stop)()
	restUnless(inside, hold.Revoked(), least, most)
	return hold.Unlock(context.WithoutCancel(ctx))
}

// under makes a turn of what acquires: work for a while, and let go.
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
		return c.Election(path, nil).Campaign(ctx, []byte(value))
	})
}

func cohort(path string) turn {
	return under(500*time.Millisecond, 2*time.Second, func(ctx context.Context, c *zklock.Client) (*zklock.Hold, error) {
		return c.Cohort(path, nil).Lock(ctx)
	})
}

// patience is how long a transfer waits for its second account: long enough that a circle can be seen.
const patience = 8 * time.Second

// both takes two locks one after the other: two workers that do so in different orders can wait for each other.
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
			err = nil // it tries again
		}
		return errors.Join(err, outer.Unlock(context.WithoutCancel(ctx)))
	}
}
