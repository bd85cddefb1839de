package observe

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/outcome"
)

// reasons are looked through in order: a wait that was closed or has timed out can wrap another error as well.
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

// Reason says in one word why a call of package zklock has failed with err, for a metric's label:
// "locked", "deadlock", "evicted", "mismatch", "limit", "invalid", "closed", "not_connected",
// "timeout", "canceled", "lost", "no_auth", or "other".
func Reason(err error) string {
	for _, r := range reasons {
		if errors.Is(err, r.err) {
			return r.name
		}
	}
	return "other"
}
