// SPDX-License-Identifier: Apache-2.0

package web

import (
	"bytes"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/escape"
	"github.com/zklock-go/zklock/operate"
)

// view is the content of a page: a head, and lists of rows with keys.
type view struct {
	head     any
	sections map[string][]row
	again    time.Time // when to compute the view again even if nothing changes; zero means never
}

type row struct {
	key   string
	value any
}

// common is the part of the head that all views share.
type common struct {
	Below   string  `json:"below"`
	Begun   int64   `json:"begun"`          // when watching began
	Away    int64   `json:"away,omitempty"` // since when no server has answered
	Gaps    string  `json:"gaps,omitempty"` // what is not shown
	Changes bool    `json:"changes,omitempty"`
	Cycles  []cycle `json:"cycles,omitempty"`
	Cycled  int     `json:"cycled,omitempty"` // the number of cycles
}

// overview is the head of the list of locks.
type overview struct {
	common
	Locks   int `json:"locks"`
	Holding int `json:"holding"`
	Waiting int `json:"waiting"`
	Found   int `json:"found"` // the number of locks that match the search
}

// lockRow is a row of the list of locks.
type lockRow struct {
	Path    string `json:"path"`
	Link    string `json:"link"`
	Kind    string `json:"kind"`
	Held    int    `json:"held"`
	Waits   int    `json:"waits"`
	Permits int    `json:"permits,omitempty"`
	Since   int64  `json:"since,omitempty"` // when the first holder was granted the lock
	AtLeast bool   `json:"atLeast,omitempty"`
	Owner   *owner `json:"owner,omitempty"`
	Asked   bool   `json:"asked,omitempty"`
	Delayed bool   `json:"delayed,omitempty"`
	Cyclic  bool   `json:"cyclic,omitempty"`
}

// oneLock is the head of the view of a lock.
type oneLock struct {
	common
	Path      string         `json:"path"`
	Kind      string         `json:"kind"`
	Held      int            `json:"held"`
	Waits     int            `json:"waits"`
	Permits   int            `json:"permits,omitempty"`
	Entered   int            `json:"entered"`        // the number of contenders that arrived since watching began
	Kept      int64          `json:"kept,omitempty"` // contenders that left up to this time are not kept
	Delayed   bool           `json:"delayed,omitempty"`
	Unseen    bool           `json:"unseen,omitempty"`    // no contender has been seen here: the path may not exist
	Found     int            `json:"found"`               // the number of contenders that match the search
	Libraries map[string]int `json:"libraries,omitempty"` // the number of contenders of each client library
	MoreHold  int            `json:"moreHold,omitempty"`
	MoreWait  int            `json:"moreWait,omitempty"`
}

// owner is what a contender's node says about the contender. None of it is verified, and all of it is escaped.
type owner struct {
	Label  string `json:"label,omitempty"`
	Host   string `json:"host,omitempty"`
	PID    int    `json:"pid,omitempty"`
	Value  string `json:"value,omitempty"` // data not written by this library, or an election's value
	Client string `json:"client,omitempty"`
	Kept   bool   `json:"kept,omitempty"` // the place is shared by a process's goroutines
}

// contender is a holder or a waiter.
type contender struct {
	owner
	Place   int    `json:"place,omitempty"` // position in the queue, if not all of it is shown
	Name    string `json:"name"`
	Kind    string `json:"kind"`
	Session string `json:"session"`
	Token   string `json:"token"` // as text, because some JSON parsers round large numbers
	From    int64  `json:"from"`
	Held    int64  `json:"held,omitempty"`
	AtLeast bool   `json:"atLeast,omitempty"`
	Asked   bool   `json:"asked,omitempty"`
	Cyclic  bool   `json:"cyclic,omitempty"`
	Node    string `json:"node,omitempty"` // set if pages may make changes
}

// stretch is a span of the timeline.
type stretch struct {
	Session string `json:"session"`
	Owner   owner  `json:"owner"`
	Token   string `json:"token"`
	From    int64  `json:"from"`
	Held    int64  `json:"held,omitempty"`
	Until   int64  `json:"until,omitempty"`
	Early   bool   `json:"early,omitempty"`
}

// cycle is a cycle of sessions that wait for each other.
type cycle []step

type step struct {
	Owner    owner  `json:"owner"`
	Session  string `json:"session"`
	Path     string `json:"path"`
	Link     string `json:"link"`
	By       owner  `json:"by"`
	Holds    bool   `json:"holds,omitempty"`
	Parallel bool   `json:"parallel,omitempty"`
}

// millis returns t in the form that is sent to pages. It returns zero if t is zero.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func sessionOf(who zklock.Contender) string { return fmt.Sprintf("0x%x", who.Session) }

// linkOf returns a path in the form that is used in addresses. Pages treat it as opaque.
func linkOf(lock string) string { return strings.ReplaceAll(url.QueryEscape(lock), "%2F", "/") }

// shownPath returns a path in the form that is displayed.
func shownPath(lock string) string { return escape.Short(lock, 512) }

// nameOf returns the end of a node's name, without the prefix that only makes it unique.
func nameOf(who zklock.Contender) string {
	name := path.Base(who.Node)
	for _, infix := range []string{"lock-", "latch-", "lease-", "__WRIT__", "__READ__", "__lock__", "__rlock__"} {
		if i := strings.LastIndex(name, infix); i >= 0 {
			name = name[i:]
			break
		}
	}
	return escape.Short(name, 60)
}

func ownerOf(who zklock.Contender) owner {
	o := owner{
		Label: escape.Short(who.Label, 120), Host: escape.Short(who.Host, 64), PID: who.PID, Client: who.Client, Kept: who.Cohort,
	}
	if who.Host == "" && !who.Anonymous && len(who.Data) > 0 && utf8.Valid(who.Data) {
		o.Value = escape.Short(string(who.Data), 200)
	}
	return o
}

// kindOf returns the kind of a lock, as far as its nodes show it.
func kindOf(q *operate.Queue) string {
	kinds := func(kinds ...string) bool {
		return slices.ContainsFunc(q.Contenders, func(who zklock.Contender) bool { return slices.Contains(kinds, who.Kind) })
	}
	switch {
	case q.Permits > 0, kinds(operate.KindPermit):
		return "semaphore"
	case kinds(operate.KindLatch):
		return "election"
	case kinds(operate.KindRead, operate.KindWrite):
		return "read-write lock"
	case len(q.Contenders) > 0 && isMember(q.Contenders[0]):
		return "election"
	}
	return "lock"
}

// isMember reports whether a contender belongs to an election: its node has a value instead of this library's owner data.
func isMember(who zklock.Contender) bool {
	return who.Client == operate.ClientZklock && who.Kind == operate.KindLock && who.Host == "" && !who.Anonymous
}

// tokenOf returns a token as text, because some JSON parsers round large numbers.
func tokenOf(who zklock.Contender) string { return strconv.FormatInt(who.Token, 10) }

// matches reports whether a contender's name, data or session matches text, which must be in lower case.
func matches(who zklock.Contender, text string) bool {
	for _, s := range []string{who.Label, who.Host, who.Client, path.Base(who.Node)} {
		if strings.Contains(strings.ToLower(s), text) {
			return true
		}
	}
	return strings.HasPrefix(text, "0x") && strings.HasPrefix(sessionOf(who), text) || bytes.Contains(bytes.ToLower(who.Data), []byte(text))
}
