package zklock

import (
	"bytes"
	"encoding/json"
	"os"
)

// owner is what a node's data says of whose it is.
type owner struct {
	Host   string `json:"host,omitempty"`
	PID    int    `json:"pid,omitempty"`
	Label  string `json:"label,omitempty"`
	Shared bool   `json:"shared,omitempty"` // a writer that has become a reader
	Revoke bool   `json:"revoke,omitempty"` // somebody asks the holder to let go
}

// maxLabel is how long a label may be.
const maxLabel = 1024

// nobody is the process number of those that do not say theirs.
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

// readOwner reads data that we have written ourselves; false for any other, be it JSON:
// an election's value may look like that and must come back byte by byte.
func readOwner(data []byte) (owner, bool) {
	var o owner
	ok := json.Unmarshal(data, &o) == nil && o.PID != 0 && bytes.Equal(o.encode(), data)
	return o, ok
}
