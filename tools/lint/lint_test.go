// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

var compare = flag.Bool("compare", false, "run go vet and staticcheck, too")

// planted unpacks the modules of testdata and returns the findings that their comments want, each as "file:line check".
func planted(t *testing.T) (want []string) {
	archive, err := txtar.ParseFile("testdata/planted.txtar")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	for _, f := range archive.Files {
		if err := os.MkdirAll(filepath.Dir(f.Name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f.Name, f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
		n := 0
		for line := range strings.Lines(string(f.Data)) {
			n++
			_, checks, _ := strings.Cut(line, "// want ")
			for check := range strings.FieldsSeq(checks) {
				want = append(want, f.Name+":"+strconv.Itoa(n)+" "+check)
			}
		}
	}
	slices.Sort(want)
	return want
}

var finding = regexp.MustCompile(`^([^:]+:\d+)(?::\d+)?: (\w+): `)

func TestPlantedFaultsAreFound(t *testing.T) {
	want := planted(t)
	found, err := lint([]string{"one", "two"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range found {
		m := finding.FindStringSubmatch(f)
		if m == nil {
			t.Fatalf("not a finding: %s", f)
		}
		got = append(got, m[1]+" "+m[2])
	}
	slices.Sort(got)
	compareLists(t, want, slices.Compact(got))
}

func compareLists(t *testing.T, want, got []string) {
	t.Helper()
	for _, w := range want {
		if !slices.Contains(got, w) {
			t.Errorf("not found: %s", w)
		}
	}
	for _, g := range got {
		if !slices.Contains(want, g) {
			t.Errorf("found, but not planted: %s", g)
		}
	}
}

// TestLintFindsWhatVetAndStaticcheckFind runs these tools on the same modules: lint finds something in the same lines.
func TestLintFindsWhatVetAndStaticcheckFind(t *testing.T) {
	if !*compare {
		t.Skip("takes minutes: only with -compare")
	}
	build := exec.Command("go", "build", "-o", filepath.Join(t.TempDir(), "staticcheck"), "honnef.co/go/tools/cmd/staticcheck")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	planted(t)
	found, err := lint([]string{"one", "two"})
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, f := range found {
		got = append(got, finding.FindStringSubmatch(f)[1])
	}
	place := regexp.MustCompile(`(?m)^(?:vet: )?(?:\./)?([\w.]+\.go:\d+):`)
	for _, module := range []string{"one", "two"} {
		for _, tool := range [][]string{{"go", "vet", "./..."}, {build.Args[3], "./..."}} {
			cmd := exec.Command(tool[0], tool[1:]...)
			cmd.Dir = module
			out, _ := cmd.CombinedOutput() // it fails, because it finds something
			t.Logf("%s: %v\n%s", module, tool, out)
			for _, m := range place.FindAllStringSubmatch(string(out), -1) {
				want = append(want, module+"/"+m[1])
			}
		}
	}
	compareLists(t, slices.Compact(slices.Sorted(slices.Values(want))), slices.Compact(got))
}

// TestTheListOfVetIsComplete fails if a new version of Go has an analyzer more.
func TestTheListOfVetIsComplete(t *testing.T) {
	out, err := exec.Command("go", "tool", "vet", "help").Output()
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(out), "Registered analyzers:\n")
	list, _, _ = strings.Cut(list, "By default")
	var names []string
	for _, a := range vet {
		names = append(names, a.Name)
	}
	var want []string
	for line := range strings.Lines(list) {
		if fields := strings.Fields(line); len(fields) > 0 {
			want = append(want, fields[0])
		}
	}
	if len(want) == 0 {
		t.Fatalf("no list: %s", out)
	}
	compareLists(t, want, names)
}
