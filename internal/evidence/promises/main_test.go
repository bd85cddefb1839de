// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"flag"
	"os"
	"runtime"
	"runtime/debug"
	"testing"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if flag.Lookup("test.bench").Value.String() == "" {
		if flag.Lookup("test.memprofile").Value.String() == "" {
			runtime.MemProfileRate = 0
		}
		debug.SetGCPercent(800) // virtual time allocates much and retains little: this saves a fifth of the processor time
		if testing.Short() {
			runtime.GOMAXPROCS(1) // a second processor makes a bubble slower by a quarter; other packages' tests use it
		}
	}
	os.Exit(m.Run())
}
