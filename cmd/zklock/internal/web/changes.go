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
	"time"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/plain"
	"github.com/zklock-go/zklock/operate"
)

// keyHeader carries the key that only the printed link has.
const keyHeader = "X-Zklock-Key"

// newKey returns what nobody guesses.
func newKey() string { return rand.Text() }

// changeTime is how long a change may take.
const changeTime = 10 * time.Second

// changeRequest is what a page asks for.
type changeRequest struct {
	Lock  string `json:"lock"`
	Node  string `json:"node"`
	Token string `json:"token"`
	Do    string `json:"do"`
}

// action is what can be done to a contender.
type action struct {
	do   func(context.Context, *zklock.Client, zklock.Contender) error
	done string
}

var actions = map[string]action{
	"revoke": {operate.Revoke, "asked to let go"},
	"evict": {func(ctx context.Context, c *zklock.Client, who zklock.Contender) error {
		return operate.Evict(ctx, c, who)
	}, "evicted"},
}

// changes asks contenders to let go, and evicts them.
type changes struct {
	board  *board
	client *zklock.Client
	key    string // without it nothing is changed; empty: nothing at all
	scheme string // of our pages
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
		http.Error(w, "not understood", http.StatusBadRequest)
		return
	}
	if code, why := c.apply(r.Context(), want); code != 0 {
		http.Error(w, why, code)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// mayNot returns a status and the reason if a request must not change anything, otherwise zero. The origin keeps out pages of others, and the key everybody who
// was not given the link.
func (c *changes) mayNot(r *http.Request) (code int, why string) {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case c.key == "":
		return http.StatusForbidden, "nothing can be changed here: see zklock web --allow-changes"
	case !c.isOwnOrigin(r):
		return http.StatusForbidden, "another page asks for this"
	case subtle.ConstantTimeCompare([]byte(r.Header.Get(keyHeader)), []byte(c.key)) != 1:
		return http.StatusForbidden, "changes take the link that zklock web has printed"
	case kind != "application/json":
		return http.StatusUnsupportedMediaType, "not understood"
	}
	return 0, ""
}

// isOwnOrigin reports whether a request comes from our own page.
func (c *changes) isOwnOrigin(r *http.Request) bool {
	origin, err := url.Parse(r.Header.Get("Origin"))
	return err == nil && origin.Scheme == c.scheme && origin.Host == r.Host
}

// apply does what a page asks for. On failure, it returns a status and the reason, otherwise zero.
func (c *changes) apply(ctx context.Context, want changeRequest) (code int, why string) {
	token, _ := strconv.ParseInt(want.Token, 10, 64)
	who, there := c.board.contender(want.Lock, want.Node, token)
	a, known := actions[want.Do]
	switch {
	case !known:
		return http.StatusBadRequest, "not understood"
	case !there:
		return http.StatusNotFound, "it has left the queue"
	}
	ctx, cancel := context.WithTimeout(ctx, changeTime)
	defer cancel()
	err := a.do(ctx, c.client, who)
	switch {
	case errors.Is(err, zklock.ErrNotHeld):
		return http.StatusNotFound, "it has left the queue"
	case err != nil:
		return http.StatusBadGateway, plain.Text(err.Error())
	}
	if want.Do == "revoke" {
		c.board.hasAsked(want.Lock, want.Node)
	}
	c.log(fmt.Sprintf("%s: %s", a.done, plain.Short(who.Node, 512)))
	return 0, ""
}
