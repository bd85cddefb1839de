package zklock

import (
	"bytes"
	"encoding/json"
	"os"
)

// owner is what the data of a node says about the contender that it belongs to.
type owner struct {
	Host   string `json:"host,omitempty"`
	PID    int    `json:"pid,omitempty"`
	Label  string `json:"label,omitempty"`
	Shared bool   `json:"shared,omitempty"` // a writer that has become a reader
	Revoke bool   `json:"revoke,omitempty"` // the holder was asked to let go
	Cohort bool   `json:"cohort,omitempty"` // a place of all goroutines of a process
}

// maxLabel is how long a label may be.
const maxLabel = 1024

// nobody is the process number in anonymous data.
const nobody = -1

func ownerData(label string, anonymous bool) []byte {
	if anonymous {
		return owner{PID: nobody, Label: label}.encode()
	}
	host, _ := os.Hostname() // without a name the process number still helps
	return owner{Host: host, PID: os.Getpid(), Label: label}.encode()
}

// ofCohort returns owner data for a place that the goroutines of a process share.
func ofCohort(identity []byte) []byte {
	o, _ := readOwner(identity) // which this library has written
	o.Cohort = true
	return o.encode()
}

func (o owner) encode() []byte {
	data, _ := json.Marshal(o) // cannot fail
	return data
}

// readOwner reads owner data. ok reports whether this library wrote it, byte by byte: the
// value of an election may be similar JSON and must not be taken for it.
func readOwner(data []byte) (_ owner, ok bool) {
	var o owner
	ok = json.Unmarshal(data, &o) == nil && o.PID != 0 && bytes.Equal(o.encode(), data)
	return o, ok
}

// isDowngraded reports whether a node's data shows a writer that has become a reader.
func isDowngraded(data []byte) bool {
	o, ok := readOwner(data)
	return ok && o.Shared
}

// A request to let go is a mark in the data of the holder's node.
//
// Curator's Revoker replaces the data by its message, and a Curator holder acts on exactly
// that message. The data of our own nodes stays readable: owner data gets "revoke":true, and
// anything else (the value of an election) gets the message as its first line. If somebody
// overwrites our data all the same, the holder restores it.

// curatorRevocation is what Curator's Revoker writes.
var curatorRevocation = []byte("__REVOKE__")

// revocationLine precedes our data if that is not owner data.
var revocationLine = []byte("__REVOKE__\n")

// isRevocation reports whether a node's data asks its owner to let go.
func isRevocation(data []byte) bool {
	if bytes.Equal(data, curatorRevocation) || bytes.HasPrefix(data, revocationLine) {
		return true
	}
	var o owner
	return json.Unmarshal(data, &o) == nil && o.Revoke
}

// withRevocation returns data of our own node with the request added.
func withRevocation(data []byte) []byte {
	if o, ok := readOwner(data); ok {
		o.Revoke = true
		return o.encode()
	}
	return append(bytes.Clone(revocationLine), data...)
}

// withoutRevocation returns data as it was before the request, or nil if Curator's request
// has replaced it.
func withoutRevocation(data []byte) []byte {
	if bytes.Equal(data, curatorRevocation) {
		return nil
	}
	if rest, ok := bytes.CutPrefix(data, revocationLine); ok {
		return rest
	}
	if o, ok := readOwner(data); ok && o.Revoke {
		o.Revoke = false
		return o.encode()
	}
	return data
}
