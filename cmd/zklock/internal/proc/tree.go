// SPDX-License-Identifier: Apache-2.0

// Package proc starts a command, and finds, signals and ends the processes that it started: a Spec goes in, and Events come out.
package proc

import "syscall"

// Tree is a command with the processes it started, as far as the system can find them.
type Tree interface {
	// Run starts the command and calls tell with its events. It returns when none of its processes is left, or if it could
	// not be started.
	Run(s Spec, tell func(Event))
	// Signal sends sig to the processes that to selects. It returns those that it is not permitted to signal: their process
	// IDs, or a negative process group ID.
	Signal(sig syscall.Signal, to Reach) (denied []int)
	// Kill ends every process that it can. It returns how many processes will end and which ones it is not permitted to
	// signal. It is called again until Run has reported the end.
	Kill() (ending int, denied []int)
	// Empty reports whether no process is left. It is called after the command has exited.
	Empty() bool
}

// Reach selects the processes that a signal goes to.
type Reach int

// What a signal can reach.
const (
	Groups  Reach = iota // the process group in which the command was started, and the one it is in now
	OwnOnly              // the same without zklock's own group, whose members received the signal together with zklock
	All                  // the whole tree
)
