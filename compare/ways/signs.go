package ways

import (
	"context"
	"sync"
)

// Sign is what a library tells a holder unasked.
type Sign string

// The signs.
const (
	Doubt Sign = "doubt" // the lock may be gone
	Trust Sign = "trust" // it is not, after a doubt
	Loss  Sign = "loss"  // it is
)

// Teller is a Locker whose library tells a holder, unasked, what has become of its lock.
type Teller interface {
	// Sign waits for the next sign after the last grant. It is for one goroutine at a time, which may be another than
	// the one that locks.
	Sign(ctx context.Context) (Sign, error)
}

// lossAt waits for the end of what a lock depends on.
func lossAt(ctx context.Context, end <-chan struct{}) (Sign, error) {
	select {
	case <-end:
		return Loss, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// signs is what a library has said of one connection, for all lockers on it.
type signs struct {
	mu   sync.Mutex
	all  []Sign        // guarded by mu
	more chan struct{} // guarded by mu; closed and made anew with each sign
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

// await returns the sign with that index as soon as there is one.
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
