// SPDX-License-Identifier: Apache-2.0

//go:build linux

package family

import (
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestProcessesGetSignalsThatThisOneIgnores(t *testing.T) {
	if os.Getenv("FAMILY_TEST_IGNORING") == "" {
		signal.Ignore(syscall.SIGINT, syscall.SIGHUP)
		me := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$")
		me.Env = append(os.Environ(), "FAMILY_TEST_IGNORING=1")
		out, err := me.CombinedOutput()
		signal.Reset(syscall.SIGINT, syscall.SIGHUP)
		require.NoError(t, err, "%s", out)
		return
	}
	require.True(t, signal.Ignored(syscall.SIGINT))
	DefaultSignals()
	for _, name := range []string{"INT", "HUP"} {
		out, err := exec.CommandContext(t.Context(), "sh", "-c", "kill -"+name+" $$; echo ignored").CombinedOutput()
		require.Error(t, err)
		require.False(t, strings.Contains(string(out), "ignored"), name)
	}
}
