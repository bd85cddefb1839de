package zklock

import (
	"fmt"
	"strings"
	"time"
)

// A record is what the node beside the directory of a lock with a delay contains: what that
// delay is, and how the last hold ended. A holder writes its name there before it holds, and
// in the transaction that deletes its node it writes that it has released the lock. So if the
// record names a holder whose node is gone, that one has not released it, however long ago
// that was.
//
// The record is not in the directory's data, because ZooKeeper removes the directory when it
// is empty, which it is after a crash.
type record struct {
	delay time.Duration
	fate  fate   // of the last hold; empty before the first
	by    string // its node
}

// A fate is what has become of a hold.
type fate string

const (
	isHeld      fate = "held by"
	wasReleased fate = "released by"
	wasLost     fate = "lost by" // it was not released, and somebody has seen that its node is gone
)

const delayPrefix = "zklock: delay "

func (r record) encode() []byte {
	data := delayPrefix + r.delay.String()
	if r.fate != "" {
		data += "\n" + string(r.fate) + " " + r.by
	}
	return []byte(data)
}

func parseRecord(data []byte) (record, error) {
	wrong := fmt.Errorf("%w: its lock-delay cannot be read from %.40q", ErrInvalid, data)
	text, ok := strings.CutPrefix(string(data), delayPrefix)
	text, last, more := strings.Cut(text, "\n")
	delay, err := time.ParseDuration(text)
	if !ok || err != nil || delay <= 0 {
		return record{}, wrong
	}
	if !more {
		return record{delay: delay}, nil
	}
	for _, f := range []fate{isHeld, wasReleased, wasLost} {
		if by, ok := strings.CutPrefix(last, string(f)+" "); ok {
			return record{delay, f, by}, nil
		}
	}
	return record{}, wrong
}
