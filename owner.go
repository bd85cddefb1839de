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
