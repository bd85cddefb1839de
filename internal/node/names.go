// Package node says what stands in ZooKeeper: what nodes of locks are called, in which order they stand, and what their data means,
// of this library and of others. It sends nothing.
package node

import (
	"crypto/rand"
	"encoding/hex"
	"regexp"
	"strconv"
	"strings"
)

// The values of Contender.Client; package operate has them, too.
const (
	ClientZklock  = "zklock"
	clientCurator = "Curator"
	clientKazoo   = "kazoo"
	clientGo      = "go-zookeeper"
)

// The kinds of contenders, as the names of their nodes show them. The number that the server
// appends follows.
const (
	LockInfix      = "-lock-"    // zklock, go-zookeeper, Curator
	WriterInfix    = "-__WRIT__" // zklock, Curator
	ReaderInfix    = "-__READ__"
	LatchInfix     = "-latch-" // Curator's LeaderLatch
	LeaseInfix     = "-lease-" // zklock's and Curator's semaphores, one for each permit
	kazooLockInfix = "__lock__"
	KazooReadInfix = "__rlock__"
)

// namePrefix begins the names of zklock, go-zookeeper and Curator. A guid follows.
const NamePrefix = "_c_"

// The directories of a semaphore below its path, as Curator names them.
const (
	LeasesDir = "/leases" // one node for each permit that is held
	GateDir   = "/locks"  // the queue of those that ask for permits
)

// marksSuffix is what the name of the node with the marks adds to the lock's path. That node
// is not a child of the lock's directory, because Curator and go-zookeeper take every child
// for a contender.
const MarksSuffix = ".zklock-slots"

// recordSuffix is what the name of a lock's record adds to its path: see record.
const RecordSuffix = ".zklock-delay"

// Entry is a contender as a directory listing shows it.
type Entry struct {
	Name   string
	Seq    int32 // the number that the server appended
	Shared bool  // a reader
	Czxid  int64 // zero if it was not asked for
	Owner  int64 // its session, known when the czxid is
}

// kinds are the names that the lock recipes of this and of other libraries give to their nodes.
// All other nodes in a directory are ignored.
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

// ParseEntry reads a node's name. ok is false for a name that no lock recipe makes.
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

// ParseSeq reads a sequence number as servers print it: %010d of an int32, which is negative
// after the counter has run over.
func ParseSeq(s string) (int32, bool) {
	digits := strings.TrimPrefix(s, "-")
	if len(s) < 10 || len(digits) > 10 || s[0] == '+' {
		return 0, false
	}
	seq, err := strconv.ParseInt(s, 10, 32)
	// Ten characters, but for the sign of ten digits; and nothing prints -0.
	printed := len(s) == 10 && s != "-000000000" || len(digits) == 10 && seq <= -1e9
	return int32(seq), err == nil && printed
}

// ParseEntries reads names and drops those that no lock recipe makes.
func ParseEntries(names []string) []Entry {
	entries := make([]Entry, 0, len(names))
	for _, name := range names {
		if e, ok := ParseEntry(name); ok {
			entries = append(entries, e)
		}
	}
	return entries
}

// One of these begins each of our guids, whose names look like those of other libraries
// otherwise. They have the same length.
const (
	GUIDMark  = "7a6b6c" // zkl
	DelayMark = "7a6b64" // zkd: of a contender for a lock with a delay
)

func NewGUID(mark string) string {
	var b [16 - len(GUIDMark)/2]byte
	rand.Read(b[:]) // never fails
	var guid [2 * 16]byte
	return string(hex.AppendEncode(append(guid[:0], mark...), b[:]))
}

// IsDelayed reports whether a name is that of a contender for a lock with a delay.
func IsDelayed(name string) bool { return strings.HasPrefix(name, NamePrefix+DelayMark) }

// GUIDOf returns the guid in the name of a node of this library, or "" for another's.
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

// groupDigits is the length of a contender's group. The guids of all nodes of one acquire of
// permits begin with it, so that Inspect knows which belong together.
const GroupDigits = 14

// GroupOf returns the part of a name that the nodes of one acquire of permits share, or "" if
// the node is another library's: see contender.group.
func GroupOf(name string) string {
	if ClientOf(name) != ClientZklock {
		return ""
	}
	from := len(NamePrefix) + len(GUIDMark)
	return name[from : from+GroupDigits]
}

// clients are recognised by the way in which they make a name unique.
var clients = []struct {
	name *regexp.Regexp
	is   string
}{
	{regexp.MustCompile(`^` + NamePrefix + `(` + GUIDMark + `|` + DelayMark + `)[0-9a-f]{26}-`), ClientZklock},
	{regexp.MustCompile(`^` + NamePrefix + `[0-9a-f]{32}-`), clientGo},
	{regexp.MustCompile(`^` + NamePrefix + `[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-`), clientCurator},
	{regexp.MustCompile(`^[0-9a-f]{32}__r?lock__`), clientKazoo},
}

// ClientOf returns the library that has made a node, or "" if its name does not show it.
func ClientOf(name string) string {
	for _, c := range clients {
		if c.name.MatchString(name) {
			return c.is
		}
	}
	return ""
}

// MayStay reports whether a contender whose node has gone may have another in its place, as a
// writer of Curator's that became a reader does. Only a listing tells.
func MayStay(e Entry) bool {
	return strings.Contains(e.Name, WriterInfix) && ClientOf(e.Name) != ClientZklock
}
