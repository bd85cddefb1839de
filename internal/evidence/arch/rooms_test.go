package arch

import (
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A house is what the table of rooms in docs/design.md says.
type house struct {
	floor map[string]int // of a file, by its path in the repository; the lowest has the largest number
	name  []string       // of the floors
	door  map[string]int // how many names of a package others of the house use at most
}

// readHouse reads the table. A row is a floor: its name, its package, its files, its purpose, and, in the first row of a
// package, how many of the package's names others use.
func readHouse(t *testing.T) house {
	h := house{floor: map[string]int{}, door: map[string]int{}}
	text, err := os.ReadFile(filepath.Join(root, "docs", "design.md"))
	require.NoError(t, err)
	_, table, ok := strings.Cut(string(text), "| floor | package |")
	require.True(t, ok, "design.md has no table of rooms")
	code := regexp.MustCompile("`([^`]+)`")
	for i, line := range strings.Split(table, "\n") {
		if i < 2 {
			continue
		}
		if !strings.HasPrefix(line, "|") {
			break
		}
		cells := strings.Split(line, "|")
		require.Len(t, cells, 7, line)
		dir := code.FindStringSubmatch(cells[2])[1]
		if dir == "zklock" {
			dir = "."
		}
		for _, m := range code.FindAllStringSubmatch(cells[3], -1) {
			file := filepath.ToSlash(filepath.Join(dir, m[1]))
			assert.NotContains(t, h.floor, file, "it stands on two floors")
			h.floor[file] = len(h.name)
		}
		if width, err := strconv.Atoi(strings.TrimSpace(cells[5])); err == nil {
			h.door[dir] = width
		}
		h.name = append(h.name, strings.TrimSpace(cells[1]))
	}
	return h
}

// TestEachFileUsesOnlyTheFloorsBelow holds the table of rooms against the code: every file of the library stands on one
// floor, none uses a higher one, and no door is wider than the table says.
func TestEachFileUsesOnlyTheFloorsBelow(t *testing.T) {
	h := readHouse(t)
	doors, seen := map[string]map[string]bool{}, map[string]bool{}
	for _, p := range packages(t) {
		dir := filepath.ToSlash(filepath.Clean("." + strings.TrimPrefix(p.ImportPath, module)))
		if !h.has(dir) {
			continue
		}
		for _, file := range p.GoFiles {
			file = filepath.ToSlash(filepath.Join(dir, file))
			assert.Contains(t, h.floor, file, "it stands on no floor")
			seen[file] = true
		}
		for _, r := range p.reaches(t) {
			to, ok := h.floor[r.to]
			if !ok {
				continue
			}
			assert.GreaterOrEqual(t, to, h.floor[r.from], "%s uses %s of %s, which is above it", r.from, r.object.Name(), r.to)
			if other := filepath.ToSlash(filepath.Dir(r.to)); other != dir {
				if doors[other] == nil {
					doors[other] = map[string]bool{}
				}
				doors[other][fullName(r.object)] = true
			}
		}
	}
	for file := range h.floor {
		assert.True(t, seen[file], "%s is not there", file)
	}
	for dir, width := range h.door {
		assert.LessOrEqual(t, len(doors[dir]), width, "the door of %s: %v", dir, doors[dir])
	}
}

// has reports whether any file of a package stands on a floor.
func (h house) has(dir string) bool {
	for file := range h.floor {
		if filepath.ToSlash(filepath.Dir(file)) == dir {
			return true
		}
	}
	return false
}

// fullName returns an object's name, of a method or a field with that of its type, if it can be told.
func fullName(o types.Object) string {
	if f, ok := o.(*types.Func); ok && f.Signature().Recv() != nil {
		return types.TypeString(f.Signature().Recv().Type(), func(*types.Package) string { return "" }) + "." + o.Name()
	}
	return o.Name()
}

// TestNothingOfARoomIsPromotedToUsers fails if an exported type shows a method or a field of a package that users cannot
// import, which embedding does silently.
func TestNothingOfARoomIsPromotedToUsers(t *testing.T) {
	checked := 0
	for _, p := range packages(t) {
		if strings.Contains(p.ImportPath, "/internal") || strings.Contains(p.ImportPath, "/cmd/") {
			continue
		}
		pkg, err := p.importer(token.NewFileSet()).Import(p.ImportPath)
		require.NoError(t, err)
		for _, name := range pkg.Scope().Names() {
			object, ok := pkg.Scope().Lookup(name).(*types.TypeName)
			if !ok || !object.Exported() {
				continue
			}
			checked++
			all := types.NewMethodSet(types.NewPointer(object.Type()))
			for i := range all.Len() {
				if method := all.At(i).Obj(); method.Exported() {
					assert.NotContains(t, method.Pkg().Path(), "/internal", "%s.%s shows %s", pkg.Path(), name, method.Name())
				}
			}
		}
	}
	require.Greater(t, checked, 30)
}
