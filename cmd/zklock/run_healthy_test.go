//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/zktest"
)

// Whatever time a job takes and however long it has queued: where nothing fails, none is
// told to end. The sessions are as short as the servers' ticks let them be, and usual ones.
func TestRunEndsNoHealthyJob(t *testing.T) {
	for _, c := range []struct{ tick, session, work string }{
		{"2s", "4s", "2"},
		{"2s", "10s", "2.7"},
	} {
		t.Run(c.session, func(t *testing.T) {
			t.Parallel()
			if testing.Short() {
				t.Skip("it takes half a minute")
			}
			tick, err := time.ParseDuration(c.tick)
			require.NoError(t, err)
			srv := zktest.Run(t, zktest.Options{TickTime: tick})
			log := filepath.Join(t.TempDir(), "log")
			jobs := make([]*invocation, 12)
			for n := range jobs {
				jobs[n] = zklockCommand(t, srv.Addr(), "run", "--session-timeout", c.session, "/l", "--",
					"sh", "-c", `echo begin >>"$0"; sleep $1; echo end >>"$0"`, log, c.work).start()
			}
			for _, j := range jobs {
				assert.Zero(t, j.code(), j.err.String())
				assert.Empty(t, j.err.String())
			}
			done, err := os.ReadFile(log)
			require.NoError(t, err)
			assert.Equal(t, strings.Repeat("begin\nend\n", len(jobs)), string(done))
		})
	}
}
