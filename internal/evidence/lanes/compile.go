// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"time"
)

// dirs returns the modules that lanes test, once each.
func dirs(all []lane) []string {
	var list []string
	for _, l := range all {
		for _, s := range l.steps {
			if !slices.Contains(list, s.dir) {
				list = append(list, s.dir)
			}
		}
	}
	return list
}

// compile compiles the packages of modules and their tests. On a machine with an empty cache, the compiler would otherwise slow
// down tests that depend on real time. Compile errors are reported by the lanes' commands.
func compile(ctx context.Context, out io.Writer, dirs []string) {
	start := time.Now()
	for _, dir := range dirs {
		list := exec.CommandContext(ctx, "go", "list", "-e", "-test", "-deps", "-export", "-f", "{{.Export}}", "./...")
		list.Dir = dir
		_ = list.Run()
	}
	fmt.Fprintf(out, "compiled the tests of %d modules in %.0f s\n", len(dirs), time.Since(start).Seconds())
}
