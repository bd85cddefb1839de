package main

import (
	"context"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/operate"
)

const evictAbout = `
Takes contenders of the lock at PATH out of its queue, whatever they are doing: for a
process that hangs while others wait. A holder of this library is told at once that its
lock is lost, and a command under "zklock run" gets KILL; a waiter gives up. Waiters go
first, so that nobody is let in between. Holders of other libraries may go on as if they
held: make sure first that they are stopped.`

func evictCommand(std streams) *command {
	f := newFlags(std, "evict", "--node NAME | --holders | --all  [flags] PATH", evictAbout)
	server := f.server().security(f)
	var c choice
	f.StringVar(&c.node, "node", "", "the contender with this `name`, as ls shows it")
	f.BoolVar(&c.holders, "holders", false, "every contender that holds")
	f.BoolVar(&c.all, "all", false, "every contender, holding or waiting")
	return &command{f, func(args []string) error {
		positional, err := f.parse(args, 1, 1)
		if err != nil {
			return err
		}
		if c == (choice{}) {
			return misuse("evict: say which: --node, --holders or --all")
		}
		return eachChosen(server, positional[0], c, evict, "evicted")
	}}
}

func evict(ctx context.Context, client *zklock.Client, who zklock.Contender) error {
	return operate.Evict(ctx, client, who)
}
