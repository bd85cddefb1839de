package zklock

import (
	"crypto/rand"
	"encoding/hex"
	"regexp"
	"strconv"
	"strings"
)

// The values of Contender.Client; package operate has them, too.
const (
	clientZklock  = "zklock"
	clientCurator = "Curator"
	clientKazoo   = "kazoo"
	clientGo      = "go-zookeeper"
)

// The kinds of contenders, as the names of their nodes show them. The number that the server
// appends follows.
const (
	lockInfix      = "-lock-"    // zklock, go-zookeeper, Curator
	writerInfix    = "-__WRIT__" // zklock, Curator
	readerInfix    = "-__READ__"
	latchInfix     = "-latch-" // Curator's LeaderLatch
	leaseInfix     = "-lease-" // zklock's and Curator's semaphores, one for each permit
	kazooLockInfix = "__lock__"
	kazooReadInfix = "__rlock__"
)

// namePrefix begins the names of zklock, go-zookeeper and Curator. A guid follows.
const namePrefix = "_c_"

// The directories of a semaphore below its path, as Curator names them.
const (
	leasesDir = "/leases" // one node for each permit that is held
	gateDir   = "/locks"  // the queue of those that ask for permits
)

// marksSuffix is what the name of the node with the marks adds to the lock's path. That node
// is not a child of the lock's directory, because Curator and go-zookeeper take every child
// for a contender.
const marksSuffix = ".zklock-slots"

// recordSuffix is what the name of a lock's record adds to its path: see record.
const recordSuffix = ".zklock-delay"

// entry is a contender as a directory listing shows it.
type entry struct {
	name   string
	seq    int32 // the number that the server appended
	shared bool  // a reader
	czxid  int64 // zero if it was not asked for
	owner  int64 // its session, known when the czxid is
}

// kinds are the names that the lock recipes of this and of other libraries give to their nodes.
// All other nodes in a directory are ignored.
var kinds = []struct {
	infix  string
	shared bool
}{
	{lockInfix, false},
	{writerInfix, false},
	{readerInfix, true},
	{kazooLockInfix, false},
	{kazooReadInfix, true},
	{latchInfix, false},
	{leaseInfix, false},
}

// parseEntry reads a node's name. ok is false for a name that no lock recipe makes.
func parseEntry(name string) (_ entry, ok bool) {
	for _, k := range kinds {
		i := strings.LastIndex(name, k.infix)
		if i < 0 && strings.HasPrefix(name, k.infix[1:]) && k.infix[0] == '-' {
			i = -1 // without the protection prefix
		} else if i <= 0 {
			continue
		}
		if seq, ok := parseSeq(name[i+len(k.infix):]); ok {
			return entry{name: name, seq: seq, shared: k.shared}, true
		}
	}
	return entry{}, false
}

// parseSeq reads a sequence number as servers print it: %010d of an int32, which is negative
// after the counter has run over.
func parseSeq(s string) (int32, bool) {
	digits := strings.TrimPrefix(s, "-")
	if len(s) < 10 || len(digits) > 10 || s[0] == '+' {
		return 0, false
	}
	seq, err := strconv.ParseInt(s, 10, 32)
	// Ten characters, but for the sign of ten digits; and nothing prints -0.
	printed := len(s) == 10 && s != "-000000000" || len(digits) == 10 && seq <= -1e9
	return int32(seq), err == nil && printed
}

// parseEntries reads names and drops those that no lock recipe makes.
func parseEntries(names []string) []entry {
	entries := make([]entry, 0, len(names))
	for _, name := range names {
		if e, ok := parseEntry(name); ok {
			entries = append(entries, e)
		}
	}
	return entries
}

// One of these begins each of our guids, whose names look like those of other libraries
// otherwise. They have the same length.
const (
	guidMark  = "7a6b6c" // zkl
	delayMark = "7a6b64" // zkd: of a contender for a lock with a delay
)

func newGUID(mark string) string {
	var b [16 - len(guidMark)/2]byte
	rand.Read(b[:]) // never fails
	return mark + hex.EncodeToString(b[:])
}

// isDelayed reports whether a name is that of a contender for a lock with a delay.
func isDelayed(name string) bool { return strings.HasPrefix(name, namePrefix+delayMark) }

// guidOf returns the guid in the name of a node of this library, or "" for another's.
func guidOf(name string) string {
	if clientOf(name) != clientZklock {
		return ""
	}
	return name[len(namePrefix):][:32]
}

// isGUID reports whether text has the form of this library's guids.
func isGUID(text string) bool {
	marked := strings.HasPrefix(text, guidMark) || strings.HasPrefix(text, delayMark)
	return marked && len(text) == 32 && strings.Trim(text, "0123456789abcdef") == ""
}

// groupDigits is the length of a contender's group. The guids of all nodes of one acquire of
// permits begin with it, so that Inspect knows which belong together.
const groupDigits = 14

// groupOf returns the part of a name that the nodes of one acquire of permits share, or "" if
// the node is another library's: see contender.group.
func groupOf(name string) string {
	if clientOf(name) != clientZklock {
		return ""
	}
	from := len(namePrefix) + len(guidMark)
	return name[from : from+groupDigits]
}

// clients are recognised by the way in which they make a name unique.
var clients = []struct {
	name *regexp.Regexp
	is   string
}{
	{regexp.MustCompile(`^` + namePrefix + `(` + guidMark + `|` + delayMark + `)[0-9a-f]{26}-`), clientZklock},
	{regexp.MustCompile(`^` + namePrefix + `[0-9a-f]{32}-`), clientGo},
	{regexp.MustCompile(`^` + namePrefix + `[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-`), clientCurator},
	{regexp.MustCompile(`^[0-9a-f]{32}__r?lock__`), clientKazoo},
}

// clientOf returns the library that has made a node, or "" if its name does not show it.
func clientOf(name string) string {
	for _, c := range clients {
		if c.name.MatchString(name) {
			return c.is
		}
	}
	return ""
}

// mayStay reports whether a contender whose node has gone may have another in its place, as a
// writer of Curator's that became a reader does. Only a listing tells.
func mayStay(e entry) bool {
	return strings.Contains(e.name, writerInfix) && clientOf(e.name) != clientZklock
}
