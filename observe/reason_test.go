// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/observe"
)

//zklock:promise P19.7
func TestEveryErrorOfAnAttemptHasItsReason(t *testing.T) {
	for err, reason := range map[error]string{
		zklock.ErrLocked: "locked", zklock.ErrDeadlock: "deadlock", zklock.ErrEvicted: "evicted", zklock.ErrMismatch: "mismatch",
		zklock.ErrLimit: "limit", zklock.ErrInvalid: "invalid", zklock.ErrClosed: "closed", zklock.ErrNotConnected: "not_connected",
		context.DeadlineExceeded: "timeout", context.Canceled: "canceled", zklock.ErrLost: "lost", zk.ErrNoAuth: "no_auth", errors.New("x"): "other",
	} {
		require.Equal(t, reason, observe.Reason(fmt.Errorf("zklock: lock /x: %w", err)))
	}
	require.Equal(t, "timeout", observe.Reason(fmt.Errorf("%w (last error: %w)", context.DeadlineExceeded, zk.ErrNoAuth)), "why it ended, not what it met")
}

// What adapters put into labels needs no quotes anywhere.
func TestKindsAndReasonsAreWords(t *testing.T) {
	word := regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`)
	for k := observe.Queued; k <= observe.Refused; k++ {
		require.Regexp(t, word, k.String())
	}
	require.Equal(t, "unknown", observe.Kind(0).String())
}
