// SPDX-License-Identifier: Apache-2.0

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

// meet records the client of each request's session.
func (f *fleet) meet(req *zktest.Request) zktest.Verdict {
	f.mu.Lock()
	defer f.mu.Unlock()
	if req.Session != 0 {
		f.sessions[req.Session] = req.Client
		f.at[req.Client] = req.Member
		f.countRepeats(req)
		f.contacts.note(req.Client, f.rec.Now())
	}
	f.checkBeat(req)
	return zktest.Pass
}

// log adds the server's transactions to the history. The server calls it with its lock held.
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
		f.known[t.Path] = t.Session
		txn.Kind, txn.Lock, txn.Shared = history.Create, lockOf(t.Path), strings.Contains(t.Path, "__READ__")
		if f.recipe(txn.Lock) == history.Election {
			txn.Value = value(t.Data)
		}
	case zktest.OpDelete:
		owner := f.known[t.Path]
		if owner == 0 {
			return
		}
		if owner != t.Session {
			f.robbed[owner] = txn.Time
		}
		delete(f.known, t.Path)
		txn.Kind = history.Delete
	case zktest.OpCloseSession:
		txn.Kind, txn.Path, txn.Forced = history.Ended, "", f.forced[t.Session]
		f.ended[t.Session] = txn.Time
		f.endsAmbiguously(t.Session, 0)
		for _, gone := range t.Deleted {
			if f.known[gone] != 0 {
				delete(f.known, gone)
				txn.Gone = append(txn.Gone, gone)
			}
		}
	case zktest.OpSetData:
		switch {
		case f.known[t.Path] != 0 && f.recipe(lockOf(t.Path)) == history.Election:
			txn.Kind, txn.Value = history.Write, value(t.Data)
		case f.known[t.Path] != 0 && bytes.Contains(t.Data, []byte(`"shared":true`)):
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

// parting is how long a client that has heard of a deletion may still send requests without getting a reply, if it relates the end of its
// session to the deletion: see conn.farewell, which is shorter than this by the time that the event and a request take.
const parting = 700 * time.Millisecond

// endsAmbiguously records that a session ended if a third party deleted one of its nodes shortly before, or shortly before the
// servers stopped. Servers end a session up to a tick after its timeout. The caller must hold mu.
func (f *fleet) endsAmbiguously(session int64, stopped time.Duration) {
	term := f.term(f.sessions[session])
	if at, ok := f.robbed[session]; ok && f.rec.Now()-at <= stopped+parting+term+max(term, f.plan.Tick) {
		f.ambiguous[session] = true
	}
}

// undo records that the servers have been restored to a snapshot.
func (f *fleet) undo(snap zktest.Snapshot) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rec.Txn(history.Txn{Zxid: snap.Zxid, Time: f.rec.Now(), Kind: history.Restored})
	for id := range f.robbed { // the servers were stopped for this long, and the snapshot has no sessions
		f.endsAmbiguously(id, f.plan.Timeout+f.plan.Tick)
	}
	for _, owner := range f.known {
		f.robbed[owner] = f.rec.Now()
	}
	clear(f.known)
	clear(f.fenced)
	for _, path := range slices.Sorted(maps.Keys(snap.Nodes)) {
		f.noteLimit(zktest.Txn{Path: path, Data: snap.Nodes[path].Data})
	}
}

// contends reports whether a node is in a queue that determines the holders. The queue of a semaphore's waiters does not.
func contends(node string) bool {
	name := path.Base(node)
	if dir := path.Base(path.Dir(node)); dir == "locks" || dir == "members" { // of a fleet
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

// queues reports whether a node is in the queue of a semaphore's waiters, which is a separate lock in the history.
func (f *fleet) queues(node string) bool {
	lock, ok := strings.CutSuffix(path.Dir(node), "/locks")
	return ok && f.recipe(lock) == history.Semaphore && strings.Contains(path.Base(node), "-lock-")
}

// lockOf returns the lock to whose queue a node belongs.
func lockOf(node string) string { return strings.TrimSuffix(path.Dir(node), "/leases") }

// fence makes a write with the hold's guard. If it fails with ErrLost, the data must not be written, neither before the reply nor
// later.
func (p *user) fence(op history.Op, hold *zklock.Hold) {
	f := p.f
	f.mu.Lock()
	f.writes++
	data := fmt.Sprint(hold.TokenOf(p.local(op.Path)), " ", nodeBelow(hold, op.Path), " ", f.writes)
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
		f.broken = append(f.broken, history.Violation{Rule: "P3", Path: op.Path, At: f.rec.Now(), Text: "a write was reported as not done, but was done: " + data})
	}
	f.refused[data] = true
}

// judgeWrite checks P8 for a guarded write that was called at since: it fails only if its hold has ended, its reply was lost, or the
// server refused it.
func (p *user) judgeWrite(hold *zklock.Hold, err error, since time.Duration, path string) {
	switch {
	case err == nil, p.alive.Err() != nil, p.closes(err), errors.Is(err, zklock.ErrUncertain), p.wasRefused(err, since):
	case hold.Check() == nil, !errors.Is(err, zklock.ErrLost):
		p.f.report("P8", path, fmt.Sprintf("%s: a guarded write failed: %v", p.name, err))
	}
}

func fencePath(lock string) string { return "/fence" + lock }

// checkFence checks P3 for guarded writes: only the current holder's are committed, so tokens never decrease. The caller must
// hold mu.
func (f *fleet) checkFence(t zktest.Txn) {
	lock, ok := strings.CutPrefix(t.Path, "/fence")
	if !ok {
		return
	}
	if f.written[string(t.Data)] = true; f.refused[string(t.Data)] {
		f.broken = append(f.broken, history.Violation{Rule: "P3", Path: lock, At: f.rec.Now(), Text: "a write was reported as not done, but was done later: " + string(t.Data)})
	}
	var token int64
	var node string
	if _, err := fmt.Sscan(string(t.Data), &token, &node); err != nil {
		return
	}
	if f.known[node] == 0 {
		f.broken = append(f.broken, history.Violation{Rule: "P3", Path: lock, At: f.rec.Now(), Text: "a guarded write with the deleted node " + node})
	}
	if is := f.recipe(lock); token < f.fenced[lock] && is != history.RW && is != history.Semaphore {
		f.broken = append(f.broken, history.Violation{Rule: "P3", Path: lock, At: f.rec.Now(), Text: fmt.Sprintf("a guarded write with token %d after one with %d", token, f.fenced[lock])})
	}
	f.fenced[lock] = max(f.fenced[lock], token)
}

// recipe returns the recipe of a lock.
func (f *fleet) recipe(path string) history.Recipe {
	for _, l := range f.plan.Locks {
		if l.Path == path && l.Beside {
			return history.RW // some of its callers are readers
		}
		if l.Path == path {
			return l.Recipe
		}
	}
	return ""
}

// nodeBelow returns a hold's node in the queue at path.
func nodeBelow(hold *zklock.Hold, path string) string {
	for _, guard := range hold.Guard() {
		if check, ok := guard.(*zk.CheckVersionRequest); ok && strings.HasPrefix(check.Path, path+"/") {
			return check.Path
		}
	}
	return ""
}

// value returns the leader's value from its node's data, without the prefix of a revocation.
func value(data []byte) string { return strings.TrimPrefix(string(data), "__REVOKE__\n") }
