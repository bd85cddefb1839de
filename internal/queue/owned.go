package queue

import (
	"fmt"

	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/session"
)

// maxOwned is how long the paths of our nodes may be that end with one session, which several clients can share. ZooKeeper
// writes them into one transaction. By default it reads none of 2 MiB, and no server starts again that has logged one:
// ZOOKEEPER-4306. The program can have nodes of its own on a connection that it shares with us.
const maxOwned = 1_750_000

// addOwned adds n, which may be negative, to the length of the paths of our nodes that end with s, unless that would be over
// the limit.
func addOwned(s *session.Session, n int) error {
	if sum, ok := s.Own(n, maxOwned); !ok {
		return fmt.Errorf("%w: the paths of all nodes of the client would have %d bytes, the limit is %d", outcome.ErrLimit, sum, maxOwned)
	}
	return nil
}
