// SPDX-License-Identifier: Apache-2.0

package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/cmd/zklock/internal/locks"
	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/bridge"
	"github.com/zklock-go/zklock/internal/escape"
	"github.com/zklock-go/zklock/operate"
)

// question asks a quorum, before the time for waiting is over, who has the lock. A job that gives up must not say that another
// one holds if nobody does, or if no server answers any more.
type question struct {
	asked time.Time
	done  chan struct{} // closed when there is an answer or none came in time
	queue *operate.Queue
	own   int64 // the session of this process
	err   error
}

// longestQuestion is how long before the end of the waiting time the question is asked, unless ten round trips take longer.
const longestQuestion = time.Second

// askLater returns a question that is asked before ctx is done, or nil if ctx has no deadline.
func (j *Job) askLater(ctx context.Context, client *zklock.Client) *question {
	end, ok := ctx.Deadline()
	if !ok {
		return nil
	}
	q := &question{done: make(chan struct{})}
	q.asked = end.Add(-min(max(longestQuestion, 10*j.Server.Contact.RoundTrip()), time.Until(end)/2))
	// Owned by the acquire, whose ctx ends it.
	go func() {
		defer close(q.done)
		select {
		case <-time.After(time.Until(q.asked)):
			q.queue, q.err = j.look(ctx, client)
			q.own = sessionOf(client)
		case <-ctx.Done():
			q.err = context.Cause(ctx)
		}
	}()
	return q
}

// look returns the lock's queue. If zklock may not read the nodes of others, the queue has the first contender only.
func (j *Job) look(ctx context.Context, client *zklock.Client) (*operate.Queue, error) {
	queue, err := operate.Inspect(ctx, client, j.Path)
	if !errors.Is(err, zk.ErrNoAuth) {
		return queue, err
	}
	first, err := client.Election(j.Path).Leader(ctx)
	switch {
	case errors.Is(err, zk.ErrNoAuth): // it is not ours
		first.Holds = true
	case err != nil:
		return nil, err
	}
	return &operate.Queue{Path: j.Path, Contenders: []zklock.Contender{first}}, nil
}

// sessionOf returns the client's session, or zero if it has none.
func sessionOf(client *zklock.Client) int64 {
	if s, _ := bridge.ClientOf(client).Requests.Link.State(); s != nil {
		return s.ID
	}
	return 0
}

// gaveUp returns the error of a job whose time for waiting is over. The lock counts as held only if the answer shows that
// others hold it. A job that no host runs must not look like a job that another host runs.
func (j *Job) gaveUp(q *question) error {
	<-q.done
	within := fmt.Sprintf("%s within %v: ", j.not(), j.waiting.wait)
	if q.err == nil {
		if why := j.heldByOthers(q); why != "" {
			return outcome.NotAcquired.Of(errors.New(within + why))
		}
	}
	contact := j.Server.Contact
	trip, silent, unanswered := contact.RoundTrip(), time.Since(contact.LastAnswer()), time.Since(q.asked)
	switch {
	case silent >= max(longestQuestion/2, 3*trip):
		return outcome.Unavailable.Errorf("%sno server has answered for %v", within, outcome.Roundly(silent))
	case q.err != nil && unanswered >= max(longestQuestion/2, 10*trip):
		return outcome.Unavailable.Errorf("%sno quorum of the servers answers", within)
	}
	return outcome.Unavailable.Errorf("%sthe time was too short: a server takes %v to answer", within, outcome.Roundly(trip))
}

// heldByOthers says who holds the lock if others prevent this process from holding it, and otherwise returns "".
func (j *Job) heldByOthers(q *question) string {
	if locks.IsDelayed(q.queue) {
		return escape.Short(j.Path, 512) + " is not free: its holder has crashed, and its lock-delay has not passed"
	}
	var first *zklock.Contender // that holds
	held, isBlocked := 0, false
	for i, who := range q.queue.Contenders {
		if who.Session == q.own {
			break // the others are behind
		}
		if who.Holds {
			held++
			first = cmp.Or(first, &q.queue.Contenders[i])
		}
		// A writer makes readers wait, and so does a contender that waits for permits.
		isBlocked = isBlocked || j.Shared && who.Kind != operate.KindRead || j.Permits > 0 && !who.Holds
	}
	if first == nil || j.Shared && !isBlocked || j.Permits > held && !isBlocked {
		return ""
	}
	return j.holding(*first)
}
