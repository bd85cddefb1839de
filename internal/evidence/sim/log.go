package sim

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/evidence/history"
	"github.com/zklock-go/zklock/zktest"
)

// meet learns from each request whose session it is.
func (f *fleet) meet(req *zktest.Request) zktest.Verdict {
	if req.Session != 0 {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.sessions[req.Session] = req.Client
		f.hears.note(req.Client, f.rec.Now())
	}
	return zktest.Pass
}

// log turns the server's transactions into the history's. It runs under the server's lock.
func (f *fleet) log(t zktest.Txn) {
	if t.Code != zktest.CodeOK {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.note(t)
	for _, step := range t.Steps {
		step.Zxid, step.Session = t.Zxid, t.Session
		f.note(step)
	}
}

// note must be called with mu held.
func (f *fleet) note(t zktest.Txn) {
	txn := history.Txn{Zxid: t.Zxid, Time: f.rec.Now(), Session: t.Session, Client: f.sessions[t.Session], Path: t.Path}
	switch t.Op {
	case zktest.OpCreate, zktest.OpCreate2:
		if !contends(t.Path) && !f.queues(t.Path) {
			return
		}
		f.known[t.Path] = true
		txn.Kind, txn.Lock, txn.Shared = history.Create, lockOf(t.Path), strings.Contains(t.Path, "__READ__")
		if f.recipe(txn.Lock) == history.Election {
			txn.Value = value(t.Data)
		}
	case zktest.OpDelete:
		if !f.known[t.Path] {
			return
		}
		delete(f.known, t.Path)
		txn.Kind = history.Delete
	case zktest.OpCloseSession:
		txn.Kind, txn.Path, txn.Forced = history.Ended, "", f.forced[t.Session]
		for _, gone := range t.Deleted {
			if f.known[gone] {
				delete(f.known, gone)
				txn.Gone = append(txn.Gone, gone)
			}
		}
	case zktest.OpSetData:
		switch {
		case f.known[t.Path] && f.recipe(lockOf(t.Path)) == history.Election:
			txn.Kind, txn.Value = history.Write, value(t.Data)
		case f.known[t.Path] && bytes.Contains(t.Data, []byte(`"shared":true`)):
			txn.Kind = history.Share
		default:
			f.checkFence(t)
			f.noteLimit(t)
			return
		}
	default:
		return
	}
	f.rec.Txn(txn)
}

// undo notes that the servers are now as they were when the snapshot was taken.
func (f *fleet) undo(snap zktest.Snapshot) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rec.Txn(history.Txn{Zxid: snap.Zxid, Time: f.rec.Now(), Kind: history.Restored})
	clear(f.known)
	clear(f.fenced)
	for _, path := range slices.Sorted(maps.Keys(snap.Nodes)) {
		f.noteLimit(zktest.Txn{Path: path, Data: snap.Nodes[path].Data})
	}
}

// contends reports whether a node stands in a queue that shows the holders. The queue of those that ask for permits does not.
func contends(node string) bool {
	name := path.Base(node)
	if path.Base(path.Dir(node)) == "locks" {
		return false
	}
	if len(name) < 10 || strings.Trim(name[len(name)-9:], "0123456789") != "" {
		return false
	}
	for _, infix := range []string{"-lock-", "-__READ__", "-__WRIT__", "-lease-"} {
		if strings.Contains(name, infix) {
			return true
		}
	}
	return false
}

// queues reports whether a node stands in the queue of those that ask for permits. It is a lock of its own in the history.
func (f *fleet) queues(node string) bool {
	lock, ok := strings.CutSuffix(path.Dir(node), "/locks")
	return ok && f.recipe(lock) == history.Semaphore && strings.Contains(path.Base(node), "-lock-")
}

// lockOf is the lock in whose queue a node stands.
func lockOf(node string) string { return strings.TrimSuffix(path.Dir(node), "/leases") }

// fence writes through the hold's guard what only the present holder may write. What was refused because the hold was lost
// must not be written, neither before the answer nor later.
func (p *process) fence(op history.Op, hold *zklock.Hold) {
	f := p.f
	f.mu.Lock()
	f.writes++
	data := fmt.Sprint(hold.TokenOf(op.Path), " ", nodeBelow(hold, op.Path), " ", f.writes)
	f.mu.Unlock()
	since := f.rec.Now()
	_, err := hold.Multi(&zk.SetDataRequest{Path: fencePath(op.Path), Data: []byte(data), Version: -1})
	p.judgeWrite(hold, err, since, op.Path)
	if !errors.Is(err, zklock.ErrLost) || errors.Is(err, zklock.ErrUncertain) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.written[data] {
		f.broken = append(f.broken, history.Violation{Rule: "P3", Path: op.Path, At: f.rec.Now(), Text: "said not to be written, and was: " + data})
	}
	f.refused[data] = true
}

// judgeWrite is P8 for a guarded write, called then: it fails only if its hold has ended, its answer was lost, or it is refused.
func (p *process) judgeWrite(hold *zklock.Hold, err error, since time.Duration, path string) {
	switch {
	case err == nil, p.alive.Err() != nil, errors.Is(err, zklock.ErrUncertain), p.wasRefused(err, since):
	case hold.Check() == nil, !errors.Is(err, zklock.ErrLost):
		p.f.report("P8", path, fmt.Sprintf("%s: a guarded write failed: %v", p.name, err))
	}
}

func fencePath(lock string) string { return "/fence" + lock }

// checkFence is P3 for guards: a guarded write is committed by the present holder only, so that tokens never go back.
// It must be called with mu held.
func (f *fleet) checkFence(t zktest.Txn) {
	lock, ok := strings.CutPrefix(t.Path, "/fence")
	if !ok {
		return
	}
	if f.written[string(t.Data)] = true; f.refused[string(t.Data)] {
		f.broken = append(f.broken, history.Violation{Rule: "P3", Path: lock, At: f.rec.Now(), Text: "said not to be written, and then was: " + string(t.Data)})
	}
	var token int64
	var node string
	if _, err := fmt.Sscan(string(t.Data), &token, &node); err != nil {
		return
	}
	if !f.known[node] {
		f.broken = append(f.broken, history.Violation{Rule: "P3", Path: lock, At: f.rec.Now(), Text: "a guarded write of " + node + ", which is gone"})
	}
	if is := f.recipe(lock); token < f.fenced[lock] && is != history.RW && is != history.Semaphore {
		f.broken = append(f.broken, history.Violation{Rule: "P3", Path: lock, At: f.rec.Now(), Text: fmt.Sprintf("a guarded write with token %d after one with %d", token, f.fenced[lock])})
	}
	f.fenced[lock] = max(f.fenced[lock], token)
}

// recipe returns of what recipe a lock is.
func (f *fleet) recipe(path string) history.Recipe {
	for _, l := range f.plan.Locks {
		if l.Path == path {
			return l.Recipe
		}
	}
	return ""
}

// nodeBelow is a hold's node in the queue at path.
func nodeBelow(hold *zklock.Hold, path string) string {
	for _, guard := range hold.Guard() {
		if check, ok := guard.(*zk.CheckVersionRequest); ok && strings.HasPrefix(check.Path, path+"/") {
			return check.Path
		}
	}
	return ""
}

// value is what a leader says in its node: a request to let go stands before it.
func value(data []byte) string { return strings.TrimPrefix(string(data), "__REVOKE__\n") }
