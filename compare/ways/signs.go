// SPDX-License-Identifier: Apache-2.0

package ways

import (
	"context"
	"sync"
)

// Sign is a signal that a library sends to a holder.
type Sign string

// The signs.
const (
	Doubt Sign = "doubt" // the lock may be lost
	Trust Sign = "trust" // after a doubt: the lock is still held
	Loss  Sign = "loss"  // the lock is lost
)

// Teller is a Locker whose library notifies a holder of the state of its lock.
type Teller interface {
	// Sign waits for the next sign after the last grant. Only one goroutine may call it at a time; it need not be the
	// one that locks.
	Sign(ctx context.Context) (Sign, error)
}

// lossAt returns Loss when end is closed.
func lossAt(ctx context.Context, end <-chan struct{}) (Sign, error) {
	select {
	case <-end:
		return Loss, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// signs are the signals of one connection, for all lockers on it.
type signs struct {
	mu   sync.Mutex
	all  []Sign        // guarded by mu
	more chan struct{} // guarded by mu; closed and replaced with each sign
}

func (s *signs) add(one Sign) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, one)
	close(s.more)
	s.more = make(chan struct{})
}

func (s *signs) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all)
}

// await waits until there is a sign with that index and returns it.
func (s *signs) await(ctx context.Context, index int) (Sign, error) {
	for {
		s.mu.Lock()
		all, more := s.all, s.more
		s.mu.Unlock()
		if index < len(all) {
			return all[index], nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}
