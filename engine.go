package zklock

import "sync/atomic"

// engine is what all contenders of one client share.
type engine struct {
	*requests
	*watches
	*directories
	*ghosts
	*heart
	*mutes
	reporter
	alone    solitudes
	removals *tasks      // of nodes: Close waits for them, for a while
	readable atomic.Bool // we have read a node of our own once, so we may: all have one ACL
	failStop func(error) // see Options; nil for none
}
