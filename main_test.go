package zklock_test

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
		debug.SetGCPercent(800) // virtual time makes much garbage and keeps little: a fifth of the processor time
		if testing.Short() {
			runtime.GOMAXPROCS(1) // a bubble waits more for a second processor than it gains: another quarter; the tests of other packages have it
		}
	}
	os.Exit(m.Run())
}
