// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"flag"
	"fmt"
	"io"
	"strings"
)

// Manual is what the manual page has in addition to the help.
type Manual struct {
	Examples, ExitStatus []Entry
	SeeAlso              string
}

// Entry is an entry of a section of the manual page.
type Entry struct{ Term, Text string }

// ManualCommand returns the subcommand that prints the manual page of p.
func ManualCommand(std Streams, p Program) *Command {
	f := NewFlags(std, "man", "", "Prints the manual page for man(1).")
	return f.Command(func(args []string) error {
		if _, err := f.Parse(args, 0, 0); err != nil {
			return err
		}
		return writeManual(std.Out, p)
	})
}

// writeManual writes the manual page. It uses the same texts as the help.
func writeManual(w io.Writer, p Program) error {
	var b strings.Builder
	fmt.Fprintf(&b, `.TH ZKLOCK 1 "" "zklock %s"
.SH NAME
zklock \- take locks in ZooKeeper from a shell
.SH SYNOPSIS
.B zklock
.I command
[flags] ...
.SH COMMANDS
`, roff(Version()))
	for _, c := range p.Listed() {
		f := c.Define(Streams{})
		fmt.Fprintf(&b, ".SS %s %s\n.nf\n%s\n.fi\n", roff(c.Name), roff(f.Synopsis), roff(f.about))
		writeFlags(&b, f.Flags, func(t Topic) bool { return t != Connection })
	}
	b.WriteString(".SH CONNECTION\nFlags of all commands that connect to servers.\n")
	writeFlags(&b, p.Connection(Streams{}), func(Topic) bool { return true })
	b.WriteString(`.SH ENVIRONMENT
.TP
.B ZKLOCK_SERVERS, ZKLOCK_ROOT, ZKLOCK_AUTH
Used if \-\-servers, \-\-root or \-\-auth is not given. ZKLOCK_AUTH is not passed on to commands.
.TP
.B ZKLOCK_SESSION_TIMEOUT, ZKLOCK_TICK_TIME, ZKLOCK_ACL, ZKLOCK_LOCK_DELAY, ZKLOCK_TLS, ZKLOCK_TLS_CA, ZKLOCK_TLS_CERT, ZKLOCK_TLS_KEY, ZKLOCK_TLS_SERVER_NAME
Used if the flag of that name is not given. All hosts must have the same tick time, ACL and lock-delay.
.TP
.B ZKLOCK_PATH, ZKLOCK_NODE, ZKLOCK_TOKEN
Set in the environment of a command that run or elect starts: the lock's path, the holder's node and the fencing token.
.TP
.B ZKLOCK_HELD
Set in that environment, too: the nodes of all locks that are held around the command. A zklock that would take one of
these locks again refuses to.
.TP
.B NO_COLOR
If set, demo and top use no colors.
`)
	writeEntries(&b, "EXIT STATUS", p.Manual.ExitStatus)
	writeEntries(&b, "EXAMPLES", p.Manual.Examples)
	fmt.Fprintf(&b, ".SH SEE ALSO\n%s\n", roff(p.Manual.SeeAlso))
	_, err := io.WriteString(w, b.String())
	return err
}

// writeEntries writes a section.
func writeEntries(b *strings.Builder, title string, entries []Entry) {
	fmt.Fprintf(b, ".SH %s\n", title)
	for _, e := range entries {
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(e.Term), roff(e.Text))
	}
}

// writeFlags writes the flags of the topics for which of returns true.
func writeFlags(b *strings.Builder, f *Flags, of func(Topic) bool) {
	f.Each(func(fl *flag.Flag, short, kind, text string) {
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

// roff escapes text so that man shows it unchanged.
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
