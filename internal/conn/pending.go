// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/frames"
	"github.com/zklock-go/zklock/internal/lease"
)

// sentRequest is a request whose reply is outstanding.
type sentRequest struct {
	sent lease.Instant
	op   int32
	by   Requester // nil for the client library
	xid  int32     // the number that the client library gave it
	room int       // what it takes up of the connection's room; zero for a heartbeat
	late bool      // it is large, or was sent while a large request was unanswered

	request frames.Request // of ours, or one that presents a credential
	again   int            // how often it was sent again: see sendAgain
}

// tell passes the reply to the requester. If the reply is too long, or ends the connection, the
// requester gets an error.
func (sr *sentRequest) tell(r frames.Reply, tooLong bool, err error) {
	switch {
	case err != nil:
		sr.by.Answered(frames.Reply{}, zk.ErrConnectionClosed)
	case r.Code != frames.CodeOK:
		sr.by.Answered(frames.Reply{}, frames.ErrorOf(r.Code))
	case tooLong:
		sr.by.Answered(frames.Reply{}, frames.ErrTooLong)
	default:
		sr.by.Answered(r, nil)
	}
}

// isTooLong reports whether a reply to a request of ours has more names than we read.
func (sr *sentRequest) isTooLong(r frames.Reply) bool {
	return r.Code == frames.CodeOK && frames.CountNames(sr.op, r.Body) > frames.MaxNames
}

// checkBody returns an error if no correct server sends the reply.
func (sr *sentRequest) checkBody(r frames.Reply) error {
	if r.Code != frames.CodeOK {
		return nil
	}
	return frames.CheckReply(sr.op, r.Body)
}

// pending contains the requests of a connection whose replies are outstanding. The proxy's mutex
// guards it. The zero value is that of a connection that has ended: it contains no request, and none
// may be added.
type pending struct {
	requests map[int32]sentRequest // by the number that the proxy gave them, except pings
	pings    []lease.Instant       // their send times, oldest first: all pings have the same number, and replies come in order
	most     int                   // the largest size of requests since it was made; at least its size
	large    int                   // how many of requests take up the room of a large one
	heard    time.Time             // when the last bytes of a reply arrived; zero before the first ones
}

func newPending() pending { return pending{requests: map[int32]sentRequest{}} }

func (pn *pending) addPing(sent lease.Instant) { pn.pings = append(pn.pings, sent) }

// add adds a request, which is not a ping. No request with that number may be pending.
func (pn *pending) add(number int32, r sentRequest) {
	if r.room >= largeRequest {
		pn.large++
	}
	r.late = pn.large > 0
	pn.requests[number] = r
	pn.most = max(pn.most, len(pn.requests))
}

// take removes and returns the request to which a reply with that number belongs.
func (pn *pending) take(number int32) (sentRequest, bool) {
	if number == frames.XidPing {
		if len(pn.pings) == 0 {
			return sentRequest{}, false
		}
		sent := pn.pings[0]
		pn.pings = pn.pings[1:]
		return sentRequest{sent: sent, op: frames.OpPing}, true
	}
	r, ok := pn.requests[number]
	delete(pn.requests, number)
	if r.room >= largeRequest {
		pn.large--
	}
	if len(pn.requests) == 0 && pn.most > 64 {
		pn.requests, pn.most = map[int32]sentRequest{}, 0 // a map never shrinks
	}
	return r, ok
}

// isStuck reports whether an old request is still unanswered although a ping that was sent after it,
// at the given time, was answered. Servers reply in order, so its reply will never come, and the
// client library would wait forever. Requests that were sent after the ping may only be late.
func (pn *pending) isStuck(ping, now lease.Instant, term time.Duration) bool {
	for _, r := range pn.requests {
		if r.sent.Mono.Before(ping.Mono) && now.Mono.Sub(r.sent.Mono) > term*2/3 {
			return true
		}
	}
	return false
}

// silentSince returns since when nothing has arrived although a request is outstanding, and whether one
// is.
func (pn *pending) silentSince() (since time.Time, ok bool) {
	if len(pn.pings) > 0 {
		since, ok = pn.pings[0].Mono, true
	}
	for _, r := range pn.requests {
		if !ok || r.sent.Mono.Before(since) {
			since, ok = r.sent.Mono, true
		}
	}
	return later(since, pn.heard), ok
}
