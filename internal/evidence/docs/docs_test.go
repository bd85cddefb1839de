// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/zktest"
)

const root = "../../.."

// written returns the documents of this repository, by their names.
func written(t *testing.T) map[string]string {
	files := []string{filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md")}
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md", "cmd/*/README.md", "compare/*.md", "integration/*.md", "internal/evidence/README.md", "internal/evidence/*/README.md", "adapters/*/README.md", "zkcontainer/README.md"} {
		found, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		require.NoError(t, err)
		require.NotEmpty(t, found, pattern)
		files = append(files, found...)
	}
	texts := map[string]string{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		rel, err := filepath.Rel(root, file)
		require.NoError(t, err)
		texts[filepath.ToSlash(rel)] = string(data)
	}
	for _, file := range []string{"README.md", "docs/maintainers/design.md", "docs/promises.md", "docs/troubleshooting.md", "docs/testing.md"} {
		require.Contains(t, texts, file)
	}
	return texts
}

func blocksIn(t *testing.T, language string) []Block {
	var all []Block
	for file, text := range written(t) {
		for _, b := range Blocks(file, text) {
			assert.Contains(t, []string{"go", "sh", "text"}, b.Language, "%v: what cannot be run is text", b)
			if b.Language == language {
				all = append(all, b)
			}
		}
	}
	require.NotEmpty(t, all)
	return all
}

// asPackage puts a Go file into an empty directory of a module, visible only to the go command. It returns that
// package's path and the flag that shows the file.
func asPackage(t *testing.T, module, name string, source []byte) (path, overlay string) {
	dir := t.TempDir()
	file := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(file, source, 0o644))
	here, err := filepath.Abs(root)
	require.NoError(t, err)
	config, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(here, module, "internal", "evidence", "docs", "testdata", "block", name): file}})
	require.NoError(t, err)
	overlay = filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(overlay, config, 0o644))
	return "./internal/evidence/docs/testdata/block", "-overlay=" + overlay
}

func goCommand(t *testing.T, args ...string) (string, error) { return goCommandIn(t, ".", args...) }

// goCommandIn runs the go command in a module, which is named from the root.
func goCommandIn(t *testing.T, module string, args ...string) (string, error) {
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = filepath.Join(root, module)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// freeAddress returns an address on which nothing is listening.
func freeAddress(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

// localServer is the address of a local server in documents.
const localServer = "127.0.0.1:2181"

func TestProgramsInTheDocumentsRun(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	programs := 0
	for _, b := range blocksIn(t, "go") {
		if !b.IsFile() || b.IsTest() {
			continue
		}
		programs++
		path, overlay := asPackage(t, ".", "main.go", []byte(strings.ReplaceAll(b.Text, localServer, srv.Addr())))
		out, err := goCommand(t, "run", overlay, path)
		assert.NoError(t, err, "%v:\n%s", b, out)
		assert.Equal(t, "shipped order 42\n", out, "%v", b)
	}
	assert.Positive(t, programs)
	assert.Empty(t, srv.Sessions(), "a program of the documents must close its client")
}

func TestTestsInTheDocumentsPass(t *testing.T) {
	t.Parallel()
	tests := 0
	for _, b := range blocksIn(t, "go") {
		if !b.IsTest() || moduleOf(b) != "." { // a nested module runs its own
			continue
		}
		tests++
		path, overlay := asPackage(t, ".", "block_test.go", []byte(b.Text))
		out, err := goCommand(t, "test", "-v", overlay, path)
		assert.NoError(t, err, "%v:\n%s", b, out)
		assert.Contains(t, out, "--- PASS: Test", "%v", b)
	}
	assert.Positive(t, tests)
}

func TestFragmentsInTheDocumentsCompile(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short: compiles all blocks")
	}
	t.Parallel()
	here, err := filepath.Abs(root)
	require.NoError(t, err)
	dir := t.TempDir()
	write := func(text, name string) {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	write("module fragments\n\ngo 1.25.0\n", "go.mod")
	write(fmt.Sprintf("go 1.25.0\n\nuse (\n\t.\n\t%q\n)\n", here), "go.work")
	var names strings.Builder
	for i, b := range blocksIn(t, "go") {
		if b.IsFile() || moduleOf(b) != "." {
			continue
		}
		source, err := b.AsFile()
		if assert.NoError(t, err) {
			write(string(source), fmt.Sprintf("block%d/fragment.go", i))
			fmt.Fprintf(&names, "block%d is %v\n", i, b)
		}
	}
	vet := exec.CommandContext(t.Context(), "go", "vet", "./...")
	vet.Dir, vet.Env = dir, append(os.Environ(), "GOWORK="+filepath.Join(dir, "go.work"))
	out, err := vet.CombinedOutput()
	assert.NoError(t, err, "%s%s", out, &names)
}

// moduleOf returns the nested module of a block, or that of the library.
func moduleOf(b Block) string {
	if strings.HasPrefix(b.File, "adapters/") || strings.HasPrefix(b.File, "zkcontainer/") {
		module := strings.TrimSuffix(b.File, "/README.md")
		if _, err := os.Stat(filepath.Join(root, module, "test", "go.mod")); err == nil {
			return module + "/test" // it has what programs import next to the adapter
		}
		return module
	}
	if slices.Contains(importsOf(b.Text), "cron") {
		return "internal/evidence/crons"
	}
	return "."
}

// TestFragmentsOfAdaptersCompile compiles the fragments for users in the adapter's module. It leaves out adapters whose
// dependencies are not on this machine, because the tests of this module need no network.
func TestFragmentsOfAdaptersCompile(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short: builds what the adapters stand on")
	}
	t.Parallel()
	shown := map[string][]Block{}
	for _, b := range blocksIn(t, "go") {
		if module := moduleOf(b); module != "." && !b.IsFile() {
			shown[module] = append(shown[module], b)
		}
	}
	for module, blocks := range shown {
		if out, err := exec.Command("go", "-C", filepath.Join(root, module), "list", "-mod=readonly", "-deps", "-test", "./...").CombinedOutput(); err != nil {
			t.Logf("left out %v: %s", blocks, out)
			continue
		}
		for _, b := range blocks {
			source, err := b.AsFile()
			if !assert.NoError(t, err) {
				continue
			}
			path, overlay := asPackage(t, module, "fragment.go", source)
			out, err := goCommandIn(t, module, "build", overlay, path) // vet needs the directory to be there
			assert.NoError(t, err, "%v:\n%s\n%s", b, out, source)
		}
	}
	for _, module := range released(t) {
		if strings.HasPrefix(module, "adapters/") {
			assert.NotEmpty(t, slices.Concat(shown[module], shown[module+"/test"]), "%s must show what to paste", module)
			assert.Contains(t, read(t, module+"/README.md"), "-replace=github.com/zklock-go/zklock/"+module+"=../zklock/"+module)
		}
	}
}

// TestShellBlocksRun runs the shell blocks, with the command in PATH and a server at the address in the documents.
func TestShellBlocksRun(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short: runs whole commands")
	}
	t.Parallel()
	bin := t.TempDir()
	here, err := filepath.Abs(root)
	require.NoError(t, err)
	out, err := goCommand(t, "build", "-o", filepath.Join(bin, "zklock"), "./cmd/zklock")
	require.NoError(t, err, out)
	for _, b := range blocksIn(t, "sh") {
		t.Run(strings.ReplaceAll(b.String(), "/", "_"), func(t *testing.T) {
			t.Parallel()
			switch {
			case strings.TrimSpace(b.Text) == "make test":
				ci, err := os.ReadFile(filepath.Join(root, ".ci", "run"))
				require.NoError(t, err)
				assert.Contains(t, string(ci), "make test", "it cannot run itself, but CI must run it")
			case strings.HasPrefix(b.Text, "go mod edit"):
				installs(t, b, here, bin)
			case strings.HasPrefix(b.Text, "go run ./cmd/zklock demo"):
				file := filepath.Join(t.TempDir(), "sale.html")
				shell(t, b.Text[:len(b.Text)-1]+" --html "+file, here, bin, "")
				assert.FileExists(t, file)
			default:
				runs(t, b, bin)
			}
		})
	}
}

// runs runs a block in an empty directory.
func runs(t *testing.T, b Block, bin string) {
	servers, text := "", strings.ReplaceAll(b.Text, localServer, freeAddress(t))
	if !strings.Contains(text, "zklock serve") {
		servers = zktest.Run(t).Addr()
	}
	shell(t, text, t.TempDir(), bin, servers)
}

// installs creates a module that uses the library as the document describes, and builds it.
func installs(t *testing.T, b Block, here, bin string) {
	dir := t.TempDir()
	program := "package main\n\nimport \"github.com/zklock-go/zklock\"\n\nfunc main() { println(zklock.ErrLost.Error()) }\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o644))
	text := "go mod init example.com/app\n" + strings.ReplaceAll(b.Text, "../zklock", here) + "go run .\n"
	assert.Contains(t, shell(t, text, dir, bin, ""), "lock was lost")
}

// shell runs a script and waits for its end and that of all processes that it started.
func shell(t *testing.T, script, dir, bin, servers string) string {
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "ZKLOCK_SERVERS="+servers)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	end := ownGroup(cmd)
	cmd.WaitDelay = time.Minute // of what is left behind with our pipe open
	require.NoError(t, cmd.Start())
	defer end()
	assert.NoError(t, cmd.Wait(), "%s\n%s", script, out.String())
	return out.String()
}

func TestEveryTestThatIsNamedExists(t *testing.T) {
	exist := testsByDirectory(t)
	name := regexp.MustCompile("`(Test[A-Z][A-Za-z0-9]*)`")
	directory := regexp.MustCompile("`([a-z/]+)/`: ")
	named := 0
	for file, text := range written(t) {
		for line := range strings.Lines(text) {
			for _, at := range name.FindAllStringSubmatchIndex(line, -1) {
				named++
				test := line[at[2]:at[3]]
				where := exist[test]
				if assert.NotEmpty(t, where, "%s names %s", file, test) {
					if said := directory.FindAllStringSubmatch(line[:at[0]], -1); len(said) > 0 {
						below := said[len(said)-1][1] + "/"
						assert.True(t, slices.ContainsFunc(where, func(dir string) bool { return strings.HasPrefix(dir+"/", below) }), "%s says where %s is", file, test)
					}
				}
			}
		}
	}
	assert.Greater(t, named, 5)
}

// testsByDirectory finds all tests of the repository, also those of nested modules.
func testsByDirectory(t *testing.T) map[string][]string {
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	found := map[string][]string{}
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		for _, m := range declared.FindAllSubmatch(data, -1) {
			found[string(m[1])] = append(found[string(m[1])], filepath.ToSlash(dir))
		}
		return err
	})
	require.NoError(t, err)
	return found
}

// anchors returns what links to the headings of a page end in.
func anchors(text string) map[string]bool {
	found := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(text, -1) {
		kept := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(m[1]), "")
		found[strings.ReplaceAll(kept, " ", "-")] = true
	}
	return found
}

func TestLinksResolve(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#\s]*)(?:#([^)]*))?\)|(?m)^\[[^\]]+\]: (\S+)$`)
	use := regexp.MustCompile(`\]\[([a-z0-9-]+)\]`)
	pages := written(t)
	for file, text := range pages {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			target, anchor := m[1]+m[3], m[2]
			if strings.HasPrefix(target, "https://") {
				continue
			}
			to := file // of a link inside the page
			if target != "" {
				to = path.Join(path.Dir(file), target)
			}
			_, err := os.Stat(filepath.Join(root, filepath.FromSlash(to)))
			assert.NoError(t, err, "%s links to %s", file, target)
			if page, ok := pages[to]; ok && anchor != "" {
				assert.True(t, anchors(page)[anchor], "%s links to %s#%s", file, target, anchor)
			}
		}
		for _, m := range use.FindAllStringSubmatch(text, -1) {
			assert.Contains(t, text, fmt.Sprintf("\n[%s]: ", m[1]), "%s has no such reference", file)
		}
	}
}

// product returns the library's own Go files: those of the packages that users import, and of what these rest on.
func product(t *testing.T) (files []string) {
	for _, dir := range []string{".", "slots", "operate", "internal/conn", "internal/outcome", "internal/queue", "internal/session"} {
		found, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(dir), "*.go"))
		require.NoError(t, err)
		require.NotEmpty(t, found, dir)
		for _, file := range found {
			if !strings.HasSuffix(file, "_test.go") {
				files = append(files, file)
			}
		}
	}
	return files
}

func TestEveryErrorAndLogLineIsExplained(t *testing.T) {
	text := written(t)["docs/troubleshooting.md"]
	exported := regexp.MustCompile(`(?m)^\s*(?:var )?(Err[A-Z]\w+)\s+= (?:errors|outcome)\.`)
	line := regexp.MustCompile(`\b(?:[lL]og|Events)\.(?:Info|Warn|Error|Debug)\("(zklock: [^"]+)"`)
	sentinels, lines := map[string]bool{}, map[string]bool{}
	for _, file := range product(t) {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		if !strings.Contains(filepath.ToSlash(file), "/internal/") {
			for _, m := range exported.FindAllStringSubmatch(string(data), -1) {
				sentinels[m[1]] = true
			}
		}
		for _, m := range line.FindAllStringSubmatch(string(data), -1) {
			lines[m[1]] = true
		}
	}
	for name := range sentinels {
		assert.Equal(t, 1, strings.Count(text, "\n| `"+name+"`"), "troubleshooting.md must explain %s once", name)
	}
	for name := range lines {
		assert.Contains(t, text, "\n| `"+name+"`", "troubleshooting.md must explain it")
	}
	assert.GreaterOrEqual(t, len(sentinels), 14)
	assert.GreaterOrEqual(t, len(lines), 8)
}

func TestBlocksAreFoundAndCompleted(t *testing.T) {
	text := "a\n```go\nx := zk.FlagEphemeral\n```\nb\n```sh\nls\n```\n"
	blocks := Blocks("f.md", text)
	require.Len(t, blocks, 2)
	assert.Equal(t, Block{"f.md", 2, "go", "x := zk.FlagEphemeral\n"}, blocks[0])
	assert.Equal(t, "ls\n", blocks[1].Text)
	source, err := blocks[0].AsFile()
	require.NoError(t, err)
	assert.Contains(t, string(source), `zk "github.com/go-zookeeper/zk"`)
	assert.Contains(t, string(source), "_ = x")
	_, err = Block{Text: "x :="}.AsFile()
	assert.Error(t, err)
}
