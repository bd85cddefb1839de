package main

import (
	"flag"
	"fmt"
	"io"
	"strings"
)

const completionAbout = `
Prints a script that completes zklock's commands and flags, for bash, zsh or fish:

  bash   source <(zklock completion bash)
  zsh    source <(zklock completion zsh)
  fish   zklock completion fish | source`

var completers = map[string]func(io.Writer, []subcommand) error{"bash": completeBash, "zsh": completeZsh, "fish": completeFish}

func completionCommand(std streams, all []subcommand) *command {
	f := newFlags(std, "completion", "bash | zsh | fish", completionAbout)
	return &command{f, func(args []string) error {
		positional, err := f.parse(args, 1, 1)
		if err != nil {
			return err
		}
		complete := completers[positional[0]]
		if complete == nil {
			return misuse("completion: no shell %q%s: it is for bash, zsh and fish", positional[0], suggestion(positional[0], []string{"bash", "zsh", "fish"}))
		}
		return complete(std.out, all)
	}}
}

// flagsOf returns the flags of a subcommand as they are typed.
func flagsOf(c subcommand) []string {
	all := []string{"--help"}
	c.define(streams{}).each(func(fl *flag.Flag, short, _, _ string) {
		if short != "" {
			all = append(all, "-"+short)
		}
		all = append(all, "--"+fl.Name)
	})
	return all
}

func namesOf(all []subcommand) []string {
	var names []string
	for _, c := range all {
		names = append(names, c.name)
	}
	return names
}

// completeBash also serves for zsh, by its bashcompinit.
func completeBash(w io.Writer, all []subcommand) error {
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
        if [[ ${COMP_WORDS[i]} == -- ]]; then # from here on it is another command's
            local IFS=$'\n' # names of files can have spaces
            compopt -o filenames 2>/dev/null
            COMPREPLY=($(compgen -c -- "$cur") $(compgen -f -- "$cur"))
            return
        fi
    done
    case ${COMP_WORDS[1]} in
`, strings.Join(namesOf(all), " "))
	fmt.Fprintf(&b, "    help) COMPREPLY=($(compgen -W '%s %s' -- \"$cur\")) ;;\n", strings.Join(namesOf(all), " "), connectionTopic)
	for _, c := range all {
		words := flagsOf(c)
		if c.name == "completion" {
			words = append(words, "bash", "zsh", "fish")
		}
		fmt.Fprintf(&b, "    %s) COMPREPLY=($(compgen -W '%s' -- \"$cur\")) ;;\n", c.name, strings.Join(words, " "))
	}
	b.WriteString("    esac\n}\ncomplete -o default -F _zklock zklock\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func completeZsh(w io.Writer, all []subcommand) error {
	if _, err := io.WriteString(w, "autoload -U +X bashcompinit && bashcompinit\n"); err != nil {
		return err
	}
	return completeBash(w, all)
}

func completeFish(w io.Writer, all []subcommand) error {
	var b strings.Builder
	b.WriteString("# Completion of zklock for fish.\n")
	for _, c := range all {
		fmt.Fprintf(&b, "complete -c zklock -n __fish_use_subcommand -f -a %s -d %s\n", c.name, fishQuote(c.about))
		on := "'__fish_seen_subcommand_from " + c.name + "'"
		c.define(streams{}).each(func(fl *flag.Flag, short, kind, text string) {
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
