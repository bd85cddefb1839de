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
	alone    recent[solitude] // contains only directories in which our last look saw nobody else; others may stand there by now
	crowded  recent[struct{}] // contains those in which we expected to be alone of late and were not; perhaps nobody is there now
	leaving  leavers          // counts each node of ours whose caller no longer waits for its end, until that is certain
	records  recent[recordAt] // contains only records that we wrote at a release; others may have written since
	waits    waits
	holders  holders
	Removals *session.Tasks // of nodes: Close waits for them, for a while
	readable atomic.Bool    // set only once we have read a node of our own: all have one ACL
	FailStop func(error)    // see Options; nil for none
	Delay    time.Duration  // see Options.LockDelay; zero for none
}

// Waiting returns a line for each place that waits, in the order of their paths.
func (c *Engine) Waiting() []string { return c.waits.all() }
