package node

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/zklock-go/zklock/internal/outcome"
)

// DirData is what this library writes into the data of a queue's directory: see note.
type DirData struct {
	Last    string   // the node of the last holder that left a note
	Evicted []string // the guids of the waiters that were evicted last, oldest first
}

const (
	NotePrefix    = "zklock: last held by "
	EvictedPrefix = "\nevicted: "
	MaxEvicted    = 256
)

// ParseDirData reads a directory's data. ours reports whether this library wrote it, or nobody.
func ParseDirData(data []byte) (b DirData, ours bool) {
	if len(data) == 0 {
		return DirData{}, true
	}
	rest, ours := strings.CutPrefix(string(data), NotePrefix)
	if !ours {
		return DirData{}, false
	}
	last, evicted, _ := strings.Cut(rest, EvictedPrefix)
	b.Last = last
	for guid := range strings.FieldsSeq(evicted) {
		if isGUID(guid) { // else somebody else has made the list
			b.Evicted = append(b.Evicted, guid)
		}
	}
	b.Evicted = b.Evicted[max(0, len(b.Evicted)-MaxEvicted):]
	return b, true
}

func (b DirData) Encode() []byte {
	data := NotePrefix + b.Last
	if len(b.Evicted) > 0 {
		data += EvictedPrefix + strings.Join(b.Evicted, " ")
	}
	return []byte(data)
}

func (b DirData) WithEvicted(guid string) DirData {
	evicted := append(slices.Clone(b.Evicted), guid)
	return DirData{b.Last, evicted[max(0, len(evicted)-MaxEvicted):]}
}

// EvictedIn returns the directory whose data tells the makers of nodes in dir that these were evicted.
// The data of the directory of permits is their number; those who have just made some still stand
// in the queue for them.
func EvictedIn(dir string, permits bool) string {
	if parent, ok := strings.CutSuffix(dir, LeasesDir); ok && permits {
		return parent + GateDir
	}
	return dir
}

// limitPrefix begins what the directory of permits has as its data.
const LimitPrefix = "zklock: permits "

// maxPermits bounds a semaphore: every permit that is held is a node.
const MaxPermits = 100_000

func LimitData(permits int) []byte { return []byte(LimitPrefix + strconv.Itoa(permits)) }

func ParseLimit(data []byte) (int, error) {
	number, ok := strings.CutPrefix(string(data), LimitPrefix)
	limit, err := strconv.Atoi(number)
	if !ok || err != nil || limit < 1 || limit > MaxPermits {
		return 0, fmt.Errorf("%w: its number of permits cannot be read from %.40q", outcome.ErrMismatch, data)
	}
	return limit, nil
}
