package frames

import (
	"encoding/binary"
	"slices"
)

// Request returns the number and the operation of a request. A piece that is too short for
// one is not a request, and ok is false.
func Request(p []byte) (xid, op int32, ok bool) {
	if len(p) < 12 {
		return 0, 0, false
	}
	return int32(binary.BigEndian.Uint32(p[4:])), int32(binary.BigEndian.Uint32(p[8:])), true
}

// ExistsRoot returns a request for what every server has: exists "/".
func ExistsRoot(xid int32) []byte {
	p := make([]byte, 18)
	binary.BigEndian.PutUint32(p, 14)
	binary.BigEndian.PutUint32(p[4:], uint32(xid))
	binary.BigEndian.PutUint32(p[8:], OpExists)
	binary.BigEndian.PutUint32(p[12:], 1)
	p[16] = '/'
	return p
}

// SASL returns a request with a token of SASL's.
func SASL(xid int32, token []byte) []byte {
	p := binary.BigEndian.AppendUint32(nil, uint32(12+len(token)))
	p = binary.BigEndian.AppendUint32(p, uint32(xid))
	p = binary.BigEndian.AppendUint32(p, OpSASL)
	p = binary.BigEndian.AppendUint32(p, uint32(len(token)))
	return append(p, token...)
}

// SessionOf returns the session that a connection request asks for. A piece that is too
// short for one is no connection request, and ok is false.
func SessionOf(p []byte) (id int64, ok bool) {
	if len(p) < 32 {
		return 0, false
	}
	return int64(binary.BigEndian.Uint64(p[20:])), true
}

// NewSessionRequest returns the connection request p without what it says of a session, so
// that it asks for a new one. The last transaction seen goes as well: an ensemble that was
// restored from a backup refuses every client that has seen a later transaction than it has.
func NewSessionRequest(p []byte) []byte {
	p = slices.Clone(p)
	clear(p[8:16])  // the last transaction seen
	clear(p[20:28]) // the session
	clear(p[32:])   // its password
	return p
}
