package main

import (
	"encoding/json"
	"io"
	"time"
)

// guardCommand is what zklock calls itself with for a second process. It is in no help.
const guardCommand = "guard"

// order is what zklock tells its guardian. The first one has the assignment. Each one
// that comes renews the deadline.
type order struct {
	Assignment *assignment `json:",omitempty"`
	Until      deadline    // until when the hold is certain
	Signal     int         `json:",omitempty"` // to be passed on
	Shared     bool        `json:",omitempty"` // everybody in zklock's group has got it, too
	EndRest    bool        `json:",omitempty"` // end what the command has left behind
	Kill       bool        `json:",omitempty"` // the lock is gone: end all at once
}

// assignment is the command that a guardian starts and watches over.
type assignment struct {
	Path           raw
	Args           []raw
	Grace, Session time.Duration
	Terminal       bool // there is a controlling terminal
	Group          int  // zklock's own process group
	Leader         bool // zklock leads the terminal's session: nobody but its command needs its group
	EndRest        bool // end what the command leaves behind, instead of waiting for it
}

// raw is text of any bytes. In a string, JSON would replace those that are not UTF-8.
type raw []byte

func allRaw(texts []string) (all []raw) {
	for _, text := range texts {
		all = append(all, raw(text))
	}
	return all
}

func allStrings(texts []raw) (all []string) {
	for _, text := range texts {
		all = append(all, string(text))
	}
	return all
}

// report is what a guardian tells zklock.
type report struct {
	Started int    `json:",omitempty"` // the command's process
	Cgroup  raw    `json:",omitempty"` // where the command was put, with Started
	Failed  raw    `json:",omitempty"` // why the command could not be started; the last report
	Exited  *int   `json:",omitempty"` // the command's exit code
	EndedBy int    `json:",omitempty"` // the signal that has ended the command, with Exited
	Stopped int    `json:",omitempty"` // the signal that has stopped the command
	Ending  reason `json:",omitempty"` // why the command was told to end
	Denied  []int  `json:",omitempty"` // processes that may not be signalled
	Empty   bool   `json:",omitempty"` // nothing of the command is left; the last report
	AtLarge *[]int `json:",omitempty"` // what goes on because it cannot be ended; the last report
	Heard   bool   `json:",omitempty"` // answers an order
}

// last reports whether nothing comes after r.
func (r report) last() bool { return r.Empty || r.AtLarge != nil || len(r.Failed) > 0 }

// reason is why a guardian ends its command.
type reason string

const (
	expired   reason = "the deadline came without being renewed"
	abandoned reason = "zklock has ended"
	taken     reason = "the lock is gone"
	leftover  reason = "the command has left it behind"
)

// receive decodes values from r until it ends, and then closes what it returns.
func receive[T any](r io.Reader) <-chan T {
	values := make(chan T, 16)
	// Owned by the process; ends with r or with the process, nobody waits for it.
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

// encode returns v as a line.
func encode(v any) []byte {
	line, err := json.Marshal(v)
	if err != nil {
		panic("bug: " + err.Error())
	}
	return append(line, '\n')
}
