// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Every code of a command is the code that comes out, whatever the flags say, and the lock is free at once. zklock's own codes
// are among them: mail and batch programs exit with 75 for "failed for now".
func TestTheCodeOfTheCommandIsNotTouched(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	every := [][]string{
		{"run"}, {"run", "-E", "0"}, {"run", "-E", "75"}, {"run", "-E", "80"}, {"run", "--no-wait", "-E", "0"}, {"run", "--wait", "60s", "-E", "0"},
		{"run", "--once", "x", "-E", "0"}, {"run", "--at-most-once", "--once", "x", "-E", "0"}, {"run", "--at-least", "1ms", "-E", "0"},
		{"run", "--end-rest", "-E", "0"}, {"run", "--max-run", "1h", "-E", "0"}, {"run", "--shared", "-E", "0"}, {"run", "--semaphore", "2", "-E", "0"}, {"elect", "-E", "0"}, {"elect", "--no-wait", "-E", "0"},
	}
	own := []int{1, 2, 64, 69, 70, 74, 75, 77, 79, 80, 81, 124, 126, 127, 128, 130, 143, 255}
	check := func(code int, flags []string) {
		t.Run(fmt.Sprint(code, flags), func(t *testing.T) {
			t.Parallel()
			lock := "/" + strings.Trim(strings.Join(flags, "_"), "-") + "_" + strconv.Itoa(code)
			got, _, err := run(t, srv.Addr(), append(append([]string{}, flags...), lock, "--", "sh", "-c", "exit "+strconv.Itoa(code))...)
			assert.Equal(t, code, got)
			assert.Empty(t, err)
			for path := range srv.Tree() {
				assert.False(t, strings.HasPrefix(path, lock+"/") && strings.Contains(path, "_c_"), "the next holder would wait for %s", path)
			}
		})
	}
	if testing.Short() {
		for _, code := range []int{75, 80} {
			for _, flags := range every {
				check(code, flags)
			}
		}
		return
	}
	for _, code := range own {
		for _, flags := range every {
			check(code, flags)
		}
	}
	for code := range 256 {
		if !slices.Contains(own, code) {
			check(code, every[code%len(every)])
		}
	}
}
