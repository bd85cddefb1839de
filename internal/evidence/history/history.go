// Package history records what the users of a lock saw and what its server did, and checks the one against the other.
//
// A History is a list of operations with their call and return times, the server's transaction log and the windows in
// which faults were at work. It knows nothing of ZooKeeper's client, of the test server or of virtual time: the
// simulator fills it from a bubble's clock, the integration tests from the machine's, and the checks are the same.
//
// Check proves, for every lock in the history:
//
//	P1  owners never overlap as the server sees it: of two conflicting claims, one node was gone before the other was granted
//	P2  holds never overlap as the holders see it, and each hold ended before the server took its node away
//	P3  tokens grow with the grants, between two restorations of the servers
//	P4  grants follow the order of the queue
//	P5  no node stays behind whose operation is over
//	P7  nobody whose turn it is, and nobody without a place of its own or of its process, is left asleep while nothing is broken
//
// and the rules of the recipes (readers share, one that was downgraded lets them in, permits are counted). An inner
// level is the outer hold, a leader that was seen was a leader, and a try is refused because of somebody. An operator is shown the queue as it is, removes
// the last of those that wait first, and whom he asks to let go is told. Every check costs O(n log n), but those of operators, which compare each look
// and each request with all that there was. A rule that needs the transaction log is skipped when there is none.
package history

import (
	"sync"
	"time"
)

// Recipe names the kind of lock an operation belongs to.
type Recipe string

// The recipes.
const (
	Mutex     Recipe = "mutex"
	Reentrant Recipe = "reentrant"
	RW        Recipe = "rw"
	Semaphore Recipe = "semaphore"
	Election  Recipe = "election"
)

// Kind says what an operation did. The zero Kind is an acquire with the hold that came of it.
type Kind string

// The kinds of operation.
const (
	Acquire Kind = ""
	Observe Kind = "observe" // an election's leader as an observer saw it: Node, Token and Value, at Return
	Resize  Kind = "resize"  // a semaphore has Weight permits, from some instant between Call and Return on
	Inspect Kind = "inspect" // an operator was shown Nodes in the queue, of which Holders hold, the first of them with Token; of a semaphore only those
	Evict   Kind = "evict"   // an operator removes Nodes, which wait
	Ask     Kind = "ask"     // an operator asks the owner of Node, which holds or waits, to let go
)

// Outcome is how an operation ended.
type Outcome string

// The outcomes. An operation whose process vanished under it is Unknown: the transaction log tells what became of it.
const (
	Pending Outcome = ""        // still under way when the history ends
	Granted Outcome = "granted" // returned with the lock
	Refused Outcome = "refused" // a try that found the lock taken
	Failed  Outcome = "failed"  // returned an error, a cancelled wait among them
	Unknown Outcome = "unknown" // nobody is left who could tell
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
	Value   string   `json:"value,omitempty"`  // of a leader that was seen
	Fresh   bool     `json:"fresh,omitempty"`  // an observer asked for what was so between Call and Return
	View    bool     `json:"view,omitempty"`   // the observer looks on, from Call until Return, for the next that is to be seen
	Weight  int      `json:"weight,omitempty"` // permits taken, none means one; the new limit of a Resize
	Outer   int64    `json:"outer,omitempty"`  // the operation this one belongs to: a reentrant level's outer one, a downgrade's writer, the first of permits taken together, the first that held on a shared node
	Group   int64    `json:"group,omitempty"`  // of several operations taken together: the first one's ID, of the first itself -1; one of them may wait without a place
	Cohort  bool     `json:"cohort,omitempty"` // of a goroutine whose process has one place for all: it may wait without one of its own, but not without one of its process
	Nodes   []string `json:"nodes,omitempty"`  // of an operator: full paths, in the order of the queue
	Holders []string `json:"holders,omitempty"`
	Outcome Outcome  `json:"outcome,omitempty"`

	Call   time.Duration `json:"call"`
	Return time.Duration `json:"return,omitempty"` // of the acquire
	End    time.Duration `json:"end,omitempty"`    // from here on the holder no longer relied on the hold: its context had ended, or it began to release
	Asked  time.Duration `json:"asked,omitempty"`  // the holder was told that it is asked to let go
	Heeds  time.Duration `json:"heeds,omitempty"`  // until then the holder would have noted that
	Shares time.Duration `json:"shares,omitempty"` // a downgrade returned and said that readers are let in
	Freed  time.Duration `json:"freed,omitempty"`  // the release returned
	Clean  bool          `json:"clean,omitempty"`  // the release said that the node is gone
	Lost   bool          `json:"lost,omitempty"`   // the hold ended because it was said to be lost
	Error  string        `json:"error,omitempty"`

	Uncertain bool `json:"uncertain,omitempty"` // the release said that it does not know whether the node is gone
}

// TxnKind says what a transaction did to the queue.
type TxnKind string

// The kinds of transaction. Others need not be recorded.
const (
	Create TxnKind = "create" // of a contender node
	Delete TxnKind = "delete"
	Ended  TxnKind = "ended" // a session was closed or expired, and took its nodes along
	Share  TxnKind = "share" // a writer's node became a reader's, in its place
	Write  TxnKind = "write" // a leader's node has another value

	Restored TxnKind = "restored" // an earlier state of the servers: all nodes are gone, those of that state are created next, and numbers start anew
)

// Txn is one transaction of the server, at the instant its leader applied it.
type Txn struct {
	Zxid    int64         `json:"zxid"`
	Time    time.Duration `json:"time"`
	Kind    TxnKind       `json:"kind"`
	Session int64         `json:"session,omitempty"` // who asked; of a third party's transaction none
	Client  string        `json:"client,omitempty"`  // whose session it is, where known
	Path    string        `json:"path,omitempty"`
	Lock    string        `json:"lock,omitempty"`   // Create: the lock whose queue the node stands in
	Shared  bool          `json:"shared,omitempty"` // Create: a reader's node
	Value   string        `json:"value,omitempty"`  // Create, Write: a leader's value
	Weight  int           `json:"weight,omitempty"` // Create: permits it asks for, none means one
	Gone    []string      `json:"gone,omitempty"`   // Ended: the nodes that went with it
	Forced  bool          `json:"forced,omitempty"` // Ended: by an operator, before its timeout: a third party's delete
}

// Window is a time under faults: nobody that they hit has to make progress in it.
type Window struct {
	From time.Duration `json:"from"`
	To   time.Duration `json:"to"`
	Kind string        `json:"kind,omitempty"`

	Clients []string      `json:"clients,omitempty"` // those that it hits, by name; none means all
	First   time.Duration `json:"first,omitempty"`   // until then it hits all, also where it has Clients

	Stream string `json:"stream,omitempty"` // where a simulator drew it from, and the how manieth it was there
	Number int    `json:"number,omitempty"`
}

// History is everything that is known about one run.
type History struct {
	Meta   map[string]string // free text: the seed, the settings
	Ops    []Op
	Txns   []Txn // in zxid order, but that it starts anew where the servers were restored
	Faults []Window
	End    time.Duration // when the run was over
}

// Recorder collects a History from many goroutines. Its zero value counts from the epoch: use NewRecorder.
type Recorder struct {
	start time.Time

	mu   sync.Mutex
	h    History // guarded by mu
	open []*Op   // guarded by mu; in ID order
}

// NewRecorder begins a history now.
func NewRecorder() *Recorder {
	return &Recorder{start: time.Now(), h: History{Meta: map[string]string{}}}
}

// Now is the time since the history began. It is safe for use by several goroutines, as every method here.
func (r *Recorder) Now() time.Duration { return time.Since(r.start) }

// At converts an instant of the same clock.
func (r *Recorder) At(t time.Time) time.Duration { return t.Sub(r.start) }

// Meta notes a setting of the run.
func (r *Recorder) Meta(key, value string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.h.Meta[key] = value
}

// Begin notes the call of an operation and returns its handle. Call and ID of op are set here.
func (r *Recorder) Begin(op Op) *Handle {
	r.mu.Lock()
	defer r.mu.Unlock()
	op.ID, op.Call = int64(len(r.open)+1), r.Now()
	r.open = append(r.open, &op)
	return &Handle{r: r, op: &op}
}

// Txn notes a transaction. They must come in zxid order.
func (r *Recorder) Txn(t Txn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.h.Txns = append(r.h.Txns, t)
}

// Fault notes a window under faults.
func (r *Recorder) Fault(w Window) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.h.Faults = append(r.h.Faults, w)
}

// History returns what was recorded so far, as a history that ends now.
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

// Handle is an operation under way.
type Handle struct {
	r    *Recorder
	op   *Op  // its fields are guarded by r.mu
	gone bool // guarded by r.mu: the process is gone, what it still says is not counted
}

// ID is the operation's number in the history, for the Outer and Group of others.
func (h *Handle) ID() int64 { return h.op.ID }

// Kind is the operation's.
func (h *Handle) Kind() Kind { return h.op.Kind }

// Granted notes that the acquire returned with the lock. It must be called at once.
func (h *Handle) Granted(node string, token int64) {
	h.set(func(op *Op) { op.Outcome, op.Node, op.Token, op.Return = Granted, node, token, h.r.Now() })
}

// Follows notes that the hold, which was just granted, is on the node of an earlier operation of the process.
func (h *Handle) Follows(first int64) { h.set(func(op *Op) { op.Outer = first }) }

// Finished notes that the operation returned without a hold: refused, failed, or done for the kinds that hold nothing.
func (h *Handle) Finished(o Outcome, err error) {
	h.set(func(op *Op) {
		op.Outcome, op.Return = o, h.r.Now()
		if err != nil {
			op.Error = err.Error()
		}
	})
}

// Seen notes what an observer saw: the leader's node, token and value.
func (h *Handle) Seen(node string, token int64, value string) {
	h.set(func(op *Op) {
		op.Outcome, op.Node, op.Token, op.Value, op.Return = Granted, node, token, value, h.r.Now()
	})
}

// Showed notes what an operator was shown: the nodes in a queue, those of them that hold, and the first holder's token.
func (h *Handle) Showed(nodes, holders []string, token int64) {
	h.set(func(op *Op) {
		op.Outcome, op.Nodes, op.Holders, op.Token, op.Return = Granted, nodes, holders, token, h.r.Now()
	})
}

// Ended notes that the holder stopped relying on the hold now. Only the first call counts, so that a loss and a release may both tell.
func (h *Handle) Ended() {
	h.set(func(op *Op) {
		if op.End == 0 {
			op.End = h.r.Now()
		}
	})
}

// Lost notes that the hold was said to be lost, now.
func (h *Handle) Lost() {
	h.set(func(op *Op) {
		if op.End == 0 {
			op.End, op.Lost = h.r.Now(), true
		}
	})
}

// WasAsked notes that the holder is told to let go, now.
func (h *Handle) WasAsked() { h.set(func(op *Op) { op.Asked = h.r.Now() }) }

// Heeded notes that WasAsked is called no more.
func (h *Handle) Heeded() { h.set(func(op *Op) { op.Heeds = h.r.Now() }) }

// Downgraded notes that the call returned which makes a writer a reader, and said that it has.
func (h *Handle) Downgraded() { h.set(func(op *Op) { op.Shares = h.r.Now() }) }

// Freed notes that the release returned.
func (h *Handle) Freed(err error) {
	h.set(func(op *Op) {
		op.Freed, op.Clean = h.r.Now(), err == nil
		if err != nil {
			op.Error = err.Error()
		}
	})
}

// Unsettled notes that the release said that it does not know whether the node is gone.
func (h *Handle) Unsettled() { h.set(func(op *Op) { op.Uncertain = true }) }

// Left notes that a call returned which acquires, holds and releases in one: failed if it never came to a hold, else freed.
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

// Vanished notes that the operation's process is gone: whatever it was about to learn, it relies on nothing any more.
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
