// SPDX-License-Identifier: Apache-2.0

package zktest

import (
	"slices"
	"sync"
	"sync/atomic"
)

// interceptors are the functions that see each request before it is processed.
type interceptors struct {
	mu   sync.Mutex                     // held by writers of list
	list atomic.Pointer[[]*interceptor] // never changed in place
}

type interceptor struct{ fn func(*Request) Verdict }

// add adds an interceptor for later requests.
func (in *interceptors) add(fn func(*Request) Verdict) (remove func()) {
	one := &interceptor{fn}
	in.edit(func(list []*interceptor) []*interceptor { return append(list, one) })
	return func() {
		in.edit(func(list []*interceptor) []*interceptor {
			return slices.DeleteFunc(list, func(other *interceptor) bool { return other == one })
		})
	}
}

func (in *interceptors) edit(change func([]*interceptor) []*interceptor) {
	in.mu.Lock()
	defer in.mu.Unlock()
	list := change(slices.Clone(in.current()))
	in.list.Store(&list)
}

func (in *interceptors) current() []*interceptor {
	if list := in.list.Load(); list != nil {
		return *list
	}
	return nil
}

// next applies a verdict to the next n requests of some types. left returns how many are still to come.
func (in *interceptors) next(n int, v Verdict, ops []Op) (left func() int) {
	var taken atomic.Int64
	var remove func()
	added := make(chan struct{})
	remove = in.add(func(r *Request) Verdict {
		if !r.isOneOf(ops) {
			return Pass
		}
		switch count := taken.Add(1); {
		case count > int64(n):
			return Pass
		case count == int64(n):
			<-added
			remove()
		}
		return v
	})
	close(added)
	return func() int { return max(0, n-int(taken.Load())) }
}

// isOneOf reports whether a request or one of its steps has one of the given types. If
// none is given, it reports whether the request is not a ping.
func (r *Request) isOneOf(ops []Op) bool {
	if len(ops) == 0 {
		return r.Op != OpPing
	}
	return slices.Contains(ops, r.Op) || slices.ContainsFunc(r.Ops, func(op Op) bool { return slices.Contains(ops, op) })
}

// judge passes a request to all interceptors and returns the first verdict other than
// Pass. It calls show only if there are interceptors.
func (in *interceptors) judge(show func() *Request) Verdict {
	list := in.current()
	if len(list) == 0 {
		return Pass
	}
	shown, verdict := show(), Pass
	for _, one := range list {
		if v := one.fn(shown); verdict.kind == pass {
			verdict = v
		}
	}
	return verdict
}

// txnHooks are the functions that see each transaction. They are guarded by Server.mu,
// and called with it held.
type txnHooks struct{ list []*txnHook }

type txnHook struct{ fn func(Txn) }

func (h *txnHooks) add(fn func(Txn)) *txnHook {
	one := &txnHook{fn}
	h.list = append(slices.Clone(h.list), one)
	return one
}

func (h *txnHooks) remove(one *txnHook) {
	h.list = slices.DeleteFunc(slices.Clone(h.list), func(other *txnHook) bool { return other == one })
}

func (h *txnHooks) tell(t *txn) {
	if len(h.list) == 0 {
		return
	}
	shown := t.show()
	for _, one := range h.list {
		one.fn(shown)
	}
}
