package main

import (
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// labelOf makes of a command what others see as the owner: enough to tell jobs apart. The
// label stands in a node that others can read, so it ends before the first word that may
// carry a secret: an option, an assignment, an address, anything quoted or with a space in it.
func labelOf(argv []string) string {
	words := append([]string{filepath.Base(argv[0])}, argv[1:]...)
	if isInterpreter(words[0]) {
		words = scriptOf(words)
	}
	var kept []string
	for i, w := range words {
		if i > 0 && (strings.HasPrefix(w, "-") || strings.ContainsAny(w, "=:@$\"'`\\<>|&;()") || strings.ContainsFunc(w, unicode.IsSpace) || w == "") {
			break
		}
		kept = append(kept, w)
	}
	label := []rune(strings.Join(kept, " "))
	return string(label[:min(len(label), 40)])
}

// isInterpreter reports whether a program says nothing about the job: it runs another, or a script.
func isInterpreter(name string) bool {
	return slices.Contains([]string{
		"sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "env", "nice", "ionice", "nohup", "setsid", "sudo", "timeout", "time",
		"perl", "ruby", "node", "php", "java", "python", "python2", "python3",
	}, name)
}

// isScriptOption reports whether a shell's option says that a script follows: -c, also behind other letters (-lc, -euc).
func isScriptOption(w string) bool {
	return strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "--") && strings.HasSuffix(w, "c")
}

// scriptOf returns the words from which on the job shows: the script's name, or what stands in it.
func scriptOf(words []string) []string {
	for i, w := range words[1:] {
		switch {
		case isScriptOption(w) && i+2 < len(words):
			script := strings.Fields(words[i+2])
			if len(script) == 0 {
				return words[:1]
			}
			return append([]string{words[0]}, script...)
		case strings.HasPrefix(w, "-"), strings.Contains(w, "="):
		default:
			return append([]string{words[0], filepath.Base(w)}, words[i+2:]...)
		}
	}
	return words[:1]
}
