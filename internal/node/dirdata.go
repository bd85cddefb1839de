// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/zklock-go/zklock/internal/outcome"
)

// DirData is the data that this library writes in a queue's directory: see queue.note.
type DirData struct {
	Last    string     // the node of the last holder that wrote a note
	Evicted []Eviction // the most recent evictions of waiters and holders, oldest first
}

// Eviction is the mark of an evicted contender.
type Eviction struct {
	GUID string // the contender's
	Origin
}

// Origin says who evicted a contender and why. Each of its fields is empty if that is not known.
type Origin struct {
	By     string // a host
	Reason string // what the operator has said
}

const (
	NotePrefix    = "zklock: last held by "
	EvictedPrefix = "\nevicted: "
	originPrefix  = "by="
	reasonPrefix  = "&reason="
)

// Every contender that follows a hand-off reads the directory's data, so it is small.
const (
	MaxEvicted = 256
	MaxOrigins = 8   // evictions with an earlier origin are known without it
	MaxReason  = 200 // bytes
	maxBy      = 255 // bytes
)

// NewOrigin returns the origin of an eviction by a client with the given owner data.
func NewOrigin(identity []byte, reason string) Origin {
	o, _ := ReadOwner(identity) // an anonymous client has no host
	return Origin{o.Host, reason}.cleaned()
}

// cleaned returns the origin as it can be written.
func (o Origin) cleaned() Origin { return Origin{clip(o.By, maxBy), clip(o.Reason, MaxReason)} }

// clip returns at most n bytes of text, as valid UTF-8.
func clip(text string, n int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= n {
		return text
	}
	for !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// encode returns a single word.
func (o Origin) encode() string {
	return originPrefix + url.QueryEscape(o.By) + reasonPrefix + url.QueryEscape(o.Reason)
}

// parseOrigin parses what encode returns. It returns the zero Origin for any other word.
func parseOrigin(word string) Origin {
	by, reason, ok := strings.Cut(strings.TrimPrefix(word, originPrefix), reasonPrefix)
	if !ok {
		return Origin{}
	}
	var o Origin
	var errs [2]error
	o.By, errs[0] = url.QueryUnescape(by)
	o.Reason, errs[1] = url.QueryUnescape(reason)
	if errs != [2]error{} {
		return Origin{}
	}
	return o.cleaned()
}

// ParseDirData parses a directory's data. ours is true if this library wrote the data or there is
// none.
//
// The list of evictions is a list of words: the guids of contenders and, before those with an origin,
// the origin. A version of this library that does not know origins ignores these words.
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
	var origin Origin
	for word := range strings.FieldsSeq(evicted) {
		switch {
		case isGUID(word): // otherwise somebody else wrote the list
			b.Evicted = append(b.Evicted, Eviction{word, origin})
		case strings.HasPrefix(word, originPrefix):
			origin = parseOrigin(word)
		}
	}
	b.Evicted = newest(b.Evicted)
	return b, true
}

func (b DirData) Encode() []byte {
	var words []string
	var origin Origin
	for _, e := range b.Evicted {
		if e.Origin != origin {
			origin = e.Origin
			words = append(words, origin.encode())
		}
		words = append(words, e.GUID)
	}
	data := NotePrefix + b.Last
	if len(words) > 0 {
		data += EvictedPrefix + strings.Join(words, " ")
	}
	return []byte(data)
}

func (b DirData) WithEvicted(e Eviction) DirData {
	return DirData{b.Last, newest(append(slices.Clone(b.Evicted), e))}
}

// newest returns the evictions that are kept. It changes evicted: early evictions lose their origin.
func newest(evicted []Eviction) []Eviction {
	evicted = evicted[max(0, len(evicted)-MaxEvicted):]
	origins, last := 0, Origin{}
	for i, e := range slices.Backward(evicted) {
		if e.Origin != last && e.Origin != (Origin{}) {
			origins++
		}
		last = e.Origin
		if origins > MaxOrigins {
			evicted[i].Origin = Origin{}
		}
	}
	return evicted
}

// EvictionOf returns the eviction of the contender with the given guid.
func (b DirData) EvictionOf(guid string) (e Eviction, found bool) {
	i := slices.IndexFunc(b.Evicted, func(e Eviction) bool { return e.GUID == guid })
	if i < 0 {
		return Eviction{}, false
	}
	return b.Evicted[i], true
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
