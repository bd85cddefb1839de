package operate

import "github.com/zklock-go/zklock"

// Queue is the state of a lock, as Inspect has found it.
type Queue struct {
	Path       string             // as it was given to the client
	Contenders []zklock.Contender // in the order of their turns, holders first
	Permits    int                // the number of permits of a Semaphore, otherwise zero
	// Issued is the number of sequence numbers that the directory has given out. Its counter
	// ends at 2147483647. Beyond that, locks of this library stay correct and become slower;
	// those of other libraries admit several holders at once. A new path begins at zero.
	Issued int64
}

// The values of Contender.Kind: what a contender asks for.
const (
	KindLock   = "lock"   // to be the only one: a mutex, kazoo's write lock, an election
	KindWrite  = "write"  // to be the only one, where others read
	KindRead   = "read"   // to share with other readers
	KindLatch  = "latch"  // to lead, as Curator's LeaderLatch
	KindPermit = "permit" // a permit of a semaphore, or a place in the queue for some
)

// The values of Contender.Client: libraries that Inspect recognises by the names of their
// nodes.
const (
	ClientZklock  = "zklock"
	ClientCurator = "Curator"
	ClientKazoo   = "kazoo"
	ClientGo      = "go-zookeeper"
)
