package zklock

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A board is what this library writes into the data of a queue's directory: see note.
type board struct {
	last    string   // the node of the last holder that left a note
	evicted []string // the guids of the waiters that were evicted last, oldest first
}

const (
	notePrefix    = "zklock: last held by "
	evictedPrefix = "\nevicted: "
	maxEvicted    = 256
)

// parseBoard reads a directory's data. ours reports whether this library wrote it, or nobody.
func parseBoard(data []byte) (b board, ours bool) {
	if len(data) == 0 {
		return board{}, true
	}
	rest, ours := strings.CutPrefix(string(data), notePrefix)
	if !ours {
		return board{}, false
	}
	last, evicted, _ := strings.Cut(rest, evictedPrefix)
	b.last = last
	for guid := range strings.FieldsSeq(evicted) {
		if isGUID(guid) { // else somebody else has made the list
			b.evicted = append(b.evicted, guid)
		}
	}
	b.evicted = b.evicted[max(0, len(b.evicted)-maxEvicted):]
	return b, true
}

func (b board) encode() []byte {
	data := notePrefix + b.last
	if len(b.evicted) > 0 {
		data += evictedPrefix + strings.Join(b.evicted, " ")
	}
	return []byte(data)
}

func (b board) withEvicted(guid string) board {
	evicted := append(slices.Clone(b.evicted), guid)
	return board{b.last, evicted[max(0, len(evicted)-maxEvicted):]}
}

// boardOf returns the directory whose data tells the makers of nodes in dir that these were evicted.
// The data of the directory of permits is their number; those who have just made some still stand
// in the queue for them.
func boardOf(dir string, permits bool) string {
	if parent, ok := strings.CutSuffix(dir, leasesDir); ok && permits {
		return parent + gateDir
	}
	return dir
}

// limitPrefix begins what the directory of permits has as its data.
const limitPrefix = "zklock: permits "

// maxPermits bounds a semaphore: every permit that is held is a node.
const maxPermits = 100_000

func limitData(permits int) []byte { return []byte(limitPrefix + strconv.Itoa(permits)) }

func parseLimit(data []byte) (int, error) {
	number, ok := strings.CutPrefix(string(data), limitPrefix)
	limit, err := strconv.Atoi(number)
	if !ok || err != nil || limit < 1 || limit > maxPermits {
		return 0, fmt.Errorf("%w: its number of permits cannot be read from %.40q", ErrLimit, data)
	}
	return limit, nil
}
