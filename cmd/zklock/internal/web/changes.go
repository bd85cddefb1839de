// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/escape"
	"github.com/zklock-go/zklock/operate"
)

// keyHeader carries the key, which is only in the printed link.
const keyHeader = "X-Zklock-Key"

// newKey returns a random key.
func newKey() string { return rand.Text() }

// changeTime limits how long a change may take.
const changeTime = 10 * time.Second

// changeRequest is a change that a page requests.
type changeRequest struct {
	Lock  string `json:"lock"`
	Node  string `json:"node"`
	Token string `json:"token"`
	Do    string `json:"do"`
	// Reason is for an eviction.
	Reason string `json:"reason,omitempty"`
}

// action is a change that can be made to a contender.
type action struct {
	do   func(ctx context.Context, c *zklock.Client, who zklock.Contender, reason string) error
	done string
}

var actions = map[string]action{
	"revoke": {func(ctx context.Context, c *zklock.Client, who zklock.Contender, _ string) error {
		return operate.Revoke(ctx, c, who)
	}, "asked to release"},
	"evict": {func(ctx context.Context, c *zklock.Client, who zklock.Contender, reason string) error {
		return operate.Evict(ctx, c, reason, who)
	}, "evicted"},
}

// changes is the handler that asks contenders to release their locks, and evicts them.
type changes struct {
	board  *board
	client *zklock.Client
	key    string   // the key that requests must have; empty means no changes are allowed
	scheme string   // the scheme of our pages
	public *url.URL // their address behind a reverse proxy, or nil
	log    func(string)
}

func (c *changes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if code, why := c.mayNot(r); code != 0 {
		http.Error(w, why, code)
		return
	}
	var want changeRequest
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, 16<<10))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&want); err != nil {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	if code, why := c.apply(r.Context(), want); code != 0 {
		http.Error(w, why, code)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// mayNot returns a status and the reason if a request is not allowed to change anything, and otherwise zero. Checking the
// origin keeps out pages of other sites, and checking the key keeps out everyone who does not have the link.
func (c *changes) mayNot(r *http.Request) (code int, why string) {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case c.key == "":
		return http.StatusForbidden, "changes are not allowed: see zklock web --allow-changes"
	case !c.isOwnOrigin(r):
		return http.StatusForbidden, "the request comes from another site"
	case subtle.ConstantTimeCompare([]byte(r.Header.Get(keyHeader)), []byte(c.key)) != 1:
		return http.StatusForbidden, "changes require the link that zklock web printed"
	case kind != "application/json":
		return http.StatusUnsupportedMediaType, "bad request"
	}
	return 0, ""
}

// isOwnOrigin reports whether a request comes from our own page.
func (c *changes) isOwnOrigin(r *http.Request) bool {
	origin, err := url.Parse(r.Header.Get("Origin"))
	switch {
	case err != nil:
		return false
	case c.public != nil && origin.Scheme == c.public.Scheme && strings.EqualFold(origin.Host, c.public.Host):
		return true
	}
	return origin.Scheme == c.scheme && origin.Host == r.Host
}

// apply makes the change that a page requests. On failure, it returns a status and the reason, and otherwise zero.
func (c *changes) apply(ctx context.Context, want changeRequest) (code int, why string) {
	token, _ := strconv.ParseInt(want.Token, 10, 64)
	who, there := c.board.contender(want.Lock, want.Node, token)
	a, known := actions[want.Do]
	switch {
	case !known:
		return http.StatusBadRequest, "bad request"
	case !there:
		return http.StatusNotFound, "it has left the queue"
	}
	ctx, cancel := context.WithTimeout(ctx, changeTime)
	defer cancel()
	err := a.do(ctx, c.client, who, want.Reason)
	switch {
	case errors.Is(err, zklock.ErrNotHeld):
		return http.StatusNotFound, "it has left the queue"
	case errors.Is(err, zklock.ErrInvalid):
		return http.StatusBadRequest, escape.Text(err.Error())
	case err != nil:
		return http.StatusBadGateway, escape.Text(err.Error())
	}
	if want.Do == "revoke" {
		c.board.hasAsked(want.Lock, want.Node)
	}
	c.log(fmt.Sprintf("%s: %s", a.done, escape.Short(who.Node, 512)))
	return 0, ""
}
