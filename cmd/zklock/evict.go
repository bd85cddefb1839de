package main

import "github.com/zklock-go/zklock"

const evictAbout = `
Takes contenders of the lock at PATH out of its queue, whatever they are doing: for a
process that hangs while others wait. A holder of this library is told at once that its
lock is lost, and a command under "zklock run" gets KILL. Holders of other libraries may
go on as if they held: make sure first that they are stopped.`

func runEvict(args []string, std streams) error {
	f := newFlags(std, "evict", "--node NAME | --holders | --all  [flags] PATH", evictAbout)
	server := f.server()
	var c choice
	f.StringVar(&c.node, "node", "", "the contender with this `name`, as ls shows it")
	f.BoolVar(&c.holders, "holders", false, "all who hold")
	f.BoolVar(&c.all, "all", false, "all who hold or wait")
	positional, err := f.parse(args, 1, 1)
	if err != nil {
		return err
	}
	if c == (choice{}) {
		return misuse("evict: say whom: --node, --holders or --all")
	}
	return eachChosen(server, positional[0], c, (*zklock.Client).Evict, "evicted")
}
