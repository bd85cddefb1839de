package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// flags is a flag set whose help a person can read.
type flags struct {
	*flag.FlagSet
	synopsis, about string
	std             streams
	short           map[string]string // other names, of one letter, by the long one
	topics          map[string]topic  // of the flags that have one
}

// topic is what flags that belong together are about. Those about the connection are the same for many commands, and are told once.
type topic string

const (
	aboutWaiting    topic = "Waiting"
	aboutConnection topic = "Connection"
)

// in puts the flags that define makes under a topic.
func (f *flags) in(t topic, define func()) {
	before := map[string]bool{}
	f.VisitAll(func(fl *flag.Flag) { before[fl.Name] = true })
	define()
	f.VisitAll(func(fl *flag.Flag) {
		if !before[fl.Name] {
			f.topics[fl.Name] = t
		}
	})
}

func newFlags(std streams, name, synopsis, about string) *flags {
	f := &flags{flag.NewFlagSet(name, flag.ContinueOnError), synopsis, strings.TrimSpace(about), std, map[string]string{}, map[string]topic{}}
	f.SetOutput(io.Discard) // errors come back as errors
	f.Usage = func() {}
	return f
}

// retell gives a flag another text, for one command alone.
func (f *flags) retell(name, text string) {
	f.Lookup(name).Usage = text
	delete(f.topics, name)
}

// alias gives a flag that exists another name, of one letter.
func (f *flags) alias(letter, name string) {
	f.short[name] = letter
	f.Var(f.Lookup(name).Value, letter, "")
}

// each calls fn for every flag with its names, its kind ("" for a switch) and its text.
func (f *flags) each(fn func(fl *flag.Flag, short, kind, text string)) {
	f.VisitAll(func(fl *flag.Flag) {
		if len(fl.Name) == 1 {
			return
		}
		kind, text := flag.UnquoteUsage(fl)
		fn(fl, f.short[fl.Name], kind, text)
	})
}

// parse takes flags before and after the positional arguments, of which it wants between least and most.
func (f *flags) parse(args []string, least, most int) ([]string, error) {
	var positional []string
	for {
		err := f.Parse(args)
		if errors.Is(err, flag.ErrHelp) {
			if failed := f.help(f.std.out); failed != nil {
				return nil, failed
			}
			return nil, err
		}
		if err != nil {
			return nil, misuse("%s: %w%s", f.Name(), err, f.suggest(err)+f.explain(err))
		}
		if args = f.Args(); len(args) == 0 {
			break
		}
		positional, args = append(positional, args[0]), args[1:]
	}
	if n := len(positional); n < least || n > most {
		return nil, misuse("usage: zklock %s %s", f.Name(), f.synopsis)
	}
	return positional, nil
}

// suggest completes the error about a flag that does not exist.
func (f *flags) suggest(err error) string {
	name, ok := strings.CutPrefix(err.Error(), "flag provided but not defined: -")
	if !ok {
		return ""
	}
	var names []string
	f.each(func(fl *flag.Flag, _, _, _ string) { names = append(names, "--"+fl.Name) })
	return suggestion("--"+strings.TrimPrefix(name, "-"), names)
}

// explain completes the error about a time that was written without its unit.
func (f *flags) explain(err error) string {
	value, name := "", ""
	if n, _ := fmt.Sscanf(err.Error(), "invalid value %q for flag -%s", &value, &name); n < 2 {
		return ""
	}
	fl := f.Lookup(strings.TrimSuffix(name, ":"))
	if fl == nil {
		return ""
	}
	if got, ok := fl.Value.(flag.Getter); !ok || !isDuration(got.Get()) {
		return ""
	}
	number := "10"
	if _, err := strconv.ParseFloat(value, 64); err == nil {
		number = value
	}
	return fmt.Sprintf(": %q is no time: write %ss, %sm or the like", value, number, number)
}

func isDuration(v any) bool {
	_, ok := v.(time.Duration)
	return ok
}

func (f *flags) help(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintln(&b, strings.TrimSpace(fmt.Sprintf("Usage: zklock %s %s", f.Name(), f.synopsis)))
	fmt.Fprintf(&b, "\n%s\n", f.about)
	f.describe(&b, "Flags", "")
	f.describe(&b, string(aboutWaiting), aboutWaiting)
	if names := f.namesIn(aboutConnection); len(names) > 0 {
		fmt.Fprintf(&b, "\n%s, see zklock help %s:\n%s\n", aboutConnection, connectionTopic, wrap(strings.Join(names, ", "), "  ", 80))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// describe writes what the flags of a topic mean.
func (f *flags) describe(b *strings.Builder, title string, t topic) {
	title = "\n" + title + ":\n"
	f.each(func(fl *flag.Flag, short, kind, text string) {
		if f.topics[fl.Name] != t {
			return
		}
		if short != "" {
			short = "-" + short + ", "
		}
		if kind != "" {
			kind = " " + kind
		}
		fmt.Fprintf(b, "%s  %s--%s%s\n%s\n", title, short, fl.Name, kind, wrap(text+defaultOf(fl), "        ", 80))
		title = ""
	})
}

// namesIn returns the flags of a topic.
func (f *flags) namesIn(t topic) (names []string) {
	f.each(func(fl *flag.Flag, _, _, _ string) {
		if f.topics[fl.Name] == t {
			names = append(names, "--"+fl.Name)
		}
	})
	return names
}

// connectionTopic is what the flags about the connection are told under.
const connectionTopic = "connection"

// defaultOf says what a flag is when it is not given, where the text does not.
func defaultOf(fl *flag.Flag) string {
	switch fl.DefValue {
	case "", "0", "0s", "false", "[]", unset.String():
		return ""
	}
	return fmt.Sprintf(" (default %s)", fl.DefValue)
}

// wrap breaks text into indented lines of at most width characters, if its words allow.
func wrap(text, indent string, width int) string {
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

// list is a flag that can be given several times.
type list []string

func (l *list) String() string { return fmt.Sprint([]string(*l)) }

func (l *list) Set(s string) error {
	*l = append(*l, s)
	return nil
}

// unset stands for a duration that was not given, where zero means something.
const unset = time.Duration(-1 << 63)

// given reports whether the flag was on the command line.
func (f *flags) given(name string) bool {
	found := false
	f.Visit(func(fl *flag.Flag) { found = found || fl.Name == name || fl.Name == f.short[name] })
	return found
}
