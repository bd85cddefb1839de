package zklock

import (
	"time"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/session"
)

// Contender is a node in a queue, of any library.
type Contender struct {
	Node    string    // the full path in ZooKeeper
	Kind    string    // what it asks for: operate.KindLock …
	Client  string    // the library that created it, as its name shows: operate.ClientZklock …; empty if unknown
	Holds   bool      // whether it holds; while a lock-delay runs, nobody is shown to
	Token   int64     // Hold.Token, if it is a holder of this library
	Session int64     // the session that it belongs to, zero if no session ends it
	Since   time.Time // when it was created, by the server's clock
	Revoked bool      // whether it was asked to let go
	Data    []byte    // the node's data without such a request; of an election, the value
	Omitted int       // the number of bytes that Inspect has cut off Data, which it limits to 4 KiB

	Anonymous bool // created with Options.Anonymous: without host and process number
	Cohort    bool // kept by a process for its goroutines: it may stand while none of them holds

	// What a contender of this library says about itself, in its data.
	Host  string
	PID   int
	Label string
}

// contenderOf returns the Contender that a node is.
func contenderOf(dir string, e node.Entry, n session.Node) Contender {
	return Contender(e.View(dir, n.Data, n.Stat))
}
