// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
	"github.com/zklock-go/zklock/slots"
)

// A path remembered 128 names, and the 129th pushed the first one out: a migration ran twice, with exit code 0.
//
//zklock:promise P10.9
func TestOnceIsOnceHoweverManyNamesThereAre(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	client := connect(t, srv)
	hold, err := client.Mutex("/l").Lock(t.Context())
	require.NoError(t, err)
	for i := range 134 {
		require.NoError(t, slots.Named(client, "/l", fmt.Sprint("migration-", i)).Mark(t.Context(), hold))
	}
	require.NoError(t, hold.Unlock(t.Context()))
	file := filepath.Join(t.TempDir(), "runs")
	migrate := func(i int) (int, string) {
		code, _, text := run(t, srv.Addr(), "run", "--once", fmt.Sprint("migration-", i), "/l", "--", "sh", "-c", `echo >>"$0" $1`, file, fmt.Sprint(i))
		return code, text
	}
	for _, i := range []int{134, 0, 6, 134} {
		code, text := migrate(i)
		assert.Zero(t, code, text)
	}
	assert.Equal(t, "134", content(t, file))

	hold, err = client.Mutex("/l").Lock(t.Context())
	require.NoError(t, err)
	for i := 135; i < 1000; i++ {
		require.NoError(t, slots.Named(client, "/l", fmt.Sprint("migration-", i)).Mark(t.Context(), hold))
	}
	require.NoError(t, hold.Unlock(t.Context()))
	code, text := migrate(1000)
	assert.EqualValues(t, outcome.NoRoom, code, text)
	assert.Contains(t, text, "zklock: open slot migration-1000 of /l: record of slots is full: it has marks of 1000 names: nothing was run: make room with zklock slots prune, or use another path\n")
	code, text = migrate(0)
	assert.Zero(t, code, text)
	assert.Equal(t, "134", content(t, file))

	code, out, text := run(t, srv.Addr(), "slots", "/l")
	assert.Zero(t, code, text)
	assert.Equal(t, 1001, strings.Count(out, "\n"))
	host, _ := os.Hostname()
	assert.Regexp(t, `\n-       migration-134  \d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d{4}  sh echo `+host+`:\d+\n`, out)
	code, out, text = run(t, srv.Addr(), "slots", "--json", "/l")
	assert.Zero(t, code, text)
	assert.Regexp(t, `(?m)^\{"slot":"migration-134","at":"[^"]*Z","by":"sh echo `+host+`:\d+"\}$`, out)
	code, out, text = run(t, srv.Addr(), "slots", "prune", "--older-than", "1h", "/l")
	assert.Zero(t, code, text)
	assert.Empty(t, out)
	code, out, text = run(t, srv.Addr(), "slots", "prune", "--older-than", "1ms", "/l")
	assert.Zero(t, code, text)
	assert.Equal(t, 1001, strings.Count(out, "\n"))
	code, text = migrate(1000)
	assert.Zero(t, code, text)
	for _, args := range [][]string{{"/l", "/m"}, {"prune", "/l"}, {"prune", "--older-than", "1h"}, {"--older-than", "1h", "/l"}, {"prune", "--older-than", "-1h", "/l"}, {"l"}} {
		code, _, text := run(t, srv.Addr(), append([]string{"slots"}, args...)...)
		assert.EqualValues(t, outcome.Usage, code, "%v: %s", args, text)
	}
}
