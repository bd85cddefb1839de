// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"strings"
	"time"

	"github.com/zklock-go/zklock/internal/outcome"
)

// A Record is the content of the node next to the directory of a lock with a delay: the delay, and
// which node holds the lock or was lost. A holder creates it with its name before it holds, and deletes it in
// the transaction that deletes its node. So if the record names a holder whose node is gone, that
// holder has not released the lock, no matter how long ago that was. For records that say that a hold
// was released, see queue.contender.released.
//
// The record is not in the directory's data, because ZooKeeper removes the directory when it is
// empty, which it is after a crash.
type Record struct {
	Delay time.Duration
	Fate  fate   // of that hold; empty if there is none
	By    string // its node
}

// A fate is the outcome of a hold.
type fate string

const (
	IsHeld      fate = "held by"
	WasReleased fate = "released by"
	WasLost     fate = "lost by" // it was not released, and its node was seen to be gone
)

const delayPrefix = "zklock: delay "

func (r Record) Encode() []byte {
	data := delayPrefix + r.Delay.String()
	if r.Fate != "" {
		data += "\n" + string(r.Fate) + " " + r.By
	}
	return []byte(data)
}

func ParseRecord(data []byte) (Record, error) {
	wrong := fmt.Errorf("%w: cannot parse lock-delay from %.40q", outcome.ErrMismatch, data)
	text, ok := strings.CutPrefix(string(data), delayPrefix)
	text, last, more := strings.Cut(text, "\n")
	delay, err := time.ParseDuration(text)
	if !ok || err != nil || delay <= 0 {
		return Record{}, wrong
	}
	if !more {
		return Record{Delay: delay}, nil
	}
	for _, f := range []fate{IsHeld, WasReleased, WasLost} {
		if by, ok := strings.CutPrefix(last, string(f)+" "); ok {
			return Record{delay, f, by}, nil
		}
	}
	return Record{}, wrong
}
