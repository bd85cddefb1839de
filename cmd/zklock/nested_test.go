// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
)

// A command that takes the lock under which it runs would wait for itself forever.
func TestACommandUnderALockMayNotTakeItAgain(t *testing.T) {
	t.Parallel()
	needsShell(t)
	srv := startServer(t)
	nest := func(levels ...[]string) []string {
		var args []string
		for i, level := range levels {
			if i > 0 {
				args = append(args, "--", "sh", "-c", `exec "$@"`, "sh", os.Args[0])
			}
			args = append(args, level...)
		}
		return append(args, "--", "echo", "ran")
	}
	for _, args := range [][]string{
		nest([]string{"run", "/a"}, []string{"run", "/a"}),
		nest([]string{"run", "/a"}, []string{"run", "/b"}, []string{"run", "/c"}, []string{"run", "/a"}),
		nest([]string{"run", "/a"}, []string{"run", "--no-wait", "-E", "0", "/a"}),
		nest([]string{"run", "--shared", "/a"}, []string{"run", "/a"}),
		nest([]string{"run", "--semaphore", "1", "/s"}, []string{"run", "--semaphore", "1", "/s"}),
		nest([]string{"elect", "/e"}, []string{"run", "/b"}, []string{"elect", "/e"}),
		nest([]string{"run", "--root", "/x", "/a"}, []string{"run", "/x/a"}),
	} {
		code, out, err := run(t, srv.Addr(), args...)
		assert.EqualValues(t, outcome.Usage, code, "%q: %s", args, err)
		assert.Contains(t, err, "is held by a zklock that started this one", "%q", args)
		assert.Empty(t, out)
	}
	for want, args := range map[string][]string{
		"if a writer waits for that one, this one would wait for the writer, forever": nest([]string{"run", "--shared", "/a"}, []string{"run", "--shared", "/a"}),
		"if it is not the only one, all could wait for each other's permits, forever": nest([]string{"run", "--semaphore", "2", "/s2"}, []string{"run", "--semaphore", "2", "/s2"}),
		"this one would wait for itself":                                              nest([]string{"run", "--shared", "/a"}, []string{"run", "/a"}),
	} {
		code, _, err := run(t, srv.Addr(), args...)
		assert.EqualValues(t, outcome.Usage, code, "%q: %s", args, err)
		assert.Contains(t, err, "is held by a zklock that started this one: "+want+"\n")
	}
	code, out, err := run(t, srv.Addr(), nest([]string{"run", "/a"}, []string{"run", "/b/a"}, []string{"run", "/b"})...)
	assert.Zero(t, code, err)
	assert.Equal(t, "ran\n", out)
	i := zklockCommand(t, srv.Addr(), "run", "/a", "--", "true")
	i.Env = append(i.Env, `ZKLOCK_HELD=["/a/_c_00000000000000000000000000000000-lock-0000000000"]`)
	assert.Zero(t, i.start().code(), "a job that at(1) has started later runs under no lock: %s", i.err.String())
}
