// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const library = "github.com/go-zookeeper/zk"

// own matches the library's own tests that need no server.
const own = "^Test(ConcurrentReadAndClose|DeadlockInClose|NotifyWatches|ModeString|ParseCreateMode|DNSHostProviderRetryStart|NewDNSHostProvider|ParseSeq|" +
	"EncodeDecodePacket|RequestStructForOp|EncodeShortBuffer|DecodeShortBuffer|FormatServers|ValidatePath|RequestFail|IdempotentClose)$"

// patches returns the names of the proposed patches.
func patches(t *testing.T) []string {
	files, err := filepath.Glob(filepath.Join("testdata", "*.diff"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var names []string
	for _, file := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(file), ".diff"))
	}
	return names
}

func TestEachPatchHasATrapAndAPlaceInTheDocument(t *testing.T) {
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	shown := append([]string{}, races...)
	for name := range traps {
		shown = append(shown, name)
	}
	assert.ElementsMatch(t, shown, patches(t))
	for _, name := range shown {
		assert.Contains(t, string(page), "(testdata/"+name+".diff)")
	}
	said := regexp.MustCompile(`zk v(\d+\.\d+\.\d+)`).FindStringSubmatch(string(page))
	require.NotNil(t, said)
	assert.Equal(t, "v"+said[1], run(t, ".", nil, "go", "list", "-m", "-f", "{{.Version}}", library), "the version that README.md describes")
}

// TestEachPatchAppliesByItself applies each patch to the version of the library that this module uses, and builds the result.
func TestEachPatchAppliesByItself(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short: builds the client library once for each patch")
	}
	for _, name := range patches(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, patched(t, name), nil, "go", "build", ".")
		})
	}
}

// TestPatchesEndTheTraps runs the tests of the traps, and the library's own tests that need no server, on the library with all
// patches.
func TestPatchesEndTheTraps(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short: builds the client library and its tests")
	}
	if os.Getenv(patchedEnv) != "" {
		t.Skip("this is that run")
	}
	dir := patched(t, patches(t)...)
	config := filepath.Join(t.TempDir(), "go.mod")
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(config), name), text, 0o644))
	}
	run(t, ".", nil, "go", "mod", "edit", "-replace", library+"="+dir, config)
	out := run(t, ".", []string{patchedEnv + "=1"}, "go", "test", "-modfile="+config, "-count=1", "-run", "^TestTraps$", "-v", ".")
	assert.Equal(t, len(traps), strings.Count(out, "    --- PASS: TestTraps/"), out)

	tested := run(t, dir, []string{"GOFLAGS=-mod=mod"}, "go", "test", "-vet=off", "-count=1", "-v", "-run", own, ".")
	assert.Greater(t, strings.Count(tested, "\n--- PASS: "), 10, tested)
}

// patched returns a directory with the library and the given patches applied.
func patched(t *testing.T, names ...string) string {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git to apply patches with")
	}
	dir := filepath.Join(t.TempDir(), "zk")
	require.NoError(t, os.CopyFS(dir, os.DirFS(run(t, ".", nil, "go", "list", "-m", "-f", "{{.Dir}}", library))))
	for _, name := range names {
		diff, err := filepath.Abs(filepath.Join("testdata", name+".diff"))
		require.NoError(t, err)
		run(t, dir, nil, "git", "apply", "--unidiff-zero", diff)
	}
	return dir
}

// run runs a command and returns its output.
func run(t *testing.T, dir string, env []string, argv ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%v:\n%s", argv, out)
	return strings.TrimSpace(string(out))
}
