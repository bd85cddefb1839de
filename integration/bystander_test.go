package integration

import (
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/evidence/history"
)

const (
	// restless is how often the bystander writes.
	restless = 100 * time.Millisecond
	// standstill is for how long a write is not answered when servers count as standing still: holds and sessions end by then.
	standstill    = session
	standingStill = "servers stand still"
)

// watchServers writes again and again by a client library alone, in a session of its own. While servers answer none of its
// writes, nobody can be granted anything: a disk that stands still for seconds is a fault, though no test has made it.
func (w *workload) watchServers(t *testing.T, servers []string) {
	conn, _ := dial(t, session, servers...)
	node, err := conn.Create("/bystander-", nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	write := func() bool {
		_, err := conn.Set(node, nil, -1)
		return err == nil || errors.Is(err, zk.ErrNoNode) // which says that its session has ended
	}
	w.done.Add(1)
	// Owned by w: ends when w.stop is closed. finish waits for it.
	go func() {
		defer w.done.Done()
		since := w.rec.Now() // when the first write was asked for that is not answered
		for over := false; !over; {
			answered := write()
			over = w.stopped()
			now := w.rec.Now()
			if (answered || over) && now-since > standstill {
				w.rec.Fault(history.Window{From: since, To: now, Kind: standingStill})
			}
			if answered {
				since = now
			}
			select {
			case <-time.After(restless):
			case <-w.stop:
			}
		}
	}()
}
