package node

import (
	"fmt"
	"strings"
	"time"

	"github.com/zklock-go/zklock/internal/outcome"
)

// A Record is what the node beside the directory of a lock with a delay contains: what that
// delay is, and how the last hold ended. A holder writes its name there before it holds, and
// in the transaction that deletes its node it writes that it has released the lock. So if the
// record names a holder whose node is gone, that one has not released it, however long ago
// that was.
//
// The record is not in the directory's data, because ZooKeeper removes the directory when it
// is empty, which it is after a crash.
type Record struct {
	Delay time.Duration
	Fate  fate   // of the last hold; empty before the first
	By    string // its node
}

// A fate is what has become of a hold.
type fate string

const (
	IsHeld      fate = "held by"
	WasReleased fate = "released by"
	WasLost     fate = "lost by" // it was not released, and somebody has seen that its node is gone
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
	wrong := fmt.Errorf("%w: its lock-delay cannot be read from %.40q", outcome.ErrMismatch, data)
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
