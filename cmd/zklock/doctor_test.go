// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/cmd/zklock/internal/command"
	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/lab"
	"github.com/zklock-go/zklock/operate"
	"github.com/zklock-go/zklock/zktest"
)

// TestDoctorsReportIsGolden compares the reports on a sound ensemble and on one with many defects with testdata/doctor.txt.
// Run it with -args -update to write the file.
func TestDoctorsReportIsGolden(t *testing.T) {
	text := ""
	for _, o := range []zktest.Options{
		{Servers: 3, Flavor: zktest.ZooKeeper39},
		lab.With(zktest.Options{Servers: 3, TickTimes: []time.Duration{0, 8 * time.Second}, NoContainers: true}, lab.Options{ForgetSessions: true, VoidChecks: true}),
	} {
		o.Latency = func(*rand.Rand) time.Duration { return 600 * time.Microsecond }
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Start(t, o)
			r, err := operate.Examine(t.Context(), srv.Addrs(), &zklock.Options{Dialer: srv.Dial})
			require.NoError(t, err)
			text += command.ReportText(r) + "\n"
		})
	}
	golden := filepath.Join("testdata", "doctor.txt")
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(text), 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	assert.Equal(t, string(want), text)
}

func TestDoctorsExitCodeSaysWhetherTheServersAreFit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		servers zktest.Options
		args    []string
		code    outcome.Verdict
	}{
		{zktest.Options{Flavor: zktest.ZooKeeper39}, []string{"--strict"}, outcome.Done},
		{zktest.Options{NoContainers: true}, nil, outcome.Done},
		{zktest.Options{NoContainers: true}, []string{"--strict"}, command.CodeWarned},
		{lab.With(zktest.Options{}, lab.Options{VoidChecks: true}), nil, command.CodeUnfit},
		{lab.With(zktest.Options{}, lab.Options{VoidChecks: true}), []string{"--strict", "--json"}, command.CodeUnfit},
		{zktest.Options{TickTimes: []time.Duration{6 * time.Second}}, []string{"--tick-time", "2s"}, command.CodeUnfit},
		{zktest.Options{}, []string{"relative"}, outcome.Usage},
		{zktest.Options{}, []string{"--session-timeout", "-1s"}, outcome.Usage},
		{zktest.Options{}, []string{"/a", "/b"}, outcome.Usage},
		{zktest.Options{}, []string{"/locks/app"}, outcome.Done},
	} {
		srv := zktest.Run(t, c.servers)
		code, out, err := run(t, srv.Addr(), append([]string{"doctor"}, c.args...)...)
		assert.EqualValues(t, c.code, code, "%v: %s%s", c.args, out, err)
		assert.Equal(t, c.code == outcome.Usage, err != "", err)
		assert.Equal(t, c.code == outcome.Usage, out == "")
		assert.Empty(t, srv.Tree())
	}
}

func TestDoctorPrintsJSON(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t, zktest.Options{Flavor: zktest.ZooKeeper39})
	code, out, err := run(t, srv.Addr(), "doctor", "--json")
	require.Zero(t, code, err)
	var r struct {
		OK             bool
		SessionTimeout float64 `json:"session_timeout_ms"`
		Servers        []struct {
			Mode     string
			TickTime float64 `json:"tick_time_ms"`
			Write    any     `json:"write_ms"`
		}
		Checks []struct{ Status string }
	}
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	assert.True(t, r.OK)
	assert.EqualValues(t, 10000, r.SessionTimeout)
	require.Len(t, r.Servers, 1)
	assert.Equal(t, "standalone", r.Servers[0].Mode)
	assert.EqualValues(t, 2000, r.Servers[0].TickTime)
	assert.NotNil(t, r.Servers[0].Write)
	for _, c := range r.Checks {
		assert.Equal(t, "ok", c.Status, c)
	}
}

func TestDoctorSaysThatNoServerCanBeReached(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l.Close()
	code, out, _ := run(t, l.Addr().String(), "doctor")
	assert.EqualValues(t, command.CodeUnfit, code)
	assert.Contains(t, out, "FAIL  reach: "+l.Addr().String()+" cannot be reached")
}
