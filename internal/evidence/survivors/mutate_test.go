package main

import (
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const sample = `package sample

func (t *thing) decide(sent, got int) bool {
	if t.a < t.b && !t.done {
		t.count++
		t.tell(sent)
	}
	t.store(&request{Version: t.version})
	x := t.now.Mono
	return true
}
`

func TestEachMutationHasItsSwitch(t *testing.T) {
	text, all, err := mutate("sample.go", sample, 7)
	require.NoError(t, err)
	_, err = parser.ParseFile(token.NewFileSet(), "sample.go", text, 0)
	require.NoError(t, err, text)
	var what []string
	for i, m := range all {
		require.Equal(t, 7+i, m.Number)
		require.Contains(t, text, fmt.Sprintf("(%d", m.Number))
		what = append(what, m.String())
	}
	for _, want := range []string{
		"thing.decide: `t.a <= t.b` in place of `t.a < t.b`",
		"thing.decide: `t.a >= t.b` in place of `t.a < t.b`",
		"thing.decide: `t.a < t.b` in place of `t.a < t.b && !t.done`",
		"thing.decide: `!t.done` in place of `t.a < t.b && !t.done`",
		"thing.decide: `t.done` in place of `!t.done`",
		"thing.decide: without `t.count++`",
		"thing.decide: without `t.tell(sent)`",
		"thing.decide: `got` in place of `sent`",
		"thing.decide: `-1` in place of `t.version`",
		"thing.decide: `t.now.Wall` in place of `t.now.Mono`",
		"thing.decide: `false` in place of `true`",
	} {
		require.Contains(t, what, want)
	}
}

func TestWordsOnSurvivorsAreKept(t *testing.T) {
	name := filepath.Join(t.TempDir(), "list.md")
	l, err := readList(name)
	require.NoError(t, err)
	l.replace("a.go", 3, []survivor{{what: "f: `x` in place of `y`", how: unnoticed, why: "they are equal"}, {what: "g: without `z()`", how: unreached}})
	require.NoError(t, l.write(name))
	before, err := os.ReadFile(name)
	require.NoError(t, err)
	again, err := readList(name)
	require.NoError(t, err)
	again.replace("a.go", 3, []survivor{{what: "f: `x` in place of `y`", how: unnoticed}, {what: "g: without `z()`", how: unreached}})
	require.NoError(t, again.write(name))
	after, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, string(before), string(after))
}

// TestTheSubjectsAreThere keeps the list of files up to date, and every mutation parsable.
func TestTheSubjectsAreThere(t *testing.T) {
	for _, s := range subjects {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", s.file))
		require.NoError(t, err)
		mutated, all, err := mutate(s.file, string(text), 1)
		require.NoError(t, err)
		require.NotEmpty(t, all)
		_, err = parser.ParseFile(token.NewFileSet(), s.file, mutated, 0)
		require.NoError(t, err)
	}
}

func TestPlantedDefectsAreTheSameForASeed(t *testing.T) {
	const root = "../../.."
	defects, texts, err := draw(root, 50, 3)
	require.NoError(t, err)
	require.Len(t, defects, 50)
	again, _, err := draw(root, 50, 3)
	require.NoError(t, err)
	require.Equal(t, defects, again)
	others, _, err := draw(root, 50, 4)
	require.NoError(t, err)
	require.NotEqual(t, defects, others)
	for _, m := range defects {
		require.Contains(t, texts[m.File], fmt.Sprintf("(%d", m.Number))
		require.NotEmpty(t, texts[filepath.Join(filepath.Dir(m.File), "mutated.go")])
	}
	for name, text := range texts {
		_, err = parser.ParseFile(token.NewFileSet(), name, text, 0)
		require.NoError(t, err, name)
	}
}

func TestPlantedDefectsAreOfMoreKinds(t *testing.T) {
	s := &source{name: "sample.go", next: 1, planted: true, text: `package sample

func (t *thing) read(sent, got int) (n int, _ error) {
	err := t.ask(sent)
	if err != nil {
		return 0, err
	}
	t.count++
	return 1, nil
}
`}
	require.NoError(t, s.collect())
	var what []string
	for _, m := range s.all {
		what = append(what, m.String())
	}
	for _, want := range []string{
		"thing.read: `true` in place of `err != nil`",
		"thing.read: `false` in place of `err != nil`",
		"thing.read: `nil` in place of `err`",
		"thing.read: `got` in place of `sent`",
		"thing.read: `return *new(int), *new(error)` before `t.count++`",
	} {
		require.Contains(t, what, want)
	}
	one := s.rewritten(map[int]bool{s.all[0].Number: true})
	require.Equal(t, 1, strings.Count(one, "mutated"), one)
}

func TestADefectIsNotTheTables(t *testing.T) {
	const file = "internal/queue/note.go" // which the table changes
	text, err := os.ReadFile("../../../" + file)
	require.NoError(t, err)
	s := &source{name: file, text: string(text), planted: true}
	require.NoError(t, s.collect())
	in := 0
	for _, m := range s.all {
		if isInTable(s, m) {
			in++
		}
	}
	require.Positive(t, in)
	require.Less(t, in, len(s.all))
}

func TestTheFirstFailureIsNamed(t *testing.T) {
	require.Equal(t, "TestA/b", firstFailure("=== RUN TestA\n    --- FAIL: TestA/b (0.01s)\n--- FAIL: TestA (0.02s)\n"))
	require.Equal(t, "ends in a panic", firstFailure("panic: deadlock\n"))
}
