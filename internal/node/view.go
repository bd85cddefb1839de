// SPDX-License-Identifier: Apache-2.0

package node

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
)

// View describes a node in a queue. Its fields are those of zklock.Contender, which documents them.
type View struct {
	Node    string
	Kind    string
	Client  string
	Holds   bool
	Token   int64
	Session int64
	Since   time.Time
	Revoked bool
	Data    []byte
	Omitted int

	Anonymous bool
	Cohort    bool

	Host  string
	PID   int
	Label string
}

// Lock returns the kind of lock that the entry belongs to, for error texts.
func (e Entry) Lock() string {
	switch kindOf(e.Name) {
	case KindRead, KindWrite:
		return "read-write lock"
	case KindLatch:
		return "leader latch"
	}
	return "mutex or election"
}

// The values of View.Kind.
const (
	KindLock   = "lock"
	KindWrite  = "write"
	KindRead   = "read"
	KindLatch  = "latch"
	KindPermit = "permit"
)

// beginning returns text cut to the maximum length of a label.
func beginning(text string) string {
	if len(text) <= MaxLabel {
		return text
	}
	return strings.Clone(strings.ToValidUTF8(text[:MaxLabel], "")) // the last character may be cut
}

// View returns the View of an entry's node in dir.
func (e Entry) View(dir string, data []byte, stat *zk.Stat) View {
	view := View{
		Node: dir + "/" + e.Name, Kind: kindOf(e.Name), Client: ClientOf(e.Name),
		Token: stat.Czxid, Session: stat.EphemeralOwner, Since: time.UnixMilli(stat.Ctime),
		Revoked: IsRevocation(data), Data: WithoutRevocation(data),
	}
	o, ok := ReadOwner(view.Data)
	view.Anonymous, view.Cohort = ok && o.PID == Nobody, ok && o.Cohort
	if view.Client == ClientZklock && json.Unmarshal(data, &o) == nil {
		view.Host, view.PID, view.Label = beginning(o.Host), max(0, o.PID), beginning(o.Label)
	}
	if e.Shared {
		view.Kind = KindRead
	}
	return view
}

func kindOf(name string) string {
	switch {
	case strings.Contains(name, ReaderInfix[1:]), strings.Contains(name, KazooReadInfix):
		return KindRead
	case strings.Contains(name, WriterInfix[1:]):
		return KindWrite
	case strings.Contains(name, LatchInfix):
		return KindLatch
	}
	return KindLock
}
