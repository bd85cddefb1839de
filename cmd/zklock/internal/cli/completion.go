// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
	"github.com/zklock-go/zklock/cmd/zklock/internal/spell"
)

const completionAbout = `
Prints a script that completes zklock's commands and flags in bash, zsh or fish, and the
paths of locks at the servers of ZKLOCK_SERVERS:

  bash   source <(zklock completion bash)
  zsh    source <(zklock completion zsh)
  fish   zklock completion fish | source`

// Asked is the hidden subcommand with which a completion script asks for paths and nodes.
const Asked = "__complete"

var completers = map[string]func(io.Writer, []Subcommand) error{"bash": completeBash, "zsh": completeZsh, "fish": completeFish}

// Completion returns the subcommand that prints a script with which a shell completes the words of p.
func Completion(std Streams, p Program) *Command {
	f := NewFlags(std, "completion", "bash | zsh | fish", completionAbout)
	f.operand = "the shell (bash, zsh or fish)"
	return f.Command(func(args []string) error {
		positional, err := f.Parse(args, 1, 1)
		if err != nil {
			return err
		}
		complete := completers[positional[0]]
		if complete == nil {
			return outcome.Misuse("completion: unknown shell %q%s: use bash, zsh or fish", positional[0], spell.Suggest(positional[0], []string{"bash", "zsh", "fish"}))
		}
		return complete(std.Out, p.Listed())
	})
}

// flagsOf returns the flags of a subcommand as the user types them.
func flagsOf(c Subcommand) []string {
	all := []string{"--help"}
	c.Define(Streams{}).Each(func(fl *flag.Flag, short, _, _ string) {
		if short != "" {
			all = append(all, "-"+short)
		}
		all = append(all, "--"+fl.Name)
	})
	return all
}

func namesOf(all []Subcommand) []string {
	var names []string
	for _, c := range all {
		names = append(names, c.Name)
	}
	return names
}

// words are what a shell completes for the subcommands.
type words struct {
	commands                []string
	withPaths               []string // subcommands whose argument is a lock's path
	files, nodes, otherwise []string // flags with a value: a file, a contender's node, or something that cannot be completed
}

func wordsOf(all []Subcommand) (w words) {
	for _, c := range all {
		w.commands = append(w.commands, c.Name)
		f := c.Define(Streams{})
		if strings.Contains(f.Synopsis, "PATH") {
			w.withPaths = append(w.withPaths, c.Name)
		}
		f.Each(func(fl *flag.Flag, short, kind, _ string) {
			to := &w.otherwise
			switch {
			case kind == "":
				return
			case kind == "file":
				to = &w.files
			case fl.Name == "node":
				to = &w.nodes
			}
			for _, name := range []string{"--" + fl.Name, "-" + short} {
				if name != "-" && !slices.Contains(*to, name) {
					*to = append(*to, name)
				}
			}
		})
	}
	return w
}

// completeBash writes the script for bash. zsh uses it too, through bashcompinit. Paths and nodes come from the servers, so the
// shell must not evaluate them: they are read line by line, and zklock prints only harmless ones.
func completeBash(out io.Writer, all []Subcommand) error {
	w := wordsOf(all)
	var b strings.Builder
	fmt.Fprintf(&b, `# Completion of zklock for bash.
_zklock_ask() { # adds what zklock knows of the servers
    local line
    while IFS= read -r line; do COMPREPLY+=("$line"); done < <("${COMP_WORDS[0]}" %s "$@" 2>/dev/null)
}
_zklock() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} i path=
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        COMPREPLY=($(compgen -W 'help %s --version' -- "$cur"))
        return
    fi
    for ((i = 2; i < COMP_CWORD; i++)); do
        if [[ ${COMP_WORDS[i]} == -- ]]; then # the rest belongs to another command
            local IFS=$'\n' # file names can contain spaces
            compopt -o filenames 2>/dev/null
            COMPREPLY=($(compgen -c -- "$cur") $(compgen -f -- "$cur"))
            return
        fi
        if [[ ${COMP_WORDS[i]} == /* ]]; then path=${COMP_WORDS[i]}; fi
    done
    case $prev in
    %s)
        local IFS=$'\n'
        compopt -o filenames 2>/dev/null
        COMPREPLY=($(compgen -f -- "$cur"))
        return ;;
    %s) _zklock_ask nodes "$path" "$cur"; return ;;
    %s) return ;;
    esac
    if [[ $cur != -* ]]; then
        case ${COMP_WORDS[1]} in
        %s)
            compopt -o nospace 2>/dev/null # another element may follow
            _zklock_ask paths "$cur" ;;
        esac
        if [[ -n $cur ]]; then
            case ${COMP_WORDS[1]} in help | completion) ;; *) return ;; esac
        fi
    fi
    case ${COMP_WORDS[1]} in
`, Asked, strings.Join(w.commands, " "), strings.Join(w.files, " | "), strings.Join(w.nodes, " | "), strings.Join(w.otherwise, " | "), strings.Join(w.withPaths, " | "))
	fmt.Fprintf(&b, "    help) COMPREPLY=($(compgen -W '%s %s' -- \"$cur\")) ;;\n", strings.Join(w.commands, " "), ConnectionTopic)
	for _, c := range all {
		words := flagsOf(c)
		if c.Name == "completion" {
			words = append(words, "bash", "zsh", "fish")
		}
		fmt.Fprintf(&b, "    %s) COMPREPLY+=($(compgen -W '%s' -- \"$cur\")) ;;\n", c.Name, strings.Join(words, " "))
	}
	b.WriteString("    esac\n}\ncomplete -F _zklock zklock\n")
	_, err := io.WriteString(out, b.String())
	return err
}

func completeZsh(w io.Writer, all []Subcommand) error {
	if _, err := io.WriteString(w, "autoload -U +X bashcompinit && bashcompinit\n"); err != nil {
		return err
	}
	return completeBash(w, all)
}

func completeFish(out io.Writer, all []Subcommand) error {
	w := wordsOf(all)
	var b strings.Builder
	b.WriteString(`# Completion of zklock for fish.
function __zklock_own # not behind --, where the words of another command are
    not contains -- -- (commandline -opc)
end
complete -c zklock -n __zklock_own -f
complete -c zklock -n 'not __zklock_own' -F -a '(__fish_complete_command)'
`)
	for _, c := range all {
		fmt.Fprintf(&b, "complete -c zklock -n __fish_use_subcommand -f -a %s -d %s\n", c.Name, fishQuote(c.About))
		on := "'__zklock_own; and __fish_seen_subcommand_from " + c.Name + "'"
		if slices.Contains(w.withPaths, c.Name) {
			fmt.Fprintf(&b, "complete -c zklock -n %s -f -a '(zklock %s paths (commandline -ct) 2>/dev/null)'\n", on, Asked)
		}
		c.Define(Streams{}).Each(func(fl *flag.Flag, short, kind, text string) {
			fmt.Fprintf(&b, "complete -c zklock -n %s -l %s", on, fl.Name)
			if short != "" {
				fmt.Fprintf(&b, " -s %s", short)
			}
			switch {
			case kind == "file":
				b.WriteString(" -r -F")
			case fl.Name == "node":
				fmt.Fprintf(&b, " -x -a '(zklock %s nodes (string match \"/*\" -- (commandline -opc))[1] (commandline -ct) 2>/dev/null)'", Asked)
			case kind != "":
				b.WriteString(" -x")
			}
			fmt.Fprintf(&b, " -d %s\n", fishQuote(text))
		})
	}
	b.WriteString("complete -c zklock -n '__fish_seen_subcommand_from completion' -f -a 'bash zsh fish'\n")
	_, err := io.WriteString(out, b.String())
	return err
}

func fishQuote(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(text) + "'"
}
