// SPDX-License-Identifier: Apache-2.0

// Package history records the operations of a lock's users and the transactions of its server, and checks that they are
// consistent.
//
// A History is a list of operations with their call and return times, the server's transaction log and the times of faults.
// It does not depend on ZooKeeper's client, the test server or virtual time. The simulator records it with a bubble's clock,
// the integration tests with the machine's, and the checks are the same.
//
// Check verifies, for every lock in the history:
//
//	P1  owners never overlap by the server's log: of two conflicting grants, one node was deleted before the other grant
//	P2  holds never overlap by the holders' records, and each hold ended before its node was deleted
//	P3  tokens grow with the grants, between two restorations of the servers
//	P4  grants follow the order of the queue
//	P5  no node remains after its operation has ended
//	P7  without a fault, a waiter does not wait for long when it has its turn, or when it has no place in the queue
//
// It also checks the rules of the recipes: readers share, a downgraded writer admits readers, permits are counted, an inner
// level is the outer hold, a reported leader was a leader, and a try is refused only if another contender was there. The
// shards of a fleet are all held, and spread evenly, once nothing has changed for as long as Wake. An
// operator is shown the actual queue and removes the last waiter first, and a holder that is asked to release is notified.
//
// The checks cost O(n log n), except for those of operators, which compare each inspection and each request with the whole
// history. A rule that needs the transaction log is skipped if there is none.
package history

import (
	"sync"
	"time"
)

// Recipe is the kind of lock of an operation.
type Recipe string

// The recipes.
const (
	Mutex     Recipe = "mutex"
	Reentrant Recipe = "reentrant"
	RW        Recipe = "rw"
	Semaphore Recipe = "semaphore"
	Election  Recipe = "election"
	Shards    Recipe = "shards" // a fleet whose members share shards; each shard is a mutex below its path
)

// Kind is the kind of an operation. The zero Kind is an acquire together with its hold.
type Kind string

// The kinds of operation.
const (
	Acquire Kind = ""
	Observe Kind = "observe" // an observer received an election's leader at Return, with Node, Token and Value
	Resize  Kind = "resize"  // a semaphore has Weight permits, from a time between Call and Return on
	Inspect Kind = "inspect" // an operator was shown Nodes in the queue, with Holders as holders and the first holder's Token; for a semaphore, Nodes has only holders
	Evict   Kind = "evict"   // an operator removed Nodes, which are waiters
	Join    Kind = "join"    // a member belonged to a fleet of Weight shards from Call until End, and had left it at Return
	Ask     Kind = "ask"     // an operator asked the owner of Node, a holder or a waiter, to release
)

// Outcome is the result of an operation.
type Outcome string

// The outcomes. If a process ended during an operation, it is Unknown, and the transaction log shows its effect.
const (
	Pending Outcome = ""        // not finished at the end of the history
	Granted Outcome = "granted" // returned with the lock
	Refused Outcome = "refused" // a try that returned without the lock because it is taken
	Failed  Outcome = "failed"  // returned an error, including that of a canceled wait
	Unknown Outcome = "unknown" // the process ended before the operation returned
)

// Op is one operation. Times count from the start of the history.
type Op struct {
	ID      int64    `json:"id"`
	Kind    Kind     `json:"kind,omitempty"`
	Recipe  Recipe   `json:"recipe"`
	Path    string   `json:"path"`
	Client  string   `json:"client"`
	Session int64    `json:"session,omitempty"`
	Node    string   `json:"node,omitempty"` // full path of the contender node, once known
	Token   int64    `json:"token,omitempty"`
	Shared  bool     `json:"shared,omitempty"` // a reader
	Value   string   `json:"value,omitempty"`  // the value of an observed leader
	Member  int64    `json:"member,omitempty"` // for the hold of a shard: the Join of its member
	Fresh   bool     `json:"fresh,omitempty"`  // an observer requests the state at a time between Call and Return
	View    bool     `json:"view,omitempty"`   // an observer waits, from Call until Return, for the next change
	Weight  int      `json:"weight,omitempty"` // permits acquired, where 0 means one; the new limit of a Resize
	Outer   int64    `json:"outer,omitempty"`  // the operation to which this one belongs: a reentrant level's outer one, a downgrade's writer, the first of permits acquired together, the first that held on a shared node
	Group   int64    `json:"group,omitempty"`  // for operations that acquire together: the first one's ID, or -1 for the first itself; all but one may wait without a place in the queue
	Behind  int      `json:"behind,omitempty"` // the call of a lock of AtMost: it is refused behind so many contenders; 0 means that one is enough
	Cohort  bool     `json:"cohort,omitempty"` // the operation of a goroutine of a cohort: it may wait without its own place in the queue, but not without one of its process
	Nodes   []string `json:"nodes,omitempty"`  // for operators: full paths, in the order of the queue
	Holders []string `json:"holders,omitempty"`
	Outcome Outcome  `json:"outcome,omitempty"`

	Call   time.Duration `json:"call"`
	Return time.Duration `json:"return,omitempty"` // when the acquire returned
	End    time.Duration `json:"end,omitempty"`    // when the holder stopped relying on the hold: its context was done, or the release began
	Asked  time.Duration `json:"asked,omitempty"`  // when the holder was notified of a request to release
	Heeds  time.Duration `json:"heeds,omitempty"`  // when the holder stopped recording such requests
	Shares time.Duration `json:"shares,omitempty"` // when a downgrade returned nil: readers are admitted
	Freed  time.Duration `json:"freed,omitempty"`  // when the release returned
	Clean  bool          `json:"clean,omitempty"`  // the release returned nil
	Lost   bool          `json:"lost,omitempty"`   // the hold was reported as lost; that of a failed call was lost before it returned
	Error  string        `json:"error,omitempty"`

	Uncertain bool `json:"uncertain,omitempty"` // the release returned ErrUncertain: the node may remain
}

// TxnKind is the kind of a transaction.
type TxnKind string

// The kinds of transaction. Others are not recorded.
const (
	Create TxnKind = "create" // a contender's node was created
	Delete TxnKind = "delete"
	Ended  TxnKind = "ended" // a session was closed or expired, and its nodes were deleted
	Share  TxnKind = "share" // a writer's node became a reader's, at the same place
	Write  TxnKind = "write" // the value in a leader's node changed

	Restored TxnKind = "restored" // the servers were restored to an earlier state: all nodes are gone, the nodes of that state are created next, and zxids start again
)

// Txn is one transaction of the server, at the time when its leader applied it.
type Txn struct {
	Zxid    int64         `json:"zxid"`
	Time    time.Duration `json:"time"`
	Kind    TxnKind       `json:"kind"`
	Session int64         `json:"session,omitempty"` // the requesting session; 0 for a third party
	Client  string        `json:"client,omitempty"`  // the session's client, if known
	Path    string        `json:"path,omitempty"`
	Lock    string        `json:"lock,omitempty"`   // Create: the lock to whose queue the node belongs
	Shared  bool          `json:"shared,omitempty"` // Create: a reader's node
	Value   string        `json:"value,omitempty"`  // Create, Write: a leader's value
	Weight  int           `json:"weight,omitempty"` // Create: permits requested, where 0 means one
	Gone    []string      `json:"gone,omitempty"`   // Ended: the deleted nodes
	Forced  bool          `json:"forced,omitempty"` // Ended: an operator ended the session early, which counts as a third party's delete
}

// Window is the time of a fault. Clients affected by it need not make progress during this time.
type Window struct {
	From time.Duration `json:"from"`
	To   time.Duration `json:"to"`
	Kind string        `json:"kind,omitempty"`

	Clients []string      `json:"clients,omitempty"` // names of the affected clients; empty means all
	First   time.Duration `json:"first,omitempty"`   // until this time, the fault affects all clients, even if Clients is set

	Stream string `json:"stream,omitempty"` // the simulator's stream of faults, and the fault's number in it
	Number int    `json:"number,omitempty"`
}

// History is the record of one run.
type History struct {
	Meta   map[string]string // free text: the seed, the settings
	Ops    []Op
	Txns   []Txn // in the order of zxids, which start again when the servers are restored
	Faults []Window
	End    time.Duration // when the run ended
}

// Recorder collects a History from many goroutines. Create it with NewRecorder.
type Recorder struct {
	start time.Time

	mu   sync.Mutex
	h    History // guarded by mu
	open []*Op   // guarded by mu; in ID order
}

// NewRecorder starts a history now.
func NewRecorder() *Recorder {
	return &Recorder{start: time.Now(), h: History{Meta: map[string]string{}}}
}

// Now returns the time since the start of the history. Like all methods of a Recorder, it is safe for concurrent use.
func (r *Recorder) Now() time.Duration { return time.Since(r.start) }

// At converts a time of the same clock.
func (r *Recorder) At(t time.Time) time.Duration { return t.Sub(r.start) }

// Meta records a setting of the run.
func (r *Recorder) Meta(key, value string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.h.Meta[key] = value
}

// Begin records the call of an operation and returns its handle. It sets Call and ID of op.
func (r *Recorder) Begin(op Op) *Handle {
	r.mu.Lock()
	defer r.mu.Unlock()
	op.ID, op.Call = int64(len(r.open)+1), r.Now()
	r.open = append(r.open, &op)
	return &Handle{r: r, op: &op}
}

// Txn records a transaction. Transactions must be recorded in the order of their zxids.
func (r *Recorder) Txn(t Txn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.h.Txns = append(r.h.Txns, t)
}

// Fault records the time of a fault.
func (r *Recorder) Fault(w Window) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.h.Faults = append(r.h.Faults, w)
}

// History returns a copy of the recorded history, which ends now.
func (r *Recorder) History() *History {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.h
	h.End = r.Now()
	h.Ops = make([]Op, len(r.open))
	for i, op := range r.open {
		h.Ops[i] = *op
	}
	h.Txns = append([]Txn(nil), h.Txns...)
	h.Faults = append([]Window(nil), h.Faults...)
	return &h
}

// Handle records the progress of an operation.
type Handle struct {
	r    *Recorder
	op   *Op  // its fields are guarded by r.mu
	gone bool // guarded by r.mu: the process has ended, and later calls are ignored
}

// ID returns the operation's number in the history, for the Outer and Group of other operations.
func (h *Handle) ID() int64 { return h.op.ID }

// Kind returns the operation's kind.
func (h *Handle) Kind() Kind { return h.op.Kind }

// Granted records that the acquire returned with the lock. Call it immediately after the return.
func (h *Handle) Granted(node string, token int64) {
	h.set(func(op *Op) { op.Outcome, op.Node, op.Token, op.Return = Granted, node, token, h.r.Now() })
}

// Finished records that the operation returned without a hold. For kinds other than Acquire, the outcome can be Granted.
func (h *Handle) Finished(o Outcome, err error) {
	h.set(func(op *Op) {
		op.Outcome, op.Return = o, h.r.Now()
		if err != nil {
			op.Error = err.Error()
		}
	})
}

// Seen records the leader that an observer received: its node, token and value.
func (h *Handle) Seen(node string, token int64, value string) {
	h.set(func(op *Op) {
		op.Outcome, op.Node, op.Token, op.Value, op.Return = Granted, node, token, value, h.r.Now()
	})
}

// Showed records the result of an inspection: the nodes in a queue, the holders' nodes, and the first holder's token.
func (h *Handle) Showed(nodes, holders []string, token int64) {
	h.set(func(op *Op) {
		op.Outcome, op.Nodes, op.Holders, op.Token, op.Return = Granted, nodes, holders, token, h.r.Now()
	})
}

// Ended records that the holder stopped relying on the hold now. Only the first call of Ended or Lost has an effect.
func (h *Handle) Ended() {
	h.set(func(op *Op) {
		if op.End == 0 {
			op.End = h.r.Now()
		}
	})
}

// Lost records that the hold was reported as lost now. Only the first call of Ended or Lost has an effect.
func (h *Handle) Lost() {
	h.set(func(op *Op) {
		if op.End == 0 {
			op.End, op.Lost = h.r.Now(), true
		}
	})
}

// WasAsked records that the holder was notified now of a request to release.
func (h *Handle) WasAsked() { h.set(func(op *Op) { op.Asked = h.r.Now() }) }

// Heeded records that WasAsked will not be called after now.
func (h *Handle) Heeded() { h.set(func(op *Op) { op.Heeds = h.r.Now() }) }

// Downgraded records that a downgrade returned nil.
func (h *Handle) Downgraded() { h.set(func(op *Op) { op.Shares = h.r.Now() }) }

// Freed records that the release returned.
func (h *Handle) Freed(err error) {
	h.set(func(op *Op) {
		op.Freed, op.Clean = h.r.Now(), err == nil
		if err != nil {
			op.Error = err.Error()
		}
	})
}

// Unsettled records that the release returned ErrUncertain.
func (h *Handle) Unsettled() { h.set(func(op *Op) { op.Uncertain = true }) }

// Left records the return of a call that acquires, holds and releases. Without a grant, the operation has failed; otherwise the
// hold is freed.
func (h *Handle) Left(err error) {
	h.set(func(op *Op) {
		if op.Outcome == Granted {
			op.Freed = h.r.Now()
			return
		}
		op.Outcome, op.Return = Failed, h.r.Now()
		if err != nil {
			op.Error = err.Error()
		}
	})
}

// Vanished records that the operation's process has ended, and so no longer relies on its hold.
func (h *Handle) Vanished() {
	h.set(func(op *Op) {
		switch {
		case op.Outcome == Pending:
			op.Outcome, op.Return = Unknown, h.r.Now()
		case op.Outcome == Granted && op.End == 0:
			op.End = h.r.Now()
		}
		h.gone = true
	})
}

func (h *Handle) set(change func(op *Op)) {
	h.r.mu.Lock()
	defer h.r.mu.Unlock()
	if !h.gone {
		change(h.op)
	}
}
