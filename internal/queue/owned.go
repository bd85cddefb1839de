package queue

import (
	"fmt"
	"sync"

	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/session"
)

// maxOwned is how long the paths of our nodes may be that end with one session. ZooKeeper writes them into one transaction.
// By default it reads none of 2 MiB, and no server starts again that has logged one: ZOOKEEPER-4306. The program can have
// nodes of its own on a connection that it shares with us.
const maxOwned = 1_750_000

// owned adds up the paths of our nodes, by the session that they end with.
type owned struct {
	mu    sync.Mutex
	bytes map[*session.Session]int // guarded by mu
}

// add adds n, which may be negative, unless the sum would be over the limit.
func (o *owned) add(s *session.Session, n int) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	sum := o.bytes[s] + n
	switch {
	case n > 0 && sum > maxOwned:
		return fmt.Errorf("%w: the paths of all nodes of the client would have %d bytes, the limit is %d", outcome.ErrLimit, sum, maxOwned)
	case sum == 0:
		delete(o.bytes, s)
	case o.bytes == nil:
		o.bytes = map[*session.Session]int{s: sum}
	default:
		o.bytes[s] = sum
	}
	return nil
}
