// Package readiness answers HTTP probes by leadership: a load balancer, or a Kubernetes
// service, that asks it sends requests to the process that holds the lock only. It needs
// nothing but the standard library and zklock.
package readiness

import (
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/zklock-go/zklock"
)

// Handler answers 200 while this process holds, and 503 otherwise. The zero value holds
// nothing and is ready for use. It asks no server, so a probe costs nothing.
//
// A probe is late by its nature: requests come for as long as the prober takes to ask
// again, also when the lock is lost. So a request that must not be served without the lock
// checks the hold itself.
type Handler struct {
	// Margin is how long a hold must be certain from now on: with less left, the answer is
	// 503. Between two heartbeats of a healthy client, what is left falls to somewhat less
	// than half the session timeout (see Hold.Remaining): more than a third of it can make a
	// healthy process unready. Default zero.
	Margin time.Duration

	mu   sync.Mutex
	hold *zklock.Hold // guarded by mu: the last one, nil for none
}

var _ http.Handler = (*Handler)(nil)

// Status is the answer, as JSON.
type Status struct {
	Holds bool `json:"holds"`
	// Path and Token are the hold's, if there is one that is certain at this moment.
	Path  string `json:"path,omitempty"`
	Token int64  `json:"token,omitempty"`
	// Remaining is how many milliseconds the hold is certain from now on, should nothing
	// more be heard from the servers. Heartbeats make it longer.
	Remaining int64 `json:"remaining_ms"`
	// Revoked reports whether the holder was asked to let go. It is ready until it does.
	Revoked bool `json:"revoked,omitempty"`
}

// Set has the handler answer for this hold, from Lock or Campaign, until the next call. It
// need not be told of the hold's end. Nil is no hold.
//
//	election.Run(ctx, value, func(ctx context.Context) error {
//		ready.Set(zklock.HoldOf(ctx))
//		defer ready.Set(nil) // from here on the answer is 503, also while the work is wound up
//		...
//	})
func (h *Handler) Set(hold *zklock.Hold) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hold = hold
}

// Status returns what the handler would answer.
func (h *Handler) Status() Status {
	h.mu.Lock()
	hold := h.hold
	h.mu.Unlock()
	if hold == nil || hold.Check() != nil {
		return Status{}
	}
	left := hold.Remaining()
	s := Status{Holds: left > h.Margin, Path: hold.Path(), Token: hold.Token(), Remaining: left.Milliseconds()}
	select {
	case <-hold.Revoked():
		s.Revoked = true
	default:
	}
	return s
}

// ServeHTTP answers a GET or HEAD.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	s := h.Status()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if !s.Holds {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	if r.Method == http.MethodGet {
		json.NewEncoder(w).Encode(s) // if that fails, the prober has gone
	}
}
