package main

import (
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
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
