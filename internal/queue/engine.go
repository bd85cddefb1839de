// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/zklock-go/zklock/internal/conn"
	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/session"
)

// A Hub is where the clients of one connection meet.
type Hub struct {
	*session.Hub
	holders   holders
	leftovers *leftovers
}

// NewHub returns the Hub of a connection that has no clients yet.
func NewHub(l *conn.Link) *Hub {
	h := &Hub{Hub: session.NewHub(l)}
	h.leftovers = newLeftovers(h.Hub)
	return h
}

// Engine is the state that all contenders of one client share.
type Engine struct {
	Requests    *session.Requests
	Watches     *session.Watches
	Directories *session.Directories
	Heart       *session.Heart
	Unnoted     *Unnoted
	Reporter    Reporter
	alone       recent[lastAlone]
	// noRecord contains directories of locks whose record we recently deleted; others may have
	// created one since.
	noRecord recent[struct{}]
	// fixedRecords contains directories of locks whose record we may not delete.
	fixedRecords recent[struct{}]
	acquires     acquires
	refused      refusals
	lent         lent
	Hub          *Hub           // where the clients of the connection meet
	Removals     *session.Tasks // delete nodes; Close waits for them for a while
	readable     atomic.Bool    // set once we have read a node of our own: all of them have the same ACL
	FailStop     func(error)    // see Options; may be nil
	Delay        time.Duration  // see Options.LockDelay; zero if there is none
}

// Status returns a line for each acquire that waits, and for each node that cannot be deleted,
// sorted by path.
func (en *Engine) Status() []string {
	lines := append(en.acquires.lines(), en.refused.lines()...)
	slices.Sort(lines)
	return lines
}

// explain adds to err, with which an acquire ended, what the acquire waited for.
func (en *Engine) explain(err error, pr *progress) error {
	what := pr.text()
	if what == "" {
		what = "a reply from the servers"
		if s, _ := en.Requests.Link.State(); s == nil {
			what = "a connection to a server"
		}
	}
	return outcome.WaitedFor(err, what)
}
