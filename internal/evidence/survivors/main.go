// SPDX-License-Identifier: Apache-2.0

// Command survivors changes the product code in one place at a time, and prints the changes after which all tests still pass.
//
// A package's own tests run first. The short tests of internal/evidence/promises run only if these pass. A change that survives is a gap in the
// tests, or it makes no difference: somebody has to look. Run it for code that you have written; no list of its results is kept, because each
// rename would outdate it.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"regexp"
	"slices"
	"text/tabwriter"
)

func main() {
	flag.Parse()
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	pattern, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	packages, err := productPackages(*root)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "package\tmutations\ttried\tnoticed by own tests\tby promises\tsurvived\tof these not reached\tefficacy\t")
	for _, p := range packages {
		if err := p.mutate(); err != nil {
			return err
		}
		chosen := slices.DeleteFunc(slices.Clone(p.mutations), func(m mutation) bool { return !pattern.MatchString(m.File + ":" + m.Function) })
		if len(chosen) == 0 {
			continue
		}
		tried, err := p.try(chosen)
		if err != nil {
			return err
		}
		row := summarize(p.dir, len(chosen), tried)
		fmt.Println(row)
		fmt.Fprintln(table, row.cells())
	}
	return table.Flush()
}

// A row is the result for one package.
type row struct {
	name                                                 string
	mutations, tried, own, promises, survived, unreached int
}

func summarize(name string, mutations int, tried []result) row {
	r := row{name: name, mutations: mutations, tried: len(tried)}
	for _, t := range tried {
		switch t.outcome {
		case noticedByOwn:
			r.own++
			continue
		case noticedByPromises:
			r.promises++
			continue
		case unreached:
			r.unreached++
		}
		r.survived++
	}
	return r
}

// efficacy returns the percentage of the tried mutations that the package's own tests notice.
func (r row) efficacy() int { return 100 * r.own / max(1, r.tried) }

func (r row) String() string {
	return fmt.Sprintf("%s: tried %d of %d, noticed by own tests %d, by promises %d, survived %d (not reached %d); own tests notice %d %%",
		r.name, r.tried, r.mutations, r.own, r.promises, r.survived, r.unreached, r.efficacy())
}

func (r row) cells() string {
	return fmt.Sprintf("%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d %%\t", r.name, r.mutations, r.tried, r.own, r.promises, r.survived, r.unreached, r.efficacy())
}
