package node

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// Owner is what the data of a node says about the contender that it belongs to.
type Owner struct {
	Host   string `json:"host,omitempty"`
	PID    int    `json:"pid,omitempty"`
	Label  string `json:"label,omitempty"`
	Shared bool   `json:"shared,omitempty"` // a writer that has become a reader
	Revoke bool   `json:"revoke,omitempty"` // the holder was asked to let go
	Cohort bool   `json:"cohort,omitempty"` // a place of all goroutines of a process
}

// String names the contender for people: by its label, or by its process.
func (o Owner) String() string {
	switch {
	case o.Label != "":
		return o.Label
	case o.PID == Nobody:
		return "somebody"
	}
	return fmt.Sprintf("process %d on %s", o.PID, o.Host)
}

// maxLabel is how long a label may be.
const MaxLabel = 1024

// nobody is the process number in anonymous data.
const Nobody = -1

func OwnerData(label string, anonymous bool) []byte {
	if anonymous {
		return Owner{PID: Nobody, Label: label}.Encode()
	}
	host, _ := os.Hostname() // without a name the process number still helps
	return Owner{Host: host, PID: os.Getpid(), Label: label}.Encode()
}

// OfCohort returns owner data for a place that the goroutines of a process share.
func OfCohort(identity []byte) []byte {
	o, _ := ReadOwner(identity) // which this library has written
	o.Cohort = true
	return o.Encode()
}

// Encode returns what ReadOwner reads. Text that is not UTF-8 would not come back as it was written.
func (o Owner) Encode() []byte {
	o.Host, o.Label = strings.ToValidUTF8(o.Host, "\uFFFD"), strings.ToValidUTF8(o.Label, "\uFFFD")
	data, _ := json.Marshal(o) // cannot fail
	return data
}

// ReadOwner reads owner data. ok reports whether this library wrote it, byte by byte: the
// value of an election may be similar JSON and must not be taken for it.
func ReadOwner(data []byte) (_ Owner, ok bool) {
	var o Owner
	ok = json.Unmarshal(data, &o) == nil && o.PID != 0 && bytes.Equal(o.Encode(), data)
	return o, ok
}

// IsDowngraded reports whether a node's data shows a writer that has become a reader.
func IsDowngraded(data []byte) bool {
	o, ok := ReadOwner(data)
	return ok && o.Shared
}

// A request to let go is a mark in the data of the holder's node.
//
// Curator's Revoker replaces the data by its message, and a Curator holder acts on exactly
// that message. The data of our own nodes stays readable: owner data gets "revoke":true, and
// anything else (the value of an election) gets the message as its first line. If somebody
// overwrites our data all the same, the holder restores it.

// curatorRevocation is what Curator's Revoker writes.
var CuratorRevocation = []byte("__REVOKE__")

// revocationLine precedes our data if that is not owner data.
var revocationLine = []byte("__REVOKE__\n")

// IsRevocation reports whether a node's data asks its owner to let go.
func IsRevocation(data []byte) bool {
	if bytes.Equal(data, CuratorRevocation) || bytes.HasPrefix(data, revocationLine) {
		return true
	}
	var o Owner
	return json.Unmarshal(data, &o) == nil && o.Revoke
}

// WithRevocation returns data of our own node with the request added.
func WithRevocation(data []byte) []byte {
	if o, ok := ReadOwner(data); ok {
		o.Revoke = true
		return o.Encode()
	}
	return append(bytes.Clone(revocationLine), data...)
}

// WithoutRevocation returns data as it was before the request, or nil if Curator's request
// has replaced it.
func WithoutRevocation(data []byte) []byte {
	if bytes.Equal(data, CuratorRevocation) {
		return nil
	}
	if rest, ok := bytes.CutPrefix(data, revocationLine); ok {
		return rest
	}
	if o, ok := ReadOwner(data); ok && o.Revoke {
		o.Revoke = false
		return o.Encode()
	}
	return data
}
