// SPDX-License-Identifier: Apache-2.0

// Package cli has what all subcommands of zklock share: their flags, help texts, completion and manual page.
package cli

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
	"github.com/zklock-go/zklock/cmd/zklock/internal/spell"
	"github.com/zklock-go/zklock/internal/escape"
)

// Program is zklock: its subcommands, and the flags of all those that connect to servers.
type Program struct {
	Subcommands []Subcommand
	Connection  func(Streams) *Flags // returns the connection flags
	Manual      Manual               // what the manual page has in addition to the help
	Foreign     map[string][]string  // what similar tools call the subcommands and help topics
}

// Subcommand describes one of zklock's subcommands.
type Subcommand struct {
	Name, About string
	Define      func(std Streams) *Command
	Hidden      bool // not listed in help, completion and the manual page
}

// Listed returns the subcommands that help, completion and the manual page show.
func (p Program) Listed() []Subcommand {
	return slices.DeleteFunc(slices.Clone(p.Subcommands), func(c Subcommand) bool { return c.Hidden })
}

// Dispatch runs the subcommand that args name.
func (p Program) Dispatch(args []string, std Streams) error {
	if len(args) == 0 {
		p.usage(std.Err)
		return outcome.Usage.Of(nil)
	}
	name, args := args[0], args[1:]
	switch name {
	case "-h", "-help", "--help", "help":
		return p.help(args, std)
	case "-version", "--version":
		name = "version"
	}
	c, err := p.find(name)
	if err != nil {
		return err
	}
	err = c.Define(std).run(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	return err
}

// help prints the help of zklock, of one of its subcommands, or of the connection flags.
func (p Program) help(args []string, std Streams) error {
	if len(args) == 0 {
		return p.usage(std.Out)
	}
	if args[0] == ConnectionTopic {
		return p.connectionHelp(std)
	}
	c, err := p.find(args[0])
	if err != nil {
		return err
	}
	return c.Define(std).help(std.Out)
}

// connectionHelp prints the flags that every command that connects to servers has.
func (p Program) connectionHelp(std Streams) error {
	var b strings.Builder
	p.Connection(std).describe(&b, "Flags of all commands that connect to servers", Connection)
	_, err := io.WriteString(std.Out, strings.TrimPrefix(b.String(), "\n"))
	return err
}

func (p Program) find(name string) (Subcommand, error) {
	if i := slices.IndexFunc(p.Subcommands, func(c Subcommand) bool { return c.Name == name }); i >= 0 {
		return p.Subcommands[i], nil
	}
	if name != "" && name[0] == '-' {
		return Subcommand{}, p.misplaced(name)
	}
	if meant := p.foreign(name); meant != "" {
		return Subcommand{}, outcome.Misuse("unknown command %q, did you mean %q?: see zklock --help", escape.Short(name, 60), meant)
	}
	return Subcommand{}, outcome.Misuse("unknown command %q%s: see zklock --help", escape.Short(name, 60), spell.Suggest(name, append(namesOf(p.Listed()), ConnectionTopic)))
}

// misplaced returns the error about a flag in the place of the command.
func (p Program) misplaced(flag string) error {
	name, _, _ := strings.Cut(strings.TrimLeft(flag, "-"), "=")
	if name == "v" || name == "V" {
		return outcome.Misuse("unknown flag %s, did you mean \"--version\"?", flag)
	}
	if meant := spell.Suggest("--"+name, []string{"--help", "--version"}); meant != "" {
		return outcome.Misuse("unknown flag %s%s", escape.Short(flag, 60), meant)
	}
	return outcome.Misuse("%s: flags go after the command, as in zklock run %s ...", escape.Short(flag, 60), escape.Short(flag, 60))
}

// foreign returns the subcommand that does what a word of similar tools stands for, or "".
func (p Program) foreign(word string) string {
	for name, words := range p.Foreign {
		if slices.Contains(words, word) {
			return name
		}
	}
	return ""
}

func (p Program) usage(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprint(&b, "zklock takes ZooKeeper locks from a shell.\n\nUsage: zklock COMMAND [flags] ...\n\n")
	table := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	for _, c := range p.Listed() {
		fmt.Fprintf(table, "  %s\t%s\n", c.Name, c.About)
	}
	table.Flush()
	fmt.Fprint(&b, "\nRun `zklock help COMMAND` for details, or `zklock help connection` for connection flags.\n")
	_, err := w.Write(b.Bytes())
	return err
}
