// SPDX-License-Identifier: Apache-2.0

// Package command is zklock with all its subcommands, for the main packages.
package command

import (
	"errors"
	"os"
	"os/signal"
	"time"

	"github.com/zklock-go/zklock/cmd/zklock/internal/cli"
	"github.com/zklock-go/zklock/cmd/zklock/internal/demo"
	"github.com/zklock-go/zklock/cmd/zklock/internal/guardian"
	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
	"github.com/zklock-go/zklock/cmd/zklock/internal/servers"
)

// Main runs the subcommand that the program's arguments name, and ends the program.
func Main() {
	if len(os.Args) > 1 && os.Args[1] == guardian.Command {
		guardian.Main(os.Args[2:])
		return
	}
	std := cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
	err := Program().Dispatch(os.Args[1:], std)
	code := outcome.Print(std.Err, err)
	endIfInterrupted(err)
	os.Exit(code)
}

// Program returns zklock with its subcommands.
func Program() cli.Program {
	return cli.Program{Connection: servers.ConnectionFlags, Manual: manual, Foreign: foreign, Subcommands: []cli.Subcommand{
		{Name: "demo", About: "demonstrate the library, with no server to install", Define: demo.Command},
		{Name: "run", About: "run a command while holding a lock", Define: runCommand},
		{Name: "elect", About: "run a command as the elected leader, or print the leader", Define: electCommand},
		{Name: "ls", About: "list the holders and waiters of a lock, or of all locks below a path", Define: lsCommand},
		{Name: "top", About: "show the busiest locks below a path, live", Define: topCommand},
		{Name: "web", About: "show locks in a browser, live", Define: webCommand},
		{Name: "revoke", About: "ask a holder to release its lock", Define: revokeCommand},
		{Name: "evict", About: "remove a contender from its queue", Define: evictCommand},
		{Name: "slots", About: "list what --once and --every have done, or forget the oldest of it", Define: slotsCommand},
		{Name: "doctor", About: "check whether servers are fit for locks, and print the options to use", Define: doctorCommand},
		{Name: "serve", About: "run the in-process server, for development", Define: serveCommand},
		{Name: "completion", About: "print a shell completion script", Define: func(std cli.Streams) *cli.Command { return cli.Completion(std, Program()) }},
		{Name: "version", About: "print the version", Define: versionCommand},
		{Name: cli.Asked, About: "print what a shell can complete", Define: completeCommand, Hidden: true},
		{Name: "man", About: "print the manual page", Define: func(std cli.Streams) *cli.Command { return cli.ManualCommand(std, Program()) }, Hidden: true},
	}}
}

// foreign are the words that people know from other tools.
var foreign = map[string][]string{
	"run":    {"lock", "acquire", "exec", "flock", "with", "start"},
	"ls":     {"status", "list", "show", "inspect", "describe", "holders", "queue", "ps"},
	"revoke": {"unlock", "release"},
	"evict":  {"kill", "remove", "rm", "delete", "force-unlock", "break", "steal"},
	"elect":  {"leader", "campaign", "election"},
	"doctor": {"check", "ping", "health", "endpoint"},
	"top":    {"watch", "monitor"},
	"web":    {"ui", "page", "dashboard"},
	"serve":  {"server", "dev"},
	"slots":  {"once", "every", "marks", "prune"},

	cli.ConnectionTopic: {"flags", "options", "servers", "auth", "tls"},
}

// endIfInterrupted ends this process with SIGINT if err is the end by a Ctrl-C that the parent shell received as well. If
// zklock exited normally instead, a shell would assume that the program handled the Ctrl-C, and continue its script.
func endIfInterrupted(err error) {
	var command outcome.Ended
	if !errors.As(err, &command) || !command.Again {
		return
	}
	signal.Reset(os.Interrupt)
	if self, err := os.FindProcess(os.Getpid()); err == nil && self.Signal(os.Interrupt) == nil {
		time.Sleep(time.Second) // wait for the signal to be delivered
	}
}
