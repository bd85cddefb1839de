// SPDX-License-Identifier: Apache-2.0

package job

import (
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// labelOf derives the label that others see as the owner from a command: enough to tell jobs apart. The label is stored in a
// node that others can read, so it ends before the first word that may carry a secret: an option, an assignment, an address,
// or anything that is quoted or contains a space.
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

// isInterpreter reports whether a program's name says nothing about the job because it runs another program or a script.
func isInterpreter(name string) bool {
	return slices.Contains([]string{
		"sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "env", "nice", "ionice", "nohup", "setsid", "sudo", "timeout", "time",
		"perl", "ruby", "node", "php", "java", "python", "python2", "python3",
	}, name)
}

// isScriptOption reports whether a script follows a shell's option: -c, alone or after other letters (-lc, -euc).
func isScriptOption(w string) bool {
	return strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "--") && strings.HasSuffix(w, "c")
}

// scriptOf returns the words that identify the job: the interpreter, followed by the script's name and arguments or by the
// words of an inline script.
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
