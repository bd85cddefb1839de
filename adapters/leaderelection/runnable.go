// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"context"
	"errors"

	"github.com/zklock-go/zklock"
)

// Runnable is work for a controller-runtime manager. It runs while this process leads:
//
//	mgr.Add(&leaderelection.Runnable{Election: client.Election("/leaders/billing"), Work: bill})
//
// The manager needs no leader election, and its other work runs in every process. Several
// Runnables with different elections spread their work over the fleet.
type Runnable struct {
	Election *zklock.Election
	// Value is shown to others while this process leads.
	Value []byte
	// Work runs while this process leads. Its context is the hold's (zklock.HoldAt returns the
	// hold). It is canceled before anyone else leads, or when the manager stops. If the
	// leadership is lost, or is about to be lost and zklock.Options.FailStop is set, the process
	// campaigns again, and Work is called again when it leads. The previous result of Work is then
	// ignored.
	Work func(ctx context.Context) error
}

// Start campaigns and calls Work while this process leads. If Work returns while
// the process still leads, Start releases the leadership and returns Work's error. If ctx is
// done first, Start waits for Work and returns nil.
func (r *Runnable) Start(ctx context.Context) error {
	err := r.Election.Run(ctx, r.Value, func(leading context.Context) error {
		return done{r.Work(leading)} // Run returns this, unless the leadership was lost
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

// done is the error with which Work ends a Runnable. outcome is the result of Work, which may be nil.
type done struct{ outcome error }

func (d done) Error() string { return "the work has ended" }

// NeedLeaderElection returns false, because a Runnable has its own election.
func (r *Runnable) NeedLeaderElection() bool { return false }
