package zklock_test

import (
	"flag"
	"os"
	"runtime/debug"
	"testing"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if flag.Lookup("test.bench").Value.String() == "" {
		debug.SetGCPercent(800) // virtual time makes much garbage and keeps little: a fifth of the processor time
	}
	os.Exit(m.Run())
}
