// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
)

// A session that comes when the time is over is too late, whatever the library noticed first. If it says more, that is shown.
func TestASessionThatComesTooLateIsNoSilentServer(t *testing.T) {
	answered := &dialer{trials: map[string]*trial{"a:1": {first: []byte{0, 0, 0, 37}}}}
	late := context.DeadlineExceeded
	for err, want := range map[error]string{
		late:                                   "no session within 1s: the time was too short",
		fmt.Errorf("connect to a:1: %w", late): "no session within 1s: the time was too short",
		fmt.Errorf("connect to a:1: %w", fmt.Errorf("%w (last error: %w)", late, net.ErrClosed)):    "no session within 1s: the time was too short",
		fmt.Errorf("connect to a:1: %w", fmt.Errorf("%w (last error: %w)", late, errors.New("no"))): "connect to a:1: no answer in time (last error: no)",
	} {
		assert.Equal(t, want, outcome.Explain(answered.failure(t.Context(), time.Second, err)))
	}
}

// The program ends when no server can be reached. Its log must name the last one by then.
func TestTheLogNamesEachServerBeforeTheProgramGivesUp(t *testing.T) {
	refusing, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	refusing.Close()
	address := refusing.Addr().String()
	var log bytes.Buffer
	logged := ""
	d := &dialer{life: t.Context(), log: slog.New(slog.NewTextHandler(&log, nil)), trials: map[string]*trial{}, last: map[string]error{}}
	d.servers, d.failed, d.allFail = 1, map[string]bool{}, func(error) { logged = log.String() }
	_, err = d.dial("tcp", address, time.Second)
	require.Error(t, err)
	assert.Contains(t, logged, `msg="cannot connect" server=`+address)
}
