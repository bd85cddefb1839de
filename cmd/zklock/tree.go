package main

import "syscall"

// tree is a command with the processes it has started, as far as a system can find them.
type tree interface {
	// run starts the command and tells what becomes of it, until nothing of it is left or it could not be started.
	run(a assignment, tell func(report))
	// signal sends sig to those of the tree that to says, and returns those that it must not
	// signal: their numbers, or a group's as a negative one.
	signal(sig syscall.Signal, to reach) (denied []int)
	// kill ends what it can. It returns how many processes it has seen that will end and
	// those that it must not signal. It is called again until run has told the end.
	kill() (ending int, denied []int)
}

// reach is how far a signal goes.
type reach int

const (
	groups  reach = iota // the process group that the command was started in, and the one that it is in
	ownOnly              // the same without zklock's own group, whose members have got it with zklock
	all                  // the whole tree
)
