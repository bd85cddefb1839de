// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/outcome"
)

// reasons are tried in order: the error of a wait that ended because of Close or a timeout can also
// wrap another error.
var reasons = []struct {
	err  error
	name string
}{
	{outcome.ErrLocked, "locked"},
	{outcome.ErrDeadlock, "deadlock"},
	{outcome.ErrEvicted, "evicted"},
	{outcome.ErrMismatch, "mismatch"},
	{outcome.ErrLimit, "limit"},
	{outcome.ErrInvalid, "invalid"},
	{outcome.ErrClosed, "closed"},
	{outcome.ErrNotConnected, "not_connected"},
	{context.DeadlineExceeded, "timeout"},
	{context.Canceled, "canceled"},
	{outcome.ErrLost, "lost"},
	{zk.ErrNoAuth, "no_auth"},
}

// Reason returns one word for why a call of package zklock failed with err, for use as a metric
// label: "locked", "deadlock", "evicted", "mismatch", "limit", "invalid", "closed",
// "not_connected", "timeout", "canceled", "lost", "no_auth", or "other".
func Reason(err error) string {
	for _, r := range reasons {
		if errors.Is(err, r.err) {
			return r.name
		}
	}
	return "other"
}
