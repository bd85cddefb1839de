// Package frames reads and writes ZooKeeper's wire format as far as an observer between a client and
// a server needs it, who also speaks. It cuts a stream into frames and checks that replies are well-formed. It makes
// requests, reads their answers, and changes the few requests that must not reach a server as they are.
package frames

// Operations by their numbers on the wire.
const (
	OpClose           = -11
	OpError           = -1
	OpCreate          = 1
	OpDelete          = 2
	OpExists          = 3
	OpGetData         = 4
	OpSetData         = 5
	OpGetACL          = 6
	OpSetACL          = 7
	OpGetChildren     = 8
	OpSync            = 9
	OpPing            = 11
	OpGetChildren2    = 12
	OpCheck           = 13
	OpMulti           = 14
	OpCreate2         = 15
	OpCreateContainer = 19
	OpCreateTTL       = 21
	OpAuth            = 100
	OpSetWatches      = 101
	OpSASL            = 102
)

// Numbers of requests that are not counted up.
const (
	XidEvent = -1
	XidPing  = -2
)

// Codes of replies.
const (
	CodeOK                      = 0
	CodeNoNode                  = -101
	CodeNoAuth                  = -102
	CodeBadVersion              = -103
	CodeNoChildrenForEphemerals = -108
	CodeNodeExists              = -110
	CodeNotEmpty                = -111
	CodeExpired                 = -112
	CodeAuthFailed              = -115
	CodeRequiresSASL            = -124
	CodeThrottled               = -127
)

// Bounds on what a server sends.
const (
	MaxFrame    = 64 << 20 // of any frame; the largest is a listing
	MaxNames    = 1 << 20  // of children in a listing: a short name takes many times its length of memory
	MaxGreeting = 1 << 10  // of the answer to a connection request
	MaxToken    = 4 << 10  // of the answer to a request of SASL's
	maxPassword = 16       // of a session; the client library cannot send one of more than 200
	statSize    = 68
)
