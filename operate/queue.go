// SPDX-License-Identifier: Apache-2.0

package operate

import "github.com/zklock-go/zklock"

// Queue is the state of a lock as observed.
type Queue struct {
	Path       string             // as it was passed to the client
	Contenders []zklock.Contender // in queue order, holders first
	Permits    int                // for a Semaphore, the number of permits; otherwise zero
	// Issued is the number of sequence numbers that the directory has given out. Its counter ends
	// at 2147483647. After that, zklock's locks remain correct but become slower; locks of other
	// libraries are granted to several holders at once. A new path starts at zero.
	Issued int64
}

// The values of Contender.Kind, which describes what a contender requests.
const (
	KindLock   = "lock"   // exclusive: a mutex, kazoo's write lock, or an election
	KindWrite  = "write"  // exclusive, at a lock that has readers
	KindRead   = "read"   // shared with other readers
	KindLatch  = "latch"  // leadership, as in Curator's LeaderLatch
	KindPermit = "permit" // a semaphore's permit, or a place in the queue for permits
)

// The values of Contender.Client, the libraries that Inspect recognizes by the names of their
// nodes.
const (
	ClientZklock  = "zklock"
	ClientCurator = "Curator"
	ClientKazoo   = "kazoo"
	ClientGo      = "go-zookeeper"
)
