// SPDX-License-Identifier: Apache-2.0

package zkcontainer

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// doomedEnv makes TestNothingOutlivesAProcessThatIsKilled the process that is killed.
const doomedEnv = "ZKCONTAINER_DOOMED"

func TestNothingOutlivesAProcessThatIsKilled(t *testing.T) {
	if os.Getenv(doomedEnv) != "" {
		RunEnsemble(t.Context(), t, 1)
		e, err := Find()
		require.NoError(t, err)
		fmt.Printf("run %s\n", e.run)
		select {} // until it is killed
	}
	t.Parallel()
	e := available(t.Context(), t, Options{})
	run := startDoomed(t)
	runs, err := e.runs(t.Context())
	require.NoError(t, err)
	require.True(t, runs[run.id], "its server must be running")
	require.NoError(t, run.process.Kill())
	err = poll(t.Context(), "the clean-up of "+run.id, func() bool {
		runs, err := e.runs(t.Context())
		return err == nil && !runs[run.id]
	})
	assert.NoError(t, err)
}

// doomed is another process with a server.
type doomed struct {
	id      string
	process *os.Process
}

func startDoomed(t *testing.T, env ...string) doomed {
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestNothingOutlivesAProcessThatIsKilled$", "-test.v")
	cmd.Env = append(append(os.Environ(), doomedEnv+"=1", requireEnv+"=1"), env...)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Wait() }) // returns an error, because the process was killed
	var said []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		said = append(said, lines.Text())
		if id, ok := strings.CutPrefix(lines.Text(), "run "); ok {
			return doomed{id, cmd.Process}
		}
	}
	require.FailNow(t, "the other process did not start a server", "%s", strings.Join(said, "\n"))
	return doomed{}
}

func TestAMissingImageIsAnError(t *testing.T) {
	t.Parallel()
	e := available(t.Context(), t, Options{})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err := e.Fetch(ctx, "zkcontainer.invalid/no/such:image")
	assert.ErrorContains(t, err, "zkcontainer.invalid/no/such:image")
}
