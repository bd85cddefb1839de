// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
	"github.com/zklock-go/zklock/cmd/zklock/internal/spell"
)

const completionAbout = `
Prints a script that completes zklock's commands and flags in bash, zsh or fish:

  bash   source <(zklock completion bash)
  zsh    source <(zklock completion zsh)
  fish   zklock completion fish | source`

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

// completeBash writes the script for bash. zsh uses it too, through bashcompinit.
func completeBash(w io.Writer, all []Subcommand) error {
	var b strings.Builder
	fmt.Fprintf(&b, `# Completion of zklock for bash.
_zklock() {
    local cur=${COMP_WORDS[COMP_CWORD]} i
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
    done
    case ${COMP_WORDS[1]} in
`, strings.Join(namesOf(all), " "))
	fmt.Fprintf(&b, "    help) COMPREPLY=($(compgen -W '%s %s' -- \"$cur\")) ;;\n", strings.Join(namesOf(all), " "), ConnectionTopic)
	for _, c := range all {
		words := flagsOf(c)
		if c.Name == "completion" {
			words = append(words, "bash", "zsh", "fish")
		}
		fmt.Fprintf(&b, "    %s) COMPREPLY=($(compgen -W '%s' -- \"$cur\")) ;;\n", c.Name, strings.Join(words, " "))
	}
	b.WriteString("    esac\n}\ncomplete -o default -F _zklock zklock\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func completeZsh(w io.Writer, all []Subcommand) error {
	if _, err := io.WriteString(w, "autoload -U +X bashcompinit && bashcompinit\n"); err != nil {
		return err
	}
	return completeBash(w, all)
}

func completeFish(w io.Writer, all []Subcommand) error {
	var b strings.Builder
	b.WriteString("# Completion of zklock for fish.\n")
	for _, c := range all {
		fmt.Fprintf(&b, "complete -c zklock -n __fish_use_subcommand -f -a %s -d %s\n", c.Name, fishQuote(c.About))
		on := "'__fish_seen_subcommand_from " + c.Name + "'"
		c.Define(Streams{}).Each(func(fl *flag.Flag, short, kind, text string) {
			fmt.Fprintf(&b, "complete -c zklock -n %s -l %s", on, fl.Name)
			if short != "" {
				fmt.Fprintf(&b, " -s %s", short)
			}
			if kind != "" {
				b.WriteString(" -r")
			}
			fmt.Fprintf(&b, " -d %s\n", fishQuote(text))
		})
	}
	b.WriteString("complete -c zklock -n '__fish_seen_subcommand_from completion' -f -a 'bash zsh fish'\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func fishQuote(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(text) + "'"
}
