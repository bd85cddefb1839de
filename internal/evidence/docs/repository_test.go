// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func read(t *testing.T, name string) string {
	data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	require.NoError(t, err)
	return string(data)
}

// TestContributingNamesOnlyWhatExists looks for every directory, file and target that CONTRIBUTING.md names.
func TestContributingNamesOnlyWhatExists(t *testing.T) {
	text := read(t, "CONTRIBUTING.md")
	places := regexp.MustCompile("`((?:[.a-z][\\w.-]*/)[\\w./-]*|[\\w-]+\\.(?:go|md|mod)|Makefile)`").FindAllStringSubmatch(text, -1)
	require.NotEmpty(t, places)
	for _, m := range places {
		if strings.HasPrefix(m[1], "testing/") || strings.HasPrefix(m[1], "go-zookeeper/") { // packages of others
			continue
		}
		_, err := os.Stat(filepath.Join(root, filepath.FromSlash(m[1])))
		assert.NoError(t, err, "CONTRIBUTING.md names %s", m[1])
	}
	targets := regexp.MustCompile("make((?: [a-z][a-z-]*)+)").FindAllStringSubmatch(text, -1)
	require.NotEmpty(t, targets)
	for _, m := range targets {
		for _, target := range strings.Fields(m[1]) {
			assert.Regexp(t, "(?m)^"+target+":", read(t, "Makefile"), "make %s", target)
		}
	}
}

// TestFilesThatAreNamedExist looks for every Go file that a document names, with its directory or without.
func TestFilesThatAreNamedExist(t *testing.T) {
	exist := map[string]bool{}
	err := filepath.WalkDir(root, func(file string, entry os.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(file, ".go") {
			exist[entry.Name()] = true
		}
		return err
	})
	require.NoError(t, err)
	named := 0
	for doc, text := range written(t) {
		if strings.HasPrefix(doc, "internal/evidence/upstream/") { // about files of the client library
			continue
		}
		for _, m := range regexp.MustCompile("`((?:[\\w.-]+/)*[a-z]\\w*\\.go)`").FindAllStringSubmatch(text, -1) {
			named++
			known := exist[m[1]]
			for _, from := range []string{".", path.Dir(doc)} {
				_, err := os.Stat(filepath.Join(root, filepath.FromSlash(path.Join(from, m[1]))))
				known = known || err == nil
			}
			assert.True(t, known, "%s names %s", doc, m[1])
		}
	}
	assert.Greater(t, named, 20)
}

// nestedModules returns the modules that the Makefile lists.
func nestedModules(t *testing.T) []string {
	nested := regexp.MustCompile(`(?m)^NESTED := (.*)$`).FindStringSubmatch(read(t, "Makefile"))
	require.NotNil(t, nested)
	return strings.Fields(nested[1])
}

// TestMakefileNamesOnlyWhatExists looks for every nested module, and every script that a target runs.
func TestMakefileNamesOnlyWhatExists(t *testing.T) {
	text := read(t, "Makefile")
	for _, module := range nestedModules(t) {
		assert.FileExists(t, filepath.Join(root, filepath.FromSlash(module), "go.mod"))
	}
	for _, m := range regexp.MustCompile(`(?m)^\t@?((?:tools|integration|compare|internal/evidence/model)/[\w/-]+)`).FindAllStringSubmatch(text, -1) {
		assert.FileExists(t, filepath.Join(root, filepath.FromSlash(m[1])), "Makefile")
	}
}

// goOf returns the oldest minor version of Go that a module takes, as its go.mod says.
func goOf(t *testing.T, module string) string {
	m := regexp.MustCompile(`(?m)^go (1\.\d+)`).FindStringSubmatch(read(t, path.Join(module, "go.mod")))
	require.NotNil(t, m, module)
	return m[1]
}

// TestOneGoVersion holds the documents, every go.mod and the workflows to the same oldest
// version of Go. The modules that need a newer one are named with it where we say what is needed.
func TestOneGoVersion(t *testing.T) {
	oldest := goOf(t, ".")
	assert.Contains(t, read(t, "README.md"), "Go ("+oldest+" or newer)")
	contributing := read(t, "CONTRIBUTING.md")
	need, rest, found := strings.Cut(contributing, "Go "+oldest+" or newer")
	require.True(t, found, "CONTRIBUTING.md: Go %s", oldest)
	assert.NotRegexp(t, `Go 1\.\d`, need)
	newer := oldest
	for _, module := range nestedModules(t) {
		switch needs := goOf(t, module); needs {
		case oldest:
			assert.NotContains(t, rest[:strings.Index(rest, ".\n")], "`"+module+"/`", "it needs no more than the rest")
		default:
			newer = needs
			assert.Contains(t, rest[:strings.Index(rest, ".\n")], "`"+module+"/`", "CONTRIBUTING.md must say that it needs Go %s", needs)
			assert.Contains(t, rest[:strings.Index(rest, ".\n")], needs)
		}
	}
	assert.Contains(t, read(t, ".github/workflows/ci.yml"), `"`+oldest+`"`)
	workflows, err := filepath.Glob(filepath.Join(root, ".github", "workflows", "*.yml"))
	require.NoError(t, err)
	for _, file := range workflows {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`"(1\.\d+)[.\d]*"`).FindAllStringSubmatch(string(text), -1) {
			assert.Contains(t, []string{oldest, newer}, m[1], "%s", file)
		}
	}
}

// TestActionsArePinned wants the full hash of a commit for each action of a workflow: a tag can be moved.
func TestActionsArePinned(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, ".github", "workflows", "*.yml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`uses: *(.*)`).FindAllStringSubmatch(string(data), -1) {
			assert.Regexp(t, `^[\w-]+/[\w-]+(/[\w-]+)*@[0-9a-f]{40} # v\d`, m[1], filepath.Base(file))
		}
	}
}

// TestVulncheckFailsUnlessItsDatabaseIsOutOfReach runs the script with checkers that end in different ways. The script runs them
// with -scan module first.
func TestVulncheckFailsUnlessItsDatabaseIsOutOfReach(t *testing.T) {
	script, err := filepath.Abs(filepath.Join(root, "tools", "vulncheck"))
	require.NoError(t, err)
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash")
	}
	const unreachable = "echo 'govulncheck: fetching vulnerabilities: no such host'; exit 1"
	for name, c := range map[string]struct {
		checker string
		env     string
		code    int
		says    string
	}{
		"clean":                      {"echo No vulnerabilities found.", "", 0, "No vulnerabilities found."},
		"findings":                   {"echo GO-2026-0001; exit 3", "", 3, "GO-2026-0001"},
		"a module that is not used":  {`[ "$1" != -scan ] || exit 3; echo No calls.`, "", 0, "No calls."},
		"source":                     {`[ "$1" != -scan ] || exit 1; echo GO-2026-0001; exit 3`, "VULNCHECK_SOURCE=1", 3, "GO-2026-0001"},
		"findings that name a fetch": {"echo GO-2026-0001; echo 'govulncheck: fetching vulnerabilities: broken'; exit 3", "", 3, "GO-2026-0001"},
		"does not build":             {"echo 'x.go:1: undefined: fetching vulnerabilities'; exit 1", "", 1, "undefined"},
		"no database":                {unreachable, "", 0, "NOT CHECKED"},
		"no database, required":      {unreachable, "VULNCHECK_REQUIRE=1", 1, "NOT CHECKED"},
	} {
		t.Run(name, func(t *testing.T) {
			checker := filepath.Join(t.TempDir(), "govulncheck")
			require.NoError(t, os.WriteFile(checker, []byte("#!/bin/sh\n"+c.checker+"\n"), 0o700))
			cmd := exec.CommandContext(t.Context(), "bash", script, checker, ".", ".")
			cmd.Env = append(os.Environ(), "VULNCHECK_REQUIRE=", "VULNCHECK_SOURCE=", "GITHUB_ACTIONS=", c.env)
			out, _ := cmd.CombinedOutput()
			assert.Equal(t, c.code, cmd.ProcessState.ExitCode(), "%s", out)
			assert.Contains(t, string(out), c.says)
			assert.LessOrEqual(t, strings.Count(string(out), "NOT CHECKED"), 1, "it is said once")
		})
	}
}

// released returns the modules that users import in addition to the library's own.
func released(t *testing.T) (all []string) {
	for _, module := range nestedModules(t) {
		if strings.HasPrefix(module, "adapters/") && !strings.HasSuffix(module, "/test") || module == "zkcontainer" {
			all = append(all, module)
		}
	}
	require.NotEmpty(t, all)
	return all
}

// TestAReleaseSetsTheVersionsOfAllModules runs the script on copies of the modules' files.
func TestAReleaseSetsTheVersionsOfAllModules(t *testing.T) {
	dir := t.TempDir()
	put := func(name string, mode os.FileMode) {
		to := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o755))
		require.NoError(t, os.WriteFile(to, []byte(read(t, name)), mode))
	}
	put("tools/versions", 0o755)
	for _, module := range released(t) {
		put(module+"/go.mod", 0o644)
	}
	cmd := exec.CommandContext(t.Context(), "sh", filepath.Join(dir, "tools", "versions"), "v1.2.3")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	tags := strings.Fields(string(out))
	assert.Contains(t, tags, "v1.2.3")
	for _, module := range released(t) {
		assert.Contains(t, tags, module+"/v1.2.3")
		text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(module), "go.mod"))
		require.NoError(t, err)
		assert.Contains(t, string(text), "github.com/zklock-go/zklock v1.2.3\n")
	}
	assert.Len(t, tags, 1+len(released(t)))
	assert.Error(t, exec.CommandContext(t.Context(), "sh", filepath.Join(dir, "tools", "versions"), "1.2").Run())
}

// TestAllModulesRequireOneVersionOfTheLibrary finds a module that a release has left behind.
func TestAllModulesRequireOneVersionOfTheLibrary(t *testing.T) {
	seen := map[string]bool{}
	for _, module := range released(t) {
		m := regexp.MustCompile(`(?m)github\.com/zklock-go/zklock (v\S+)$`).FindStringSubmatch(read(t, module+"/go.mod"))
		require.NotNil(t, m, module)
		seen[m[1]] = true
	}
	assert.Len(t, seen, 1, "run tools/versions")
}

// TestEveryGoFileNamesItsLicense wants the SPDX line of LICENSE at the head of each Go file that git does not ignore. The empty
// line after it keeps it out of the package's documentation. Files in testdata need none.
func TestEveryGoFileNamesItsLicense(t *testing.T) {
	if _, err := os.Stat(filepath.Join(root, ".git")); err != nil {
		t.Skip("not a git repository")
	}
	require.Regexp(t, `^\s*Apache License\s+Version 2\.0,`, read(t, "LICENSE"))
	out, err := exec.CommandContext(t.Context(), "git", "-C", root, "ls-files", "-z", "-co", "--exclude-standard", "*.go", ":!:*testdata/*").Output()
	require.NoError(t, err)
	files := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	require.Greater(t, len(files), 100)
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
		if errors.Is(err, fs.ErrNotExist) { // deleted, and not yet committed
			continue
		}
		require.NoError(t, err)
		if !strings.HasPrefix(string(text), "// SPDX-License-Identifier: Apache-2.0\n\n") {
			t.Errorf("%s does not begin with the SPDX line: run tools/spdx", file)
		}
	}
}
