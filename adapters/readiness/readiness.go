// SPDX-License-Identifier: Apache-2.0

// Package readiness tells Kubernetes or a load balancer which process holds a lock or leads. A Label is a
// label of the pod, which a service can select. A Handler is an HTTP handler for readiness probes that is
// ready only while the process holds the lock; it also serves liveness probes. The package depends only on the
// standard library and zklock.
package readiness

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zklock-go/zklock"
)

// Handler responds with 200 while this process holds the lock, and with 503 otherwise. The
// zero value has no hold and is ready to use. It sends no request to ZooKeeper, so a probe
// costs nothing.
//
// A probe is always late: after the lock is lost, requests keep arriving until the next
// probe. A request that must not be served without the lock has to check the hold itself.
type Handler struct {
	// Margin is the least time for which the hold must be certain from now on. If less
	// remains, the response is 503. Between two heartbeats of a healthy client, the remaining
	// time falls to somewhat less than half the session timeout (see Hold.Remaining). A margin
	// of more than a third of the timeout can make a healthy process unready. The default is
	// zero.
	Margin time.Duration
	// Patience is how long the work may take to stop after its lock was lost: see Live. The default,
	// zero, means 30 seconds.
	Patience time.Duration

	mu   sync.Mutex
	hold *zklock.Hold // guarded by mu: the hold passed to Set last, or nil
	lost *loss        // guarded by mu: of that hold; nil without a hold
}

// loss says when a hold was lost.
type loss struct{ at atomic.Pointer[time.Time] }

var _ http.Handler = (*Handler)(nil)

// Status is the body of a response, as JSON.
type Status struct {
	Holds bool `json:"holds"`
	// Path and Token are those of the hold, if there is one and it is certain at this moment.
	Path  string `json:"path,omitempty"`
	Token int64  `json:"token,omitempty"`
	// Remaining is the number of milliseconds for which the hold is certain from now on, even
	// if nothing more is received from the servers. Heartbeats extend it.
	Remaining int64 `json:"remaining_ms"`
	// Revoked reports whether the holder was asked to release the lock. The process stays
	// ready until it does.
	Revoked bool `json:"revoked,omitempty"`
}

// Set makes the handler report this hold, from Lock or Campaign, until the next call. The
// handler notices the hold's end by itself. nil means no hold.
//
//	election.Run(ctx, value, func(ctx context.Context) error {
//		ready.Set(zklock.HoldOf(ctx))
//		defer ready.Set(nil) // from here on the response is 503, even during clean-up
//		...
//	})
func (h *Handler) Set(hold *zklock.Hold) {
	var lost *loss
	if hold != nil {
		lost = new(loss)
		hold.OnEnd(func(why error) {
			if now := time.Now(); errors.Is(why, zklock.ErrLost) {
				lost.at.Store(&now)
			}
		})
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hold, h.lost = hold, lost
}

// Live returns a handler for liveness probes. It responds with 503 if the work does not stop although
// its lock is lost: the hold was lost longer ago than Patience, and Set was not called since then. The
// process is stuck then, and should be restarted. Otherwise it responds with 200, whether the
// process holds the lock or not.
//
// Do not use the Handler itself for liveness: it would restart every process that does not hold the
// lock.
func (h *Handler) Live() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		if since := h.stuck(); since > 0 {
			http.Error(w, fmt.Sprintf("the lock was lost %v ago, and the work has not stopped", since.Round(time.Second)), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
}

// stuck returns how long ago the hold was lost, or zero if the work has still time to stop.
func (h *Handler) stuck() time.Duration {
	h.mu.Lock()
	lost := h.lost
	h.mu.Unlock()
	if lost == nil || lost.at.Load() == nil {
		return 0
	}
	since := time.Since(*lost.at.Load())
	if since <= cmp.Or(h.Patience, 30*time.Second) {
		return 0
	}
	return since
}

// Status returns the status that the handler would respond with.
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

// ServeHTTP responds to GET and HEAD requests.
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
		json.NewEncoder(w).Encode(s) // fails only if the client has closed the connection
	}
}
