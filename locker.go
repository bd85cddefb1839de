package zklock

import "context"

// Locker is a lock that LockAll can take: a Mutex, a Reentrant, an RWMutex (to write), an
// RWMutex's Reader, or a Semaphore's Permits.
type Locker interface {
	Lock(ctx context.Context) (*Hold, error)
	lockable() lockable
}

// PathOf returns the path of a lock, as it was given to the client.
func PathOf(lock Locker) string { return lock.lockable().path }

// lockable is what LockAll needs to know about a lock.
type lockable struct {
	c    *Client
	path string // as it was given to the client
	err  error  // of a bad argument, found without asking a server
	// enters is the recipe whose holds of the path let this lock be entered again; mostly none.
	enters string
}
