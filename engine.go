package zklock

import (
	"sync/atomic"
	"time"
)

// engine is what all contenders of one client share.
type engine struct {
	*requests
	*watches
	*directories
	*ghosts
	*heart
	*mutes
	reporter
	alone    recent[solitude] // directories in which we were alone when we last looked
	crowded  recent[struct{}] // directories in which we expected to be alone and were not
	leaving  leavers          // our nodes on their way out
	records  recent[recordAt] // of locks that we have released
	removals *tasks           // of nodes: Close waits for them, for a while
	readable atomic.Bool      // we have read a node of our own once, so we may: all have one ACL
	failStop func(error)      // see Options; nil for none
	delay    time.Duration    // see Options.LockDelay; zero for none
}
