// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// playing returns the output for a lane whose commands print text and exit with code.
func playing(t *testing.T, text, code string) (*progress, string) {
	var out strings.Builder
	p := newProgress(&out, map[string]float64{"played": 7})
	name := filepath.Join(t.TempDir(), "events")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	p.run(t.Context(), lane{name: "played", steps: []step{{".", []string{"sh", "-c", "cat '" + name + "'; exit " + code}}}})
	p.table()
	return p, out.String()
}

func TestALaneShowsPackagesAndFailures(t *testing.T) {
	p, out := playing(t, `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"quiet\n"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:7: broken\n"}
{"Action":"fail","Package":"p","Test":"TestB"}
{"Action":"output","Package":"p","Output":"FAIL\tp\t0.1s\n"}
plain text
`, "1")
	require.False(t, p.well())
	require.NotContains(t, out, "quiet")
	for _, want := range []string{"b_test.go:7: broken", "FAIL\tp\t0.1s", "plain text", "FAILED in .", "played"} {
		require.Contains(t, out, want)
	}
	require.NotContains(t, out, "NOT TESTED")
	require.True(t, strings.HasSuffix(out, "\nFAILED: p TestB\nFAILED: b_test.go:7: broken\n"), out)
}

func TestSkippedTestsComeLastWithTheirReason(t *testing.T) {
	p, out := playing(t, `{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:7: no bash here\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"--- SKIP: TestA (0.00s)\n"}
{"Action":"skip","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:7: only with -soak\n"}
{"Action":"skip","Package":"p","Test":"TestB"}
`, "0")
	require.True(t, p.well())
	_, last, _ := strings.Cut(out, "NOT TESTED")
	require.Contains(t, last, "p TestA: a_test.go:7: no bash here")
	require.NotContains(t, out, "TestB")
}

func TestALaneThatFailsFailsTheRun(t *testing.T) {
	p, out := playing(t, "", "0")
	require.True(t, p.well())
	require.Contains(t, out, "ok")
	p, _ = playing(t, "", "3")
	require.False(t, p.well())
}

func TestEveryPackageIsInOneLane(t *testing.T) {
	t.Chdir("../../..")
	library, err := packages(t.Context())
	require.NoError(t, err)
	require.Contains(t, library, "github.com/zklock-go/zklock")
	require.NotContains(t, library, "github.com/zklock-go/zklock/cmd/zklock")
	var dirs []string
	for _, l := range lanes(library, []string{"tools", "integration", "adapters/kerberos", "zkcontainer"}, true) {
		for _, s := range l.steps {
			if s.args[0] != "sh" { // which runs no tests
				dirs = append(dirs, s.dir)
			}
		}
	}
	want := []string{"integration", "zkcontainer", "tools", "adapters/kerberos", "adapters/kerberos"} // the last on 3.8 and 3.9
	want = append(want, slices.Repeat([]string{"."}, 9)...)                                           // the library, the command, and seven runs with other flags
	require.ElementsMatch(t, want, dirs)
}

func TestARunOnACommitOmitsOnlyTheHeavyModules(t *testing.T) {
	nested := append([]string{"internal/evidence/crons", "integration", "zkcontainer"}, heavy...)
	for _, dir := range heavy {
		require.FileExists(t, filepath.Join("../../..", dir, "go.mod"))
	}
	require.ElementsMatch(t, append(slices.Clone(nested), "."), dirs(lanes([]string{"p"}, nested, true)))
	require.ElementsMatch(t, []string{".", "internal/evidence/crons", "integration", "zkcontainer"}, dirs(lanes([]string{"p"}, nested, false)))
}

func TestEveryModuleOfTheLanesIsCompiled(t *testing.T) {
	all := lanes([]string{"example.org/p"}, []string{"tools", "integration", "zkcontainer"}, true)
	require.ElementsMatch(t, []string{".", "tools", "integration", "zkcontainer"}, dirs(all))
	var out strings.Builder
	compile(t.Context(), &out, []string{"."})
	require.Contains(t, out.String(), "compiled the tests of 1 modules")
}

func TestAnEngineThatStopsIsNoticed(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux runs dockerd")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"docker":  "exit 1",
		"dockerd": "echo no right to start; exit 1",
		"sudo":    `shift; exec "$@"`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o700))
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // setup waits a minute for a daemon that lives
	defer cancel()
	out, err := exec.CommandContext(ctx, "../../../integration/setup").CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 3, exit.ExitCode(), "%s", out)
	require.Contains(t, string(out), "no right to start")

	out, err = exec.CommandContext(ctx, "../../../integration/image/build", "bookworm").CombinedOutput()
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 3, exit.ExitCode(), "%s", out)
}
