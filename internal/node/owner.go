// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// Owner is the description of a contender in its node's data.
type Owner struct {
	Host   string `json:"host,omitempty"`
	PID    int    `json:"pid,omitempty"`
	Label  string `json:"label,omitempty"`
	Shared bool   `json:"shared,omitempty"` // a writer that has become a reader
	Revoke bool   `json:"revoke,omitempty"` // the holder was asked to release the lock
	Cohort bool   `json:"cohort,omitempty"` // a node that all goroutines of a process share
}

// String describes the contender for people: by its label, or by its process.
func (o Owner) String() string {
	switch {
	case o.Label != "":
		return o.Label
	case o.PID == Nobody:
		return "an anonymous client"
	}
	return fmt.Sprintf("process %d on %s", o.PID, o.Host)
}

// MaxLabel is the maximum length of a label.
const MaxLabel = 1024

// Nobody is the process ID in anonymous data.
const Nobody = -1

func OwnerData(label string, anonymous bool) []byte {
	if anonymous {
		return Owner{PID: Nobody, Label: label}.Encode()
	}
	host, _ := os.Hostname() // without a host name the process ID is still useful
	return Owner{Host: host, PID: os.Getpid(), Label: label}.Encode()
}

// OfCohort returns owner data for a node that the goroutines of a process share.
func OfCohort(identity []byte) []byte {
	o, _ := ReadOwner(identity) // written by this library
	o.Cohort = true
	return o.Encode()
}

// Encode returns data that ReadOwner can parse. It replaces invalid UTF-8, which JSON would not
// preserve.
func (o Owner) Encode() []byte {
	o.Host, o.Label = strings.ToValidUTF8(o.Host, "\uFFFD"), strings.ToValidUTF8(o.Label, "\uFFFD")
	data, _ := json.Marshal(o) // cannot fail
	return data
}

// ReadOwner parses owner data. ok reports whether this library wrote exactly these bytes: the value
// of an election may be similar JSON and must not be mistaken for owner data.
func ReadOwner(data []byte) (_ Owner, ok bool) {
	var o Owner
	ok = json.Unmarshal(data, &o) == nil && o.PID != 0 && bytes.Equal(o.Encode(), data)
	return o, ok
}

// IsDowngraded reports whether a node's data is that of a writer that has become a reader.
func IsDowngraded(data []byte) bool {
	o, ok := ReadOwner(data)
	return ok && o.Shared
}

// A revocation request is a mark in the data of the holder's node.
//
// Curator's Revoker replaces the data with its message, and a Curator holder acts on exactly that
// message. The data of our own nodes stays readable: owner data gets "revoke":true, and any other
// data (the value of an election) gets the message as its first line. If somebody overwrites our
// data nevertheless, the holder restores it.

// CuratorRevocation is the data that Curator's Revoker writes.
var CuratorRevocation = []byte("__REVOKE__")

// revocationLine precedes our data if it is not owner data.
var revocationLine = []byte("__REVOKE__\n")

// IsRevocation reports whether a node's data contains a revocation request.
func IsRevocation(data []byte) bool {
	if bytes.Equal(data, CuratorRevocation) || bytes.HasPrefix(data, revocationLine) {
		return true
	}
	var o Owner
	return json.Unmarshal(data, &o) == nil && o.Revoke
}

// WithRevocation returns the data of our own node with the request added.
func WithRevocation(data []byte) []byte {
	if o, ok := ReadOwner(data); ok {
		o.Revoke = true
		return o.Encode()
	}
	return append(bytes.Clone(revocationLine), data...)
}

// WithoutRevocation returns the data without the request, or nil if Curator's request has replaced
// it.
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
