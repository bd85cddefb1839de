package node

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
)

// View is what a node in a queue shows: a zklock.Contender, which says what the fields mean.
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

// The values of View.Kind.
const (
	KindLock   = "lock"
	KindWrite  = "write"
	KindRead   = "read"
	KindLatch  = "latch"
	KindPermit = "permit"
)

// beginning returns as much of text as a label may be long.
func beginning(text string) string {
	if len(text) <= MaxLabel {
		return text
	}
	return strings.Clone(strings.ToValidUTF8(text[:MaxLabel], "")) // the last character may be cut
}

// View returns what the node of an entry shows, which is in dir.
func (e Entry) View(dir string, data []byte, stat *zk.Stat) View {
	who := View{
		Node: dir + "/" + e.Name, Kind: kindOf(e.Name), Client: ClientOf(e.Name),
		Token: stat.Czxid, Session: stat.EphemeralOwner, Since: time.UnixMilli(stat.Ctime),
		Revoked: IsRevocation(data), Data: WithoutRevocation(data),
	}
	o, ok := ReadOwner(who.Data)
	who.Anonymous, who.Cohort = ok && o.PID == Nobody, ok && o.Cohort
	if who.Client == ClientZklock && json.Unmarshal(data, &o) == nil {
		who.Host, who.PID, who.Label = beginning(o.Host), max(0, o.PID), beginning(o.Label)
	}
	if e.Shared {
		who.Kind = KindRead
	}
	return who
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
