// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"fmt"
	"time"

	"github.com/zklock-go/zklock/compare/ways"
)

// crash kills the holder's process while another client waits, and measures the time until that client holds the lock. It
// measures all ways at the same time, since this is mostly waiting.
func (b *bench) crash(ctx context.Context) error {
	at := endpoints(b.singles)
	for round := range b.plan.Repeats {
		err := each(len(b.ways), func(i int) error {
			w := b.ways[i]
			values, err := b.crashOne(ctx, w, at, round)
			b.tell(Sample{Work: "crash", Way: w.Info().Name, Round: round}, values, err)
			return ctx.Err()
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) crashOne(ctx context.Context, w ways.Way, at ways.Endpoints, round int) (map[string]float64, error) {
	ctx, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	name := b.lockName()
	holder, err := newActor(ctx, w, at, name)
	if err != nil {
		return nil, err
	}
	defer holder.peer.Kill()
	f, err := assemble(ctx, w, 1, 1, []string{name})
	defer f.close()
	if err != nil {
		return nil, err
	}
	if err := holder.locker.Lock(ctx); err != nil {
		return nil, err
	}
	got := make(chan error, 1)
	// Owned by crashOne, which waits for its result, or abandons it when ctx is done.
	go func() { got <- f.lockers[0].Lock(ctx) }()
	// Let the next client queue. In each round, the crash comes at another time within the holder's renewal interval.
	if err := ways.Pause(ctx, time.Second+time.Duration(round)*270*time.Millisecond); err != nil {
		return nil, err
	}
	died := time.Now()
	holder.peer.Kill()
	select {
	case err := <-got:
		if err != nil {
			return nil, err
		}
	case <-ctx.Done():
		return nil, fmt.Errorf("the lock was not granted within a minute: %w", ctx.Err())
	}
	recovery := time.Since(died)
	return map[string]float64{Recovery: recovery.Seconds()}, f.lockers[0].Unlock(ctx)
}

// actor is a process with one session and one contender.
type actor struct {
	peer   *ways.Peer
	locker ways.Locker
}

func newActor(ctx context.Context, w ways.Way, at ways.Endpoints, name string) (*actor, error) {
	peer, err := ways.Spawn(w, at)
	if err != nil {
		return nil, err
	}
	session, err := peer.Open(ctx)
	if err != nil {
		peer.Kill()
		return nil, err
	}
	locker, err := session.Locker(ctx, name)
	if err != nil {
		peer.Kill()
		return nil, err
	}
	return &actor{peer: peer, locker: locker}, nil
}
