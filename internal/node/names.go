// SPDX-License-Identifier: Apache-2.0

// Package node defines what is stored in ZooKeeper, by this library and by others: the names of
// lock nodes, their order in a queue, and the meaning of their data. It sends no requests.
package node

import (
	"crypto/rand"
	"encoding/hex"
	"regexp"
	"strconv"
	"strings"
)

// The values of Contender.Client. Package operate also defines them.
const (
	ClientZklock  = "zklock"
	clientCurator = "Curator"
	clientKazoo   = "kazoo"
	clientGo      = "go-zookeeper"
)

// The infixes that identify the kinds of contenders in the names of their nodes. The number that
// the server appends follows.
const (
	LockInfix      = "-lock-"    // zklock, go-zookeeper, Curator
	WriterInfix    = "-__WRIT__" // zklock, Curator
	ReaderInfix    = "-__READ__"
	LatchInfix     = "-latch-" // Curator's LeaderLatch
	LeaseInfix     = "-lease-" // zklock's and Curator's semaphores, one per permit
	kazooLockInfix = "__lock__"
	KazooReadInfix = "__rlock__"
)

// NamePrefix begins the names of zklock, go-zookeeper and Curator. A guid follows.
const NamePrefix = "_c_"

// The directories of a semaphore below its path, with Curator's names.
const (
	LeasesDir      = "/leases" // one node per permit held
	PermitQueueDir = "/locks"  // the queue of callers waiting for permits
)

// MarksSuffix is appended to the lock's path to form the name of the node with the marks. That node
// is not a child of the lock's directory, because Curator and go-zookeeper treat every child as a
// contender.
const MarksSuffix = ".zklock-slots"

// RecordSuffix is appended to the lock's path to form the name of the lock's record: see Record.
const RecordSuffix = ".zklock-delay"

// ResizedName is the name of a node that exists only inside the transaction that changes a number of
// permits. It wakes the waiters, which watch the children of the permits directory. Its suffix is
// reserved, so it is nobody's lock.
const (
	ResizedName   = "resized" + permitsSuffix
	permitsSuffix = ".zklock-permits"
)

// IsReserved reports whether a name has a suffix that only nodes of this library have which are no
// locks.
func IsReserved(name string) bool {
	return strings.HasSuffix(name, MarksSuffix) || strings.HasSuffix(name, RecordSuffix) || strings.HasSuffix(name, permitsSuffix)
}

// Entry is a contender in a directory listing.
type Entry struct {
	Name   string
	Seq    int32 // the number that the server appended
	Shared bool  // a reader
	Czxid  int64 // zero if it was not read
	Owner  int64 // its session; known if the czxid is
}

// kinds are the names that the lock recipes of this and other libraries give to their nodes. All
// other nodes in a directory are ignored.
var kinds = []struct {
	infix  string
	shared bool
}{
	{LockInfix, false},
	{WriterInfix, false},
	{ReaderInfix, true},
	{kazooLockInfix, false},
	{KazooReadInfix, true},
	{LatchInfix, false},
	{LeaseInfix, false},
}

// ParseEntry parses a node's name. ok is false for names that no lock recipe creates.
func ParseEntry(name string) (_ Entry, ok bool) {
	for _, k := range kinds {
		i := strings.LastIndex(name, k.infix)
		if i < 0 && strings.HasPrefix(name, k.infix[1:]) && k.infix[0] == '-' {
			i = -1 // without the protection prefix
		} else if i <= 0 {
			continue
		}
		if seq, ok := ParseSeq(name[i+len(k.infix):]); ok {
			return Entry{Name: name, Seq: seq, Shared: k.shared}, true
		}
	}
	return Entry{}, false
}

// ParseSeq parses a sequence number as servers print it: %010d of an int32, which is negative after
// the counter has overflowed.
func ParseSeq(s string) (int32, bool) {
	digits := strings.TrimPrefix(s, "-")
	if len(s) < 10 || len(digits) > 10 || s[0] == '+' {
		return 0, false
	}
	seq, err := strconv.ParseInt(s, 10, 32)
	// It has ten characters, or a sign and ten digits; and -0 is never printed.
	printed := len(s) == 10 && s != "-000000000" || len(digits) == 10 && seq <= -1e9
	return int32(seq), err == nil && printed
}

// ParseEntries parses names and drops those that no lock recipe creates.
func ParseEntries(names []string) []Entry {
	entries := make([]Entry, 0, len(names))
	for _, name := range names {
		if e, ok := ParseEntry(name); ok {
			entries = append(entries, e)
		}
	}
	return entries
}

// The marks that begin our guids, to distinguish our names from those of other libraries. Both have
// the same length.
const (
	GUIDMark  = "7a6b6c" // zkl
	DelayMark = "7a6b64" // zkd: a contender for a lock with a delay
)

func NewGUID(mark string) string {
	var b [16 - len(GUIDMark)/2]byte
	rand.Read(b[:]) // never fails
	var guid [2 * 16]byte
	return string(hex.AppendEncode(append(guid[:0], mark...), b[:]))
}

// HasDelayMark reports whether a name is that of a contender for a lock with a delay.
func HasDelayMark(name string) bool { return strings.HasPrefix(name, NamePrefix+DelayMark) }

// GUIDOf returns the guid in the name of a node of this library, or "" for other libraries.
func GUIDOf(name string) string {
	if ClientOf(name) != ClientZklock {
		return ""
	}
	return name[len(NamePrefix):][:32]
}

// isGUID reports whether text has the form of this library's guids.
func isGUID(text string) bool {
	marked := strings.HasPrefix(text, GUIDMark) || strings.HasPrefix(text, DelayMark)
	return marked && len(text) == 32 && strings.Trim(text, "0123456789abcdef") == ""
}

// GroupDigits is the length of a contender's group. The guids of all nodes of one acquire of
// permits begin with the group, so that Inspect knows which nodes belong together.
const GroupDigits = 14

// GroupOf returns the part of a name that the nodes of one acquire of permits share, or "" if the
// node is another library's: see queue.contender.
func GroupOf(name string) string {
	if ClientOf(name) != ClientZklock {
		return ""
	}
	from := len(NamePrefix) + len(GUIDMark)
	return name[from : from+GroupDigits]
}

// clients are identified by the way in which they make a name unique.
var clients = []struct {
	name *regexp.Regexp
	is   string
}{
	{regexp.MustCompile(`^` + NamePrefix + `(` + GUIDMark + `|` + DelayMark + `)[0-9a-f]{26}-`), ClientZklock},
	{regexp.MustCompile(`^` + NamePrefix + `[0-9a-f]{32}-`), clientGo},
	{regexp.MustCompile(`^` + NamePrefix + `[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-`), clientCurator},
	{regexp.MustCompile(`^[0-9a-f]{32}__r?lock__`), clientKazoo},
}

// ClientOf returns the library that created a node, or "" if its name does not show it.
func ClientOf(name string) string {
	for _, c := range clients {
		if c.name.MatchString(name) {
			return c.is
		}
	}
	return ""
}

// MayStay reports whether a contender whose node is gone may have another node in its place, as a
// Curator writer that has become a reader does. Only a listing shows that.
func MayStay(e Entry) bool {
	return strings.Contains(e.Name, WriterInfix) && ClientOf(e.Name) != ClientZklock
}
