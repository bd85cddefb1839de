package main

import (
	"flag"
	"fmt"
	"io"
	"strings"
)

func manCommand(std streams, all []subcommand) *command {
	f := newFlags(std, "man", "", "Prints the manual page, for man(1).")
	return &command{f, func(args []string) error {
		if _, err := f.parse(args, 0, 0); err != nil {
			return err
		}
		return writeManual(std.out, all)
	}}
}

// writeManual makes the manual page of the same texts as the helps.
func writeManual(w io.Writer, all []subcommand) error {
	var b strings.Builder
	fmt.Fprintf(&b, `.TH ZKLOCK 1 "" "zklock %s"
.SH NAME
zklock \- take locks in ZooKeeper from a shell
.SH SYNOPSIS
.B zklock
.I command
[flags] ...
.SH COMMANDS
`, roff(version()))
	for _, c := range all {
		f := c.define(streams{})
		fmt.Fprintf(&b, ".SS %s %s\n.nf\n%s\n.fi\n", roff(c.name), roff(f.synopsis), roff(f.about))
		writeFlags(&b, f.flags, func(t topic) bool { return t != aboutConnection })
	}
	b.WriteString(".SH CONNECTION\nThe flags of all commands that talk to servers.\n")
	writeFlags(&b, connectionFlags(streams{}), func(topic) bool { return true })
	b.WriteString(`.SH ENVIRONMENT
.TP
.B ZKLOCK_SERVERS, ZKLOCK_ROOT, ZKLOCK_AUTH
What is used where \-\-servers, \-\-root and \-\-auth are not given. The last one is not passed on to commands.
.TP
.B ZKLOCK_PATH, ZKLOCK_NODE, ZKLOCK_TOKEN
What a command under run or elect finds about its lock.
.TP
.B NO_COLOR
If set, the demo and top use no colours.
`)
	_, err := io.WriteString(w, b.String())
	return err
}

// writeFlags writes what the flags of some topics mean.
func writeFlags(b *strings.Builder, f *flags, of func(topic) bool) {
	f.each(func(fl *flag.Flag, short, kind, text string) {
		if !of(f.topics[fl.Name]) {
			return
		}
		name := "--" + fl.Name
		if short != "" {
			name = "-" + short + ", " + name
		}
		fmt.Fprintf(b, ".TP\n.B %s\n", roff(strings.TrimSpace(name+" "+kind)))
		fmt.Fprintf(b, "%s\n", roff(text+defaultOf(fl)))
	})
}

// roff returns text that man shows as it is.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
