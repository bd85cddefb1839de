// SPDX-License-Identifier: Apache-2.0

// Package frames reads and writes the parts of ZooKeeper's wire format that package conn needs to
// observe a client's connection and to send its own requests on it. It splits a stream into frames,
// checks that replies are well-formed, creates requests, reads their replies, and modifies the few
// requests that must not reach a server as they are.
package frames

// Operations, by their numbers on the wire.
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

// Numbers of requests that are outside the sequence.
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

// Limits on what a server may send. The replies to the program's own requests may be of any length.
const (
	MaxFrame    = 64 << 20 // bytes of any frame; the largest is a listing
	MaxNames    = 1 << 20  // children in a listing: a short name takes many times its length in memory
	MaxGreeting = 1 << 10  // bytes of the reply to a connection request
	MaxToken    = 4 << 10  // bytes of the reply to a SASL request
	maxPassword = 16       // bytes of a session's password; the client library cannot send more than 200
	statSize    = 68
)
