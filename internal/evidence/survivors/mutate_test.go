// SPDX-License-Identifier: Apache-2.0

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

import "slices"

type instant struct{ Mono, Wall int }

type thing struct {
	a, b, count, version int
	done                 bool
	now                  instant
	all                  []int
	freed                chan int
	fn                   func()
}

type request struct{ Version int }

func (t *thing) decide(sent, got int) bool {
	if t.a < t.b && !t.done {
		t.count++
		t.tell(sent)
	}
	t.store(&request{Version: t.version})
	t.set(1, 2, 3, nil)
	x := t.now.Mono + t.a
	_ = x
	return true
}

func (t *thing) tell(n int) { t.freed <- n }

func (t *thing) store(r *request) { t.version = r.Version }

func (t *thing) set(x, y, z int, err error) {}

func (t *thing) last() ([]int, error) {
	err := t.read()
	if err != nil {
		return nil, err
	}
	t.count--
	t.fn()
	n := len(t.all)
	close(t.freed)
	defer t.fn()
	all := slices.Clone(t.all)
	all = append([]int(nil), all...)
	all[n-1] = 1
	return all, nil
}

func (t *thing) read() error { return nil }
`

// sampleIn writes a module with the sample and its tests.
func sampleIn(t *testing.T, tests string) (root string) {
	root = t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "internal", "sample"), 0o700))
	require.NoError(t, os.Mkdir(filepath.Join(root, "slots"), 0o700))
	for name, text := range map[string]string{
		"go.mod": "module example.org/sample\n\ngo 1.25\n", "sample.go": "package sample\n", "slots/slots.go": "package slots\n",
		"internal/sample/sample.go": sample, "internal/sample/sample_test.go": tests,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o600))
	}
	return root
}

// chosenSample returns the package of the sample with its mutations.
func chosenSample(t *testing.T, tests string) *pkg {
	*root = sampleIn(t, tests)
	t.Cleanup(func() { *root = "." })
	packages, err := productPackages(*root)
	require.NoError(t, err)
	for _, p := range packages {
		if p.dir == "internal/sample" {
			require.NoError(t, p.mutate())
			return p
		}
	}
	t.Fatal("no sample")
	return nil
}

func TestEachMutationHasItsSwitch(t *testing.T) {
	p := chosenSample(t, "package sample\n")
	text := p.texts["internal/sample/sample.go"]
	_, err := parser.ParseFile(token.NewFileSet(), "sample.go", text, 0)
	require.NoError(t, err, text)
	var what []string
	for i, m := range p.mutations {
		require.Equal(t, 1+i, m.Number)
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
		"thing.decide: `t.now.Mono - t.a` in place of `t.now.Mono + t.a`",
		"thing.decide: `false` in place of `true`",
		"thing.decide: `t.tell(sent)` moved before `t.count++`",
		"thing.last: `nil` in place of `err`",
		"thing.last: `t.fn()` moved before `t.count--`",
		"thing.last: `close(t.freed)` moved before `n := len(t.all)`",
		"thing.last: `close(t.freed)` moved before `err := t.read()`",
		"thing.last: `t.fn()` moved after `n := len(t.all)`",
		"thing.last: without `close(t.freed)`",
		"thing.last: without `defer t.fn()`",
		"thing.last: `t.all` in place of `slices.Clone(t.all)`",
		"thing.last: `all` in place of `append([]int(nil), all...)`",
	} {
		require.Contains(t, what, want)
	}
}

func TestMutationsAreNoticedByTheTestsThatReachThem(t *testing.T) {
	p := chosenSample(t, `package sample

import "testing"

func TestOneIsLast(t *testing.T) {
	s := &thing{all: []int{5}, freed: make(chan int), fn: func() {}}
	all, err := s.last()
	if all[0] != 1 || err != nil || s.count != -1 {
		t.Fatal(all)
	}
	if s.decide(1, 2); s.count != -1 {
		t.Fatal("counted")
	}
}

func TestThatFailsAnyway(t *testing.T) {
	(&thing{}).store(&request{})
	t.Fail()
}
`)
	dir, before := t.TempDir(), knownIn
	knownIn = func() (string, error) { return dir, nil }
	*own = true
	t.Cleanup(func() { *own, knownIn = false, before })
	tried, err := p.try(p.mutations)
	require.NoError(t, err)
	again, err := p.try(p.mutations)
	require.NoError(t, err)
	require.Equal(t, tried, again)
	kept, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, kept, 1, "the second time, the binary was another one")
	require.Len(t, tried, len(p.mutations))
	outcomes := map[string]string{}
	for _, r := range tried {
		outcomes[r.String()] = r.outcome
	}
	for what, want := range map[string]string{
		"thing.last: without `t.count--`":                                 noticedByOwn,
		"thing.last: `err == nil` in place of `err != nil`":               noticedByOwn,
		"thing.last: without `all[n-1] = 1`":                              noticedByOwn,
		"thing.last: without `close(t.freed)`":                            unnoticed,
		"thing.last: `t.all` in place of `slices.Clone(t.all)`":           unnoticed,
		"thing.last: `nil` in place of `err`":                             unreached,
		"thing.decide: without `t.tell(sent)`":                            unreached,
		"thing.decide: `t.a <= t.b` in place of `t.a < t.b`":              noticedByOwn,
		"thing.decide: `t.now.Mono - t.a` in place of `t.now.Mono + t.a`": unnoticed,
		"thing.last: `close(t.freed)` moved before `n := len(t.all)`":     unnoticed,
	} {
		require.Equal(t, want, outcomes[what], what)
	}
	r := summarize(p.dir, len(p.mutations), tried)
	require.Equal(t, len(tried), r.own+r.survived)
	require.Equal(t, 100*r.own/len(tried), r.efficacy())
}
