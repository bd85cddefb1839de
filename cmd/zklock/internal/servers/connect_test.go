// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

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
