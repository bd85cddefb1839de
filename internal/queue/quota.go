// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"

	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/session"
)

// MaxOwned is the maximum total length of the paths of our nodes that end with one session, which
// several clients can share. ZooKeeper writes the paths in one transaction. By default it cannot
// read a transaction of 2 MiB, and a server that has logged one does not start again:
// ZOOKEEPER-4306. The program can have other nodes on a connection that it shares with us.
const MaxOwned = 1_750_000

// addOwned adds n, which may be negative, to the total length of the paths of our nodes that end
// with s. If that would exceed the limit, it adds nothing and returns ErrLimit.
func addOwned(s *session.Session, n int) error {
	if sum, ok := s.Own(n, MaxOwned); !ok {
		return fmt.Errorf("%w: paths of the client's nodes would take %d bytes, limit is %d", outcome.ErrLimit, sum, MaxOwned)
	}
	return nil
}
