package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

func subcommands() []subcommand {
	return []subcommand{
		{name: "demo", about: "show the library at work, with no server to install", define: demoCommand},
		{name: "run", about: "run a command while holding a lock", define: runCommand},
		{name: "elect", about: "run a command as the elected leader, or print the leader", define: electCommand},
		{name: "ls", about: "list the holders and waiters of a lock, or of all locks below a path", define: lsCommand},
		{name: "top", about: "show the busiest locks below a path, live", define: topCommand},
		{name: "web", about: "show locks in a browser, live", define: webCommand},
		{name: "revoke", about: "ask a holder to let go", define: revokeCommand},
		{name: "evict", about: "take a contender out of its queue", define: evictCommand},
		{name: "serve", about: "run the in-process server, for development", define: serveCommand},
		{name: "completion", about: "print a script that completes zklock's arguments in a shell", define: func(std streams) *command { return completionCommand(std, listed()) }},
		{name: "version", about: "print the version", define: versionCommand},
		{name: "man", about: "print the manual page", define: func(std streams) *command { return manCommand(std, listed()) }, hidden: true},
	}
}

// listed returns the subcommands that are shown.
func listed() []subcommand {
	return slices.DeleteFunc(subcommands(), func(c subcommand) bool { return c.hidden })
}

func dispatch(args []string, std streams) error {
	if len(args) == 0 {
		usage(std.err)
		return exit{code: codeUsage}
	}
	name, args := args[0], args[1:]
	switch name {
	case "-h", "-help", "--help", "help":
		return help(args, std)
	case "-version", "--version":
		name = "version"
	}
	c, err := find(name)
	if err != nil {
		return err
	}
	err = c.define(std).run(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	return err
}

// help tells about zklock or about one of its subcommands.
func help(args []string, std streams) error {
	if len(args) == 0 {
		return usage(std.out)
	}
	if args[0] == connectionTopic {
		return connectionHelp(std)
	}
	c, err := find(args[0])
	if err != nil {
		return err
	}
	return c.define(std).help(std.out)
}

// connectionHelp tells about the flags of all commands that talk to servers.
func connectionHelp(std streams) error {
	var b strings.Builder
	connectionFlags(std).describe(&b, "Flags of all commands that talk to servers", aboutConnection)
	_, err := io.WriteString(std.out, strings.TrimPrefix(b.String(), "\n"))
	return err
}

func find(name string) (subcommand, error) {
	all := subcommands()
	if i := slices.IndexFunc(all, func(c subcommand) bool { return c.name == name }); i >= 0 {
		return all[i], nil
	}
	var names []string
	for _, c := range listed() {
		names = append(names, c.name)
	}
	return subcommand{}, misuse("no command %q%s: see zklock --help", name, suggestion(name, names))
}

func usage(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprint(&b, "zklock takes locks in ZooKeeper.\n\nUsage: zklock COMMAND [flags] ...\n\n")
	table := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	for _, c := range listed() {
		fmt.Fprintf(table, "  %s\t%s\n", c.name, c.about)
	}
	table.Flush()
	fmt.Fprint(&b, "\n`zklock help COMMAND` tells more about one of them, `zklock help connection` how to reach servers.\n")
	_, err := w.Write(b.Bytes())
	return err
}
