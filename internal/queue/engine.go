package queue

import (
	"sync/atomic"
	"time"

	"github.com/zklock-go/zklock/internal/session"
)

// Engine is what all contenders of one client share.
type Engine struct {
	*session.Requests
	*session.Watches
	*session.Directories
	*session.PendingCreates
	*session.Heart
	*Unnoted
	Reporter
	alone    recent[solitude] // directories in which we were alone when we last looked
	crowded  recent[struct{}] // directories in which we expected to be alone and were not
	leaving  leavers          // our nodes on their way out
	records  recent[recordAt] // of locks that we have released
	waits    waits
	Removals *session.Tasks // of nodes: Close waits for them, for a while
	readable atomic.Bool    // we have read a node of our own once, so we may: all have one ACL
	FailStop func(error)    // see Options; nil for none
	Delay    time.Duration  // see Options.LockDelay; zero for none
}

// Waiting returns a line for each place that waits, in the order of their paths.
func (c *Engine) Waiting() []string { return c.waits.all() }
