package leaderelection

import (
	"context"
	"errors"

	"github.com/zklock-go/zklock"
)

// Runnable is work for a manager of controller-runtime that runs while this process leads:
//
//	mgr.Add(&leaderelection.Runnable{Election: client.Election("/leaders/billing", nil), Work: bill})
//
// The manager needs no leader election of its own, and its other work runs in every
// process. Several Runnables with elections of their own spread their work over the fleet.
type Runnable struct {
	Election *zklock.Election
	// Value is what others see of this member while it leads.
	Value []byte
	// Work runs under the leadership. Its context is the hold's (zklock.HoldOf finds it) and
	// ends before anybody else leads, or when the manager stops. If the leadership is lost, or
	// is about to be and zklock.Options.FailStop is set, the member stands again and Work is
	// called again when it leads; what it has returned does not matter then.
	Work func(ctx context.Context) error
}

// Start stands for election and does the work, until ctx ends or Work returns while it
// leads: it returns Work's error then, and the place is given up. If ctx ends first, it
// returns nil when Work has returned.
func (r *Runnable) Start(ctx context.Context) error {
	err := r.Election.Run(ctx, r.Value, func(leading context.Context) error {
		return done{r.Work(leading)} // unless the leadership was lost, this is what Run returns
	})
	var d done
	switch {
	case ctx.Err() != nil:
		return nil
	case errors.As(err, &d):
		return d.outcome
	}
	return err
}

// done is why a Runnable stands no more: its work has ended, with an error or with nil.
type done struct{ outcome error }

func (d done) Error() string { return "the work has ended" }

// NeedLeaderElection returns false: the election is the Runnable's own.
func (r *Runnable) NeedLeaderElection() bool { return false }
