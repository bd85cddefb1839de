// SPDX-License-Identifier: Apache-2.0

// Package guardian runs a command under a hold: a second process starts the command, and ends it before another client can
// hold the lock, even if zklock is killed, stopped or hangs. Terms go in, and the outcome comes out.
package guardian

import (
	"encoding/json"
	"io"
	"time"

	"github.com/zklock-go/zklock/cmd/zklock/internal/proc"
)

// Command is the hidden subcommand with which zklock starts its guardian.
const Command = "guard"

// order is a message from zklock to its guardian. The first one carries the assignment. Each one renews the deadline.
type order struct {
	Assignment *assignment `json:",omitempty"`
	Until      deadline    // the time until which the hold is certain
	Signal     int         `json:",omitempty"` // pass on this signal
	Shared     bool        `json:",omitempty"` // zklock's process group has received Signal as well
	EndRest    bool        `json:",omitempty"` // end the processes that the command left running
	Unhealthy  bool        `json:",omitempty"` // end the command: its health check has failed
	Kill       bool        `json:",omitempty"` // the lock is gone: kill everything at once
}

// assignment is the command that a guardian starts and watches.
type assignment struct {
	proc.Spec
	Grace, Session time.Duration
	MaxRun         time.Duration // how long the command may run; zero means no limit
	EndRest        bool          // end the processes that the command leaves running instead of waiting for them
}

// report is a message from a guardian to zklock.
type report struct {
	proc.Event
	Ending  reason `json:",omitempty"` // why the command is being ended
	Denied  []int  `json:",omitempty"` // processes that the guardian is not permitted to signal
	AtLarge *[]int `json:",omitempty"` // processes that keep running because they cannot be ended; the last report
	Heard   bool   `json:",omitempty"` // acknowledges an order
	Told    int    `json:",omitempty"` // a signal that the guardian received: for the command, it is the program that runs it
}

// isLast reports whether r is the guardian's last report.
func (r report) isLast() bool { return r.IsLast() || r.AtLarge != nil }

// reason is why a guardian ends its command.
type reason string

// keepsLock reports whether the hold is still certain while a command is ended for this reason.
func (r reason) keepsLock() bool { return r == leftover || r == overran || r == unhealthy }

const (
	expired   reason = "the deadline passed without being renewed"
	abandoned reason = "zklock has ended"
	taken     reason = "the lock is gone"
	leftover  reason = "the command left it running"
	overran   reason = "the command has run for too long"
	unhealthy reason = "the health check failed"
)

// receive decodes values from r and sends them on the returned channel, which it closes at the end of r.
func receive[T any](r io.Reader) <-chan T {
	values := make(chan T, 16)
	// Owned by the process; ends with r or with the process, which does not wait for it.
	go func() {
		defer close(values)
		for dec := json.NewDecoder(r); ; {
			var v T
			if dec.Decode(&v) != nil {
				return
			}
			values <- v
		}
	}()
	return values
}

// encode returns v as a line of JSON.
func encode(v any) []byte {
	line, err := json.Marshal(v)
	if err != nil {
		panic("bug: " + err.Error())
	}
	return append(line, '\n')
}
