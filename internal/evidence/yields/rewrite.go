// SPDX-License-Identifier: Apache-2.0

// Package yields compiles the library so that goroutines change between its statements, and runs tests with it. In virtual time,
// goroutines change only where one blocks, so a goroutine that looks or registers a moment too late passes every test. An overlay puts a
// call of yield.Here before each statement of the packages that wait; a seed decides which calls give way to other goroutines.
package yields

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"hash/crc32"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/zklock-go/zklock/internal/evidence/yields/yield"
)

const (
	module = "github.com/zklock-go/zklock"
	// alias is the name under which rewritten files import package yield.
	alias = "zkyield"
)

// yielding are the packages between whose statements goroutines change, relative to the module's root.
var yielding = []string{".", "internal/conn", "internal/queue", "internal/session"}

// An edit inserts text at an offset of a file, in place of the next cut bytes.
type edit struct {
	at, cut int
	text    string
}

// rewriter rewrites one file.
type rewriter struct {
	fset  *token.FileSet
	place uint32 // the number of the next place
	edits []edit
}

func (rw *rewriter) offset(p token.Pos) int { return rw.fset.Position(p).Offset }

// Rewrite returns a file's text in which sync's locks and synctest's functions are replaced by those of package yield. With between, a
// goroutine may also give way before each statement that uses anything but local variables. Lines keep their numbers.
func Rewrite(name, text string, between bool) (string, error) {
	rw := &rewriter{fset: token.NewFileSet()}
	file, err := parser.ParseFile(rw.fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return "", err
	}
	used := rw.replaceLocks(file)
	if between {
		rw.place = crc32.ChecksumIEEE([]byte(name)) &^ 0xfff // each file has its own numbers
		ast.Inspect(file, rw.separate)
	}
	if len(rw.edits) == 0 {
		return text, nil
	}
	rw.edits = append(rw.edits, edit{rw.offset(file.Name.End()), 0, fmt.Sprintf("; import %s %q", alias, module+"/internal/evidence/yields/yield")})
	var out strings.Builder
	at := 0
	slices.SortStableFunc(rw.edits, func(a, b edit) int { return a.at - b.at })
	for _, e := range rw.edits {
		out.WriteString(text[at:e.at])
		out.WriteString(e.text)
		at = e.at + e.cut
	}
	out.WriteString(text[at:])
	out.WriteString(used)
	return out.String(), nil
}

// replaced has the names that package yield has in place of a standard package, and what of that package is named at the end of a
// file, so that its import stays in use.
var replaced = map[string]struct {
	names []string
	use   string
}{
	"sync":     {[]string{"Mutex", "RWMutex", "Once"}, "\nvar _ sync.Locker\n"},
	"synctest": {[]string{"Test", "Wait"}, "\nvar _ = synctest.Wait\n"},
}

// replaceLocks replaces sync's locks and synctest's functions. It returns the text that keeps the imports in use.
func (rw *rewriter) replaceLocks(file *ast.File) (used string) {
	ast.Inspect(file, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if pkg, ok := sel.X.(*ast.Ident); ok && slices.Contains(replaced[pkg.Name].names, sel.Sel.Name) {
				rw.edits = append(rw.edits, edit{rw.offset(pkg.Pos()), len(pkg.Name), alias})
				if use := replaced[pkg.Name].use; !strings.Contains(used, use) {
					used += use
				}
			}
		}
		return true
	})
	return used
}

// separate inserts calls between the statements of a list.
func (rw *rewriter) separate(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.BlockStmt:
		rw.each(n.List)
	case *ast.CaseClause:
		rw.each(n.Body)
	case *ast.CommClause:
		rw.each(n.Body)
	}
	return true
}

func (rw *rewriter) each(list []ast.Stmt) {
	for _, s := range list {
		if _, isDefer := s.(*ast.DeferStmt); !isDefer && isShared(s) {
			rw.place++
			rw.edits = append(rw.edits, edit{rw.offset(s.Pos()), 0, fmt.Sprintf("%s.Here(%d); ", alias, rw.place)})
		}
	}
}

// isShared reports whether the statement, without the blocks in it, may use what goroutines share: it calls a function, uses a channel or
// a field.
func isShared(s ast.Stmt) (shared bool) {
	ast.Inspect(s, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CaseClause, *ast.CommClause, *ast.FuncLit:
			return false
		case *ast.BlockStmt:
			return n == s
		case *ast.CallExpr, *ast.SelectorExpr, *ast.SendStmt, *ast.SelectStmt:
			shared = true
		case *ast.UnaryExpr:
			shared = shared || n.Op == token.ARROW
		}
		return !shared
	})
	return shared
}

// Longest returns how long goroutines sleep at most in the tests of a package that are named TestNoWakeUp…. A request of a client with a
// session passes about a hundred places, and must not take a session timeout.
func Longest(dir string) time.Duration {
	if dir == "internal/evidence/promises" || dir == "internal/queue" {
		return 5 * time.Millisecond
	}
	return 100 * time.Millisecond
}

// Env returns the environment in which a binary that was built with an Overlay yields as the seed says. Goroutines sleep for at most long;
// if it is zero, they only give way, and no virtual time passes.
func Env(seed int, long time.Duration) []string {
	return append(os.Environ(), fmt.Sprintf("%s=%d", yield.Seed, seed), fmt.Sprintf("%s=%v", yield.Long, long), "GOMAXPROCS=1")
}

// Overlay writes the rewritten files of the module in root to dir, together with a file for go's -overlay flag, and returns the name of
// that file. The files in changed, by their names relative to root, are in place of those in root.
func Overlay(root, dir string, changed map[string]string) (string, error) {
	list := exec.Command("go", "list", "-f", `{{$p := .}}{{range .GoFiles}}{{$p.Dir}}/{{.}}
{{end}}{{range .TestGoFiles}}{{$p.Dir}}/{{.}}
{{end}}{{range .XTestGoFiles}}{{$p.Dir}}/{{.}}
{{end}}`, "./...")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		return "", err
	}
	abs, err := filepath.Abs(root)
	if err != nil {
		return "", err
	}
	files := maps.Clone(changed)
	if files == nil {
		files = map[string]string{}
	}
	for name := range strings.FieldsSeq(string(out)) {
		if name, err = filepath.Rel(abs, name); err != nil {
			return "", err
		}
		name = filepath.ToSlash(name)
		if strings.HasPrefix(name, "internal/evidence/yields/") {
			continue
		}
		text, isChanged := files[name]
		if !isChanged {
			b, err := os.ReadFile(filepath.Join(root, name))
			if err != nil {
				return "", err
			}
			text = string(b)
		}
		between := slices.Contains(yielding, path.Dir(name)) && !strings.HasSuffix(name, "_test.go")
		now, err := Rewrite(name, text, between)
		if err != nil {
			return "", err
		}
		if isChanged || now != text {
			files[name] = now
		}
	}
	return WriteOverlay(root, dir, files)
}

// WriteOverlay writes the files to dir, together with a file for go's -overlay flag, by which they replace those of the same names in the
// module in root. It returns the name of that file.
func WriteOverlay(root, dir string, files map[string]string) (string, error) {
	replace := map[string]string{}
	for name, text := range files {
		original, err := filepath.Abs(filepath.Join(root, name))
		if err != nil {
			return "", err
		}
		replace[original] = filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		if err := os.WriteFile(replace[original], []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, "overlay.json")
	return name, os.WriteFile(name, list, 0o600)
}
