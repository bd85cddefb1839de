package zklock

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/session"
)

// Contender is a node in a queue, of any library.
type Contender struct {
	Node    string    // the full path in ZooKeeper
	Kind    string    // what it asks for: operate.KindLock …
	Client  string    // the library that created it, as its name shows: operate.ClientZklock …; empty if unknown
	Holds   bool      // whether it holds; while a lock-delay runs, nobody does
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

// The values of Contender.Kind; package operate has them, too.
const (
	kindLock   = "lock"
	kindWrite  = "write"
	kindRead   = "read"
	kindLatch  = "latch"
	kindPermit = "permit"
)

// maxShown is how much of a node's data Inspect keeps.
const maxShown = 4 << 10

// shortened returns who with its data cut to maxShown, and a copy, so that the rest can be
// freed.
func shortened(who Contender) Contender {
	if len(who.Data) > maxShown {
		who.Omitted = len(who.Data) - maxShown
		who.Data = bytes.Clone(who.Data[:maxShown])
	}
	return who
}

// beginning returns as much of text as a label may be long.
func beginning(text string) string {
	if len(text) <= node.MaxLabel {
		return text
	}
	return strings.Clone(strings.ToValidUTF8(text[:node.MaxLabel], "")) // the last character may be cut
}

// newContenderOf returns the Contender that a node is.
func newContenderOf(dir string, e node.Entry, n session.Node) Contender {
	who := Contender{
		Node: dir + "/" + e.Name, Kind: kindOf(e.Name), Client: node.ClientOf(e.Name),
		Token: n.Stat.Czxid, Session: n.Stat.EphemeralOwner, Since: time.UnixMilli(n.Stat.Ctime),
		Revoked: node.IsRevocation(n.Data), Data: node.WithoutRevocation(n.Data),
	}
	o, ok := node.ReadOwner(who.Data)
	who.Anonymous, who.Cohort = ok && o.PID == node.Nobody, ok && o.Cohort
	if who.Client == node.ClientZklock && json.Unmarshal(n.Data, &o) == nil {
		who.Host, who.PID, who.Label = beginning(o.Host), max(0, o.PID), beginning(o.Label)
	}
	if e.Shared {
		who.Kind = kindRead
	}
	return who
}

func kindOf(name string) string {
	switch {
	case strings.Contains(name, node.ReaderInfix[1:]), strings.Contains(name, node.KazooReadInfix):
		return kindRead
	case strings.Contains(name, node.WriterInfix[1:]):
		return kindWrite
	case strings.Contains(name, node.LatchInfix):
		return kindLatch
	}
	return kindLock
}

func (who Contender) name() string { return who.Node[strings.LastIndexByte(who.Node, '/')+1:] }

// check returns ErrInvalid if the node is not a contender's: no other node may be written to
// or removed.
func (who Contender) check() error {
	if err := node.CheckPath(who.Node); err != nil {
		return err
	}
	if _, ok := node.ParseEntry(who.name()); !ok {
		return fmt.Errorf("%w: %q is not the node of a contender", ErrInvalid, who.Node)
	}
	return nil
}
