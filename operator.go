package zklock

import (
	"time"

	"github.com/zklock-go/zklock/internal/door"
)

// operator is a client as packages operate and slots see it. Its exported methods are documented there.
type operator struct{ *Client }

// snapshot is the state of a lock, as Inspect has found it.
type snapshot = door.Queue[Contender]

func init() {
	door.Operator = func(client any) any { return operator{client.(*Client)} }
}

func (o operator) Slot(path, name string) door.Slot[*Hold] { return newSlot(o.Client, path, name) }

func (o operator) SlotAt(path string, at time.Time, period time.Duration) door.Slot[*Hold] {
	return newSlotAt(o.Client, path, at, period)
}
