// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"time"
)

var (
	root   = flag.String("root", ".", "the module's directory")
	only   = flag.String("only", "", "change only the files and functions that match this pattern, as in `internal/queue/batch.go:contender.deleteAll`")
	own    = flag.Bool("own", false, "run only each package's own tests")
	budget = flag.Duration("budget", 0, "how long the tests of one package's mutations may take after the tests were built and were all run once; zero means no limit")
	seed   = flag.Uint64("seed", 1, "the seed of the order of the mutations, which decides which of them fit into the budget")
	long   = flag.Duration("timeout", 10*time.Minute, "how long the tests of one mutation may take; a mutation that takes longer is noticed")
)
