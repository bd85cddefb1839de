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
	"github.com/zklock-go/zklock/internal/plain"
	"github.com/zklock-go/zklock/operate"
)

// view is what a page shows: something on top, and lists whose rows have keys.
type view struct {
	head     any
	sections map[string][]row
	again    time.Time // when there may be something else to show, though nothing changes; zero for never
}

type row struct {
	key   string
	value any
}

// common is what stands on top of every view.
type common struct {
	Below   string   `json:"below"`
	Begun   int64    `json:"begun"` // since when there is anything to show
	Away    bool     `json:"away,omitempty"`
	Changes bool     `json:"changes,omitempty"`
	Circles []circle `json:"circles,omitempty"`
	Circled int      `json:"circled,omitempty"` // how many circles there are
}

// overview is on top of the list of locks.
type overview struct {
	common
	Locks   int `json:"locks"`
	Holding int `json:"holding"`
	Waiting int `json:"waiting"`
	Found   int `json:"found"` // how many locks match the search
}

// lockRow is a lock in the list.
type lockRow struct {
	Path     string `json:"path"`
	Link     string `json:"link"`
	Kind     string `json:"kind"`
	Held     int    `json:"held"`
	Waits    int    `json:"waits"`
	Permits  int    `json:"permits,omitempty"`
	Since    int64  `json:"since,omitempty"` // of the first holder
	AtLeast  bool   `json:"atLeast,omitempty"`
	Owner    *owner `json:"owner,omitempty"`
	Asked    bool   `json:"asked,omitempty"`
	Delayed  bool   `json:"delayed,omitempty"`
	Circular bool   `json:"circular,omitempty"`
}

// oneLock is on top of the view of a lock.
type oneLock struct {
	common
	Path      string         `json:"path"`
	Kind      string         `json:"kind"`
	Held      int            `json:"held"`
	Waits     int            `json:"waits"`
	Permits   int            `json:"permits,omitempty"`
	Entered   int            `json:"entered"`        // how many have come since we look
	Kept      int64          `json:"kept,omitempty"` // what has ended up to this time is not kept
	Delayed   bool           `json:"delayed,omitempty"`
	Found     int            `json:"found"`               // how many match the search
	Libraries map[string]int `json:"libraries,omitempty"` // of all that are there
	MoreHold  int            `json:"moreHold,omitempty"`
	MoreWait  int            `json:"moreWait,omitempty"`
}

// owner is what a contender says of itself. Nothing of it is to be believed, and all of it is made plain.
type owner struct {
	Label  string `json:"label,omitempty"`
	Host   string `json:"host,omitempty"`
	PID    int    `json:"pid,omitempty"`
	Value  string `json:"value,omitempty"` // data that is not this library's: of an election, the value
	Client string `json:"client,omitempty"`
	Kept   bool   `json:"kept,omitempty"` // a place that a process keeps for its goroutines
}

// contender is a holder or a waiter.
type contender struct {
	owner
	Place    int    `json:"place,omitempty"` // in the queue, where not all of it is shown
	Name     string `json:"name"`
	Kind     string `json:"kind"`
	Session  string `json:"session"`
	Token    string `json:"token"` // a number that does not survive every reader
	From     int64  `json:"from"`
	Held     int64  `json:"held,omitempty"`
	AtLeast  bool   `json:"atLeast,omitempty"`
	Asked    bool   `json:"asked,omitempty"`
	Circular bool   `json:"circular,omitempty"`
	Node     string `json:"node,omitempty"` // to be changed
}

// stretch is a span as it is drawn.
type stretch struct {
	Session string `json:"session"`
	Owner   owner  `json:"owner"`
	Token   string `json:"token"`
	From    int64  `json:"from"`
	Held    int64  `json:"held,omitempty"`
	Until   int64  `json:"until,omitempty"`
	Early   bool   `json:"early,omitempty"`
}

// circle is sessions that wait for each other.
type circle []step

type step struct {
	Owner    owner  `json:"owner"`
	Session  string `json:"session"`
	Path     string `json:"path"`
	Link     string `json:"link"`
	By       owner  `json:"by"`
	Holds    bool   `json:"holds,omitempty"`
	Parallel bool   `json:"parallel,omitempty"`
}

// millis is a time as pages get it; zero for none.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func sessionOf(who zklock.Contender) string { return fmt.Sprintf("0x%x", who.Session) }

// linkOf returns a path as it stands in addresses. Pages do not look into it.
func linkOf(lock string) string { return strings.ReplaceAll(url.QueryEscape(lock), "%2F", "/") }

// shownPath returns a path as it is shown.
func shownPath(lock string) string { return plain.Short(lock, 512) }

// nameOf returns a node's name without the part that only makes it unique.
func nameOf(who zklock.Contender) string {
	name := path.Base(who.Node)
	for _, infix := range []string{"lock-", "latch-", "lease-", "__WRIT__", "__READ__", "__lock__", "__rlock__"} {
		if i := strings.LastIndex(name, infix); i >= 0 {
			name = name[i:]
			break
		}
	}
	return plain.Short(name, 60)
}

func ownerOf(who zklock.Contender) owner {
	o := owner{
		Label: plain.Short(who.Label, 120), Host: plain.Short(who.Host, 64), PID: who.PID, Client: who.Client, Kept: who.Cohort,
	}
	if who.Host == "" && !who.Anonymous && len(who.Data) > 0 && utf8.Valid(who.Data) {
		o.Value = plain.Short(string(who.Data), 200)
	}
	return o
}

// kindOf says what a queue is for, as far as its nodes show it.
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

// isMember reports whether a contender's node has a value, which only elections of this library give it.
func isMember(who zklock.Contender) bool {
	return who.Client == operate.ClientZklock && who.Kind == operate.KindLock && who.Host == "" && !who.Anonymous
}

// tokenOf returns a token as text: it does not survive every reader of numbers.
func tokenOf(who zklock.Contender) string { return strconv.FormatInt(who.Token, 10) }

// matches reports whether something that a contender says of itself contains text, which is in lower case.
func matches(who zklock.Contender, text string) bool {
	for _, s := range []string{who.Label, who.Host, who.Client, path.Base(who.Node)} {
		if strings.Contains(strings.ToLower(s), text) {
			return true
		}
	}
	return strings.HasPrefix(text, "0x") && strings.HasPrefix(sessionOf(who), text) || bytes.Contains(bytes.ToLower(who.Data), []byte(text))
}
