// SPDX-License-Identifier: Apache-2.0

package main

import (
	flagpkg "flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/cmd/zklock/internal/cli"
	"github.com/zklock-go/zklock/cmd/zklock/internal/command"
	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
)

func TestHelpNamesEveryCommandAndEachListsItsFlags(t *testing.T) {
	code, out, _ := run(t, "", "--help")
	assert.Zero(t, code)
	for _, c := range command.Program().Listed() {
		assert.Contains(t, out, "  "+c.Name+" ")
		code, help, err := run(t, "", c.Name, "--help")
		assert.Zero(t, code, c.Name)
		assert.Empty(t, err)
		assert.True(t, strings.HasPrefix(help, "Usage: zklock "+c.Name), help)
		_, same, _ := run(t, "", "help", c.Name)
		assert.Equal(t, help, same)
		for line := range strings.Lines(help) {
			assert.LessOrEqual(t, len(line), 90, "%s: %s", c.Name, line)
		}
	}
	assert.NotContains(t, out, "  man ")
}

func TestFlagsAreListedByTopicAndThoseOfTheConnectionOnce(t *testing.T) {
	_, help, _ := run(t, "", "run", "--help")
	flags, rest, found := strings.Cut(help, "\nWaiting:\n")
	require.True(t, found)
	waiting, connection, found := strings.Cut(rest, "\nConnection (see zklock help connection):\n")
	require.True(t, found)
	assert.Contains(t, flags, "\n  --grace duration\n")
	assert.Contains(t, waiting, "  -E, --conflict-exit-code code\n")
	assert.Equal(t, "  --auth, --connect-timeout, --root, --servers, --tls, --tls-ca, --tls-cert,\n  --tls-key, --tls-server-name, --verbose\n", connection)
	_, about, _ := run(t, "", "help", "connection")
	_, manual, _ := run(t, "", "man")
	for _, text := range []string{about, manual} {
		assert.Equal(t, 1, strings.Count(text, "which process listings do not show"))
	}
	_, help, _ = run(t, "", "serve", "--help")
	assert.NotContains(t, help, "onnection")
}

func TestTyposGetASuggestion(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"rnu"}, `did you mean "run"?`},
		{[]string{"eletc"}, `did you mean "elect"?`},
		{[]string{"ver"}, `did you mean "version"?`},
		{[]string{"help", "sevre"}, `did you mean "serve"?`},
		{[]string{"run", "--no-wiat", "/l", "--", "true"}, `did you mean "--no-wait"?`},
		{[]string{"completion", "bsh"}, `did you mean "bash"?`},
	} {
		code, _, err := run(t, "", c.args...)
		assert.EqualValues(t, outcome.Usage, code)
		assert.Contains(t, err, c.want)
	}
	for _, name := range []string{"quite-another", "nope", "x"} {
		_, _, err := run(t, "", name)
		assert.NotContains(t, err, "mean", name)
	}
}

func TestVersionIsThatOfTheBuild(t *testing.T) {
	code, out, err := run(t, "", "version")
	assert.Zero(t, code, err)
	assert.Regexp(t, `^zklock \S.* go1\.\S+ \w+/\w+\n$`, out)
	_, same, _ := run(t, "", "--version")
	assert.Equal(t, out, same)
}

func TestFlagsThatDoNothingAreNotOffered(t *testing.T) {
	for command, useless := range map[string][]string{
		"ls": {"label", "acl", "session-timeout"}, "top": {"label", "acl", "session-timeout"}, "revoke": {"label", "acl"}, "evict": {"label", "acl"},
		"demo": {"label", "tls", "tls-ca"}, "serve": {"servers", "auth"}, "elect": {"semaphore", "shared", "label"},
	} {
		for _, flag := range useless {
			code, _, err := run(t, "", command, "--"+flag, "x")
			assert.EqualValues(t, outcome.Usage, code)
			assert.Contains(t, err, "unknown flag", "%s --%s", command, flag)
		}
	}
	for _, flag := range [][]string{{"--value", "x"}, {"--no-wait"}, {"-E", "3"}} {
		code, _, err := run(t, "", append(append([]string{"elect"}, flag...), "/l")...)
		assert.EqualValues(t, outcome.Usage, code)
		assert.Contains(t, err, "has no effect without a COMMAND")
	}
}

func TestCompletionKnowsEveryCommandAndFlag(t *testing.T) {
	for shell, flag := range map[string]string{"bash": "--%s", "zsh": "--%s", "fish": "-l %s"} {
		code, out, err := run(t, "", "completion", shell)
		require.Zero(t, code, err)
		for _, c := range command.Program().Listed() {
			assert.Contains(t, out, c.Name)
			c.Define(cli.Streams{}).Each(func(fl *flagpkg.Flag, _, _, _ string) { assert.Contains(t, out, fmt.Sprintf(flag, fl.Name)) })
		}
		assert.NotContains(t, out, "man)")
		if path, err := exec.LookPath(shell); err == nil {
			check := exec.Command(path, "-n")
			check.Stdin = strings.NewReader(out)
			text, err := check.CombinedOutput()
			assert.NoError(t, err, "%s: %s", shell, text)
		}
	}
}

func TestBashCompletes(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash here")
	}
	_, script, _ := run(t, "", "completion", "bash")
	for line, want := range map[string]string{"zklock el": "elect", "zklock run --no-w": "--no-wait", "zklock completion fi": "fish", "zklock help re": "revoke", "zklock --ver": "--version"} {
		words := strings.Fields(line)
		ask := fmt.Sprintf("%s\nCOMP_WORDS=(%s); COMP_CWORD=%d; _zklock; echo \"${COMPREPLY[*]}\"", script, line, len(words)-1)
		out, err := exec.Command(bash, "-c", ask).CombinedOutput()
		require.NoError(t, err, string(out))
		assert.Equal(t, want+"\n", string(out), line)
	}
}

// Paths and nodes come from the servers, and from anyone who can create a node there. Files are completed only as a flag's value
// or behind --.
func TestBashCompletesPathsAndNodes(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash here")
	}
	srv := startServer(t)
	client := connect(t, srv)
	hold, err := client.Mutex("/locks/orders").Lock(t.Context())
	require.NoError(t, err)
	for _, path := range []string{"/locks/other", "/locks/$(touch hacked)", "/locks/a b", "/locks/other.zklock-slots"} {
		require.NoError(t, srv.PutNode(path, nil))
	}
	_, script, _ := run(t, "", "completion", "bash")
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ca.pem"), nil, 0o600))
	for line, want := range map[string]string{
		"zklock run /": "/locks", "zklock run /locks/o": "/locks/orders /locks/other", "zklock ls --wide /locks/": "/locks/orders /locks/other", "zklock ls /locks/orders/": "", "zklock ls /none/": "",
		"zklock evict /locks/orders --node lo": "lock-" + hold.Node()[len(hold.Node())-10:], "zklock run --tls-ca c": "ca.pem", "zklock run --wait 5": "", "zklock run c": "", "zklock serve c": "", "zklock run /l -- ca.p": "ca.pem",
	} {
		words := strings.Fields(line)
		ask := exec.Command(bash, "-c", script+"\nCOMP_WORDS=("+line+"); COMP_WORDS[0]=\"$1\"; COMP_CWORD=$2; _zklock; echo \"${COMPREPLY[*]}\"", "bash", os.Args[0], fmt.Sprint(len(words)-1))
		ask.Dir = dir
		ask.Env = append(os.Environ(), beCommand+"=1", "ZKLOCK_SERVERS="+srv.Addr())
		out, err := ask.Output()
		require.NoError(t, err)
		assert.Equal(t, want, strings.Join(strings.Fields(string(out)), " "), line)
	}
	assert.False(t, exists(filepath.Join(dir, "hacked")), "a node's name was run as a command")
}

func TestBashCompletesNamesWithSpaces(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash here")
	}
	_, script, _ := run(t, "", "completion", "bash")
	name := filepath.Join(t.TempDir(), "my file")
	require.NoError(t, os.WriteFile(name, nil, 0o600))
	ask := exec.Command(bash, "-c", script+"\nCOMP_WORDS=(zklock run /l -- cat \"$1\"); COMP_CWORD=5; _zklock; printf '<%s>' \"${COMPREPLY[@]}\"", "bash", filepath.Join(filepath.Dir(name), "my"))
	out, err := ask.CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Equal(t, "<"+name+">", string(out))
}

func TestTheManualContainsAllOfTheHelp(t *testing.T) {
	code, out, err := run(t, "", "man")
	require.Zero(t, code, err)
	for _, c := range command.Program().Listed() {
		assert.Contains(t, out, ".SS "+c.Name)
		c.Define(cli.Streams{}).Each(func(fl *flagpkg.Flag, _, _, _ string) {
			assert.Contains(t, out, `\-\-`+strings.ReplaceAll(fl.Name, "-", `\-`))
		})
	}
	for _, section := range []string{"EXIT STATUS", "EXAMPLES", "SEE ALSO"} {
		assert.Contains(t, out, ".SH "+section+"\n")
	}
	for code := range strings.FieldsSeq("0 1 2 64 69 70 73 74 75 77 79 80 81 124") {
		assert.Contains(t, out, ".B "+code+"\n", "the exit codes of package outcome")
	}
	if man, err := exec.LookPath("man"); err == nil {
		check := exec.Command(man, "--warnings", "-l", "-")
		check.Stdin = strings.NewReader(out)
		text, err := check.CombinedOutput()
		assert.NoError(t, err, string(text))
		assert.Contains(t, string(text), "ZKLOCK")
	}
}

func TestFailedOutputIsAFailure(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full here")
	}
	defer full.Close()
	srv := startServer(t)
	hold, err := connect(t, srv).Mutex("/l").Lock(t.Context())
	require.NoError(t, err)
	defer hold.Unlock(t.Context())
	leader, err := connect(t, srv).Election("/e", nil).Campaign(t.Context(), []byte("host-a"))
	require.NoError(t, err)
	defer leader.Unlock(t.Context())
	for _, args := range [][]string{
		{"elect", "/e"}, {"elect", "--watch", "/e"}, {"ls", "/l"}, {"ls", "--json", "/l"}, {"ls", "-r", "/"}, {"ls", "/none"}, {"ls", "--watch", "/l"}, {"top", "/"}, {"revoke", "/l"},
		{"help"}, {"help", "run"}, {"run", "--help"}, {"version"}, {"man"}, {"completion", "bash"},
	} {
		i := zklockCommand(t, srv.Addr(), args...)
		i.Stdout = full
		assert.EqualValues(t, outcome.Failure, i.start().code(), "%v", args)
		assert.Contains(t, i.err.String(), "no space left", "%v", args)
	}
}

func TestWrongUseIsOneLine(t *testing.T) {
	for _, args := range [][]string{{"no-such-command"}, {"serve", "extra"}, {"demo", "--no-such-flag"}, {"demo", "--items", "2"}, {"serve", "--members", "0"}, {"demo", "--connect-timeout", "0", "--html", ""}, {"top", "--connect-timeout", "-1s"}} {
		code, out, err := run(t, "", args...)
		assert.EqualValues(t, outcome.Usage, code, args)
		assert.Empty(t, out)
		assert.Regexp(t, `^zklock: .+\n$`, err)
	}
	code, _, err := run(t, "")
	assert.EqualValues(t, outcome.Usage, code)
	assert.Contains(t, err, "Usage: zklock")
}
