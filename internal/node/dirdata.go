// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/zklock-go/zklock/internal/outcome"
)

// DirData is the data that this library writes in a queue's directory: see queue.note.
type DirData struct {
	Last    string   // the node of the last holder that wrote a note
	Evicted []string // the guids of the most recently evicted waiters, oldest first
}

const (
	NotePrefix    = "zklock: last held by "
	EvictedPrefix = "\nevicted: "
	MaxEvicted    = 256
)

// ParseDirData parses a directory's data. ours is true if this library wrote the data or there is
// none.
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
		if isGUID(guid) { // otherwise somebody else wrote the list
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

// EvictedIn returns the directory whose data lists the evicted nodes of dir. The data of the
// permits directory is the number of permits, so evictions from it are listed in the queue's
// directory, in which a caller that has just created permit nodes still has a node.
func EvictedIn(dir string, permits bool) string {
	if parent, ok := strings.CutSuffix(dir, LeasesDir); ok && permits {
		return parent + PermitQueueDir
	}
	return dir
}

// LimitPrefix begins the data of the permits directory.
const LimitPrefix = "zklock: permits "

// MaxPermits limits the size of a semaphore: every permit held is a node.
const MaxPermits = 100_000

func LimitData(permits int) []byte { return []byte(LimitPrefix + strconv.Itoa(permits)) }

func ParseLimit(data []byte) (int, error) {
	number, ok := strings.CutPrefix(string(data), LimitPrefix)
	limit, err := strconv.Atoi(number)
	if !ok || err != nil || limit < 1 || limit > MaxPermits {
		return 0, fmt.Errorf("%w: cannot parse number of permits from %.40q", outcome.ErrMismatch, data)
	}
	return limit, nil
}
