// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
	"github.com/zklock-go/zklock/cmd/zklock/internal/spell"
	"github.com/zklock-go/zklock/internal/escape"
)

// Flags is a flag set with readable help.
type Flags struct {
	*flag.FlagSet
	Synopsis, about string
	Streams         Streams
	short           map[string]string // one-letter names, by long name
	topics          map[string]Topic  // by flag name, for flags that have a topic
	operand         string            // the name of the first positional argument
	foreign         map[string]string // what to use instead of the flags of similar tools, by their names
	env             map[string]bool   // the flags that a variable of the environment can set
}

// Topic is a heading under which the help groups flags. The connection flags are the same for many commands, so their help
// is printed in one place.
type Topic string

// The topics other than that of a subcommand's own flags.
const (
	Waiting    Topic = "Waiting"
	Connection Topic = "Connection"
)

// In assigns the flags that define defines to a topic.
func (f *Flags) In(t Topic, define func()) {
	before := map[string]bool{}
	f.VisitAll(func(fl *flag.Flag) { before[fl.Name] = true })
	define()
	f.VisitAll(func(fl *flag.Flag) {
		if !before[fl.Name] {
			f.topics[fl.Name] = t
		}
	})
}

// NewFlags returns the flags of a subcommand, without any yet.
func NewFlags(std Streams, name, synopsis, about string) *Flags {
	f := &Flags{flag.NewFlagSet(name, flag.ContinueOnError), synopsis, strings.TrimSpace(about), std, map[string]string{}, map[string]Topic{}, "PATH", map[string]string{}, map[string]bool{}}
	return f
}

// Command returns the subcommand that has these flags and calls run with its arguments.
func (f *Flags) Command(run func(args []string) error) *Command { return &Command{f, run} }

// SetText replaces a flag's text for this command only.
func (f *Flags) SetText(name, text string) {
	f.Lookup(name).Usage = text
	delete(f.topics, name)
}

// Alias adds a one-letter name to an existing flag.
func (f *Flags) Alias(letter, name string) {
	f.short[name] = letter
	f.Var(f.Lookup(name).Value, letter, "")
}

// Foreign adds flags of similar tools that people type. advice says what to use instead.
func (f *Flags) Foreign(advice string, names ...string) {
	for _, name := range names {
		f.foreign[name] = advice
	}
}

// Each calls fn for every flag with its names, the name of its value ("" for a boolean flag) and its text.
func (f *Flags) Each(fn func(fl *flag.Flag, short, kind, text string)) {
	f.VisitAll(func(fl *flag.Flag) {
		if len(fl.Name) == 1 {
			return
		}
		kind, text := flag.UnquoteUsage(fl)
		if f.env[fl.Name] {
			text += "; also " + Variable(fl.Name)
		}
		fn(fl, f.short[fl.Name], kind, text)
	})
}

// FromEnvironment lets a variable set each of these flags if it is not on the command line.
func (f *Flags) FromEnvironment(names ...string) {
	for _, name := range names {
		f.env[name] = true
	}
}

// Variable returns the name of the variable that sets a flag.
func Variable(flag string) string {
	return "ZKLOCK_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// readEnvironment sets the flags that are not on the command line. For Given, they still are not.
func (f *Flags) readEnvironment() error {
	for name := range f.env {
		value, fl := os.Getenv(Variable(name)), f.Lookup(name)
		if value == "" || f.Given(name) {
			continue
		}
		if fl.Value.Set(value) != nil {
			return outcome.Misuse("%s=%s: %s", Variable(name), escape.Short(value, 60), wanted(fl, value))
		}
	}
	return nil
}

// Parse parses flags before and after the positional arguments. After "--", every argument is positional. It returns an error
// unless there are between least and most positional arguments.
func (f *Flags) Parse(args []string, least, most int) (positional []string, err error) {
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		switch {
		case arg == "--":
			positional, args = append(positional, args...), nil
		case isDashed(arg):
			return nil, outcome.Misuse("%s: %s begins with a dash, which is not the hyphen of flags: type -- as two hyphens", f.Name(), escape.Short(arg, 60))
		case len(arg) < 2 || arg[0] != '-':
			positional = append(positional, arg)
		default:
			args, err = f.parseFlag(arg, args)
			if err != nil {
				return nil, err
			}
		}
	}
	switch n := len(positional); {
	case n < least:
		return nil, outcome.Misuse("%s: %s is missing", f.Name(), f.operand)
	case n > most:
		return nil, outcome.Misuse("%s: unexpected argument %q", f.Name(), escape.Short(positional[most], 60))
	}
	return positional, f.readEnvironment()
}

// isDashed reports whether an argument begins with a dash that an editor or a web page has made of a hyphen.
func isDashed(arg string) bool {
	first, _ := utf8.DecodeRuneInString(strings.TrimLeft(arg, "-"))
	return strings.ContainsRune("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", first)
}

// ParseAlone parses PATH without a command. If more arguments follow, the error says that -- is missing before the command.
func (f *Flags) ParseAlone(args []string) (path string, err error) {
	positional, err := f.Parse(args, 1, math.MaxInt)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return "", err
	case err != nil && len(args) > 1:
		return "", fmt.Errorf("%w (put the command after --)", err)
	case err != nil:
		return "", err
	case len(positional) > 1:
		return "", outcome.Misuse("%s: put -- before the command: zklock %s %s -- %s ...", f.Name(), f.Name(), escape.Short(positional[0], 60), escape.Short(positional[1], 60))
	}
	return positional[0], nil
}

// parseFlag sets the flag that arg names. Its value follows "=", or is the first of the remaining arguments. parseFlag returns
// the arguments that follow.
func (f *Flags) parseFlag(arg string, rest []string) ([]string, error) {
	name, value, hasValue := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-"), "=")
	fl := f.Lookup(name)
	if letter, rest := f.glued(arg); letter != "" {
		name, value, hasValue, fl = letter, rest, true, f.Lookup(letter)
	}
	switch {
	case fl == nil && (name == "help" || name == "h"):
		return nil, cmp.Or(f.help(f.Streams.Out), flag.ErrHelp)
	case fl == nil:
		return nil, outcome.Misuse("unknown flag %s%s", escape.Short(arg, 60), f.suggest(arg, name))
	case hasValue:
	case isBool(fl):
		value = "true"
	case len(rest) == 0:
		return nil, outcome.Misuse("%s: its value is missing", dashed(name))
	default:
		value, rest = rest[0], rest[1:]
	}
	if f.Set(name, value) != nil {
		return nil, outcome.Misuse("%s %s: %s", dashed(name), escape.Short(cmp.Or(value, `""`), 60), wanted(fl, value))
	}
	return rest, nil
}

// dashed returns a flag's name as it is written on the command line.
func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// glued returns the one-letter flag with which arg begins, and its value, which follows without a space: -E3. It returns "" if
// arg has another form.
func (f *Flags) glued(arg string) (letter, value string) {
	if len(arg) < 3 || arg[1] == '-' || arg[2] == '=' || f.Lookup(arg[1:2]) == nil || isBool(f.Lookup(arg[1:2])) {
		return "", ""
	}
	return arg[1:2], arg[2:]
}

// suggest returns a suggestion to append to the error about the unknown flag name, which was typed as arg.
func (f *Flags) suggest(arg, name string) string {
	advice, known := f.foreign[name]
	if !known && len(arg) > 2 && arg[1] != '-' {
		advice, known = f.foreign[arg[1:2]] // -w5
	}
	if known {
		return ": " + advice
	}
	if len(name) == 1 {
		return "" // nothing is similar to one letter
	}
	var names []string
	f.Each(func(fl *flag.Flag, _, _, _ string) { names = append(names, "--"+fl.Name) })
	return spell.Suggest("--"+name, names)
}

// wanted says what is wrong with a value that the flag does not accept.
func wanted(fl *flag.Flag, value string) string {
	typed, _ := fl.Value.(flag.Getter)
	if typed == nil {
		return "not accepted"
	}
	switch typed.Get().(type) {
	case time.Duration:
		if _, err := strconv.ParseFloat(value, 64); err == nil && strings.Trim(value, "0123456789.") == "" {
			return fmt.Sprintf("not a duration; write %ss", value)
		}
		return "not a duration; write 10s or 10m, for example"
	case int:
		return "not a whole number"
	}
	return "write true or false, or only the flag"
}

func isBool(fl *flag.Flag) bool {
	b, ok := fl.Value.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}

func (f *Flags) help(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintln(&b, strings.TrimSpace(fmt.Sprintf("Usage: zklock %s %s", f.Name(), f.Synopsis)))
	fmt.Fprintf(&b, "\n%s\n", f.about)
	f.describe(&b, "Flags", "")
	f.describe(&b, string(Waiting), Waiting)
	if names := f.namesIn(Connection); len(names) > 0 {
		fmt.Fprintf(&b, "\n%s (see zklock help %s):\n%s\n", Connection, ConnectionTopic, Wrap(strings.Join(names, ", "), "  ", 80))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// describe writes the flags of a topic with their texts.
func (f *Flags) describe(b *strings.Builder, title string, t Topic) {
	title = "\n" + title + ":\n"
	f.Each(func(fl *flag.Flag, short, kind, text string) {
		if f.topics[fl.Name] != t {
			return
		}
		if short != "" {
			short = "-" + short + ", "
		}
		if kind != "" {
			kind = " " + kind
		}
		fmt.Fprintf(b, "%s  %s--%s%s\n%s\n", title, short, fl.Name, kind, Wrap(text+defaultOf(fl), "        ", 80))
		title = ""
	})
}

// namesIn returns the names of the flags of a topic.
func (f *Flags) namesIn(t Topic) (names []string) {
	f.Each(func(fl *flag.Flag, _, _, _ string) {
		if f.topics[fl.Name] == t {
			names = append(names, "--"+fl.Name)
		}
	})
	return names
}

// ConnectionTopic is the help topic of the connection flags.
const ConnectionTopic = "connection"

// defaultOf returns a flag's default as text to append to its description, or "" if the default goes without saying.
func defaultOf(fl *flag.Flag) string {
	switch fl.DefValue {
	case "", "0", "0s", "false", "[]", Unset.String():
		return ""
	}
	return fmt.Sprintf(" (default %s)", fl.DefValue)
}

// Wrap breaks text into indented lines of at most width characters. A longer word gets a line of its own.
func Wrap(text, indent string, width int) string {
	var b strings.Builder
	column := 0
	for _, word := range strings.Fields(text) {
		n := len([]rune(word))
		switch {
		case column == 0:
			b.WriteString(indent)
			column = len(indent)
		case column+1+n > width:
			b.WriteString("\n" + indent)
			column = len(indent)
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	return b.String()
}

// List is the value of a flag that can be repeated.
type List []string

// String returns the values for the help.
func (l *List) String() string { return fmt.Sprint([]string(*l)) }

// Set adds a value.
func (l *List) Set(s string) error {
	*l = append(*l, s)
	return nil
}

// Unset is the default of a duration flag for which zero has a meaning.
const Unset = time.Duration(-1 << 63)

// Given reports whether the flag was on the command line.
func (f *Flags) Given(name string) bool {
	found := false
	f.Visit(func(fl *flag.Flag) { found = found || fl.Name == name || fl.Name == f.short[name] })
	return found
}

// Command is a subcommand with its flags.
type Command struct {
	*Flags
	run func(args []string) error
}
