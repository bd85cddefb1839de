// SPDX-License-Identifier: Apache-2.0

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
	// writeEvery is the interval of the bystander's writes.
	writeEvery = 100 * time.Millisecond
	// pauseAfter is how long a write must wait for its reply before the servers count as paused. Holds and sessions end by then.
	pauseAfter = session
	// paused is the kind of a recorded pause.
	paused = "servers paused"
)

// watchServers writes repeatedly with the bare client library, in its own session. While the servers do not answer the
// writes, no lock can be granted. It records such a pause as a fault: for example, a disk can block for seconds without a
// test's doing.
func (w *workload) watchServers(t *testing.T, servers []string) {
	conn, _ := dial(t, session, servers...)
	node, err := conn.Create("/bystander-", nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	write := func() bool {
		_, err := conn.Set(node, nil, -1)
		return err == nil || errors.Is(err, zk.ErrNoNode) // also a reply: the session has ended, and its node with it
	}
	w.done.Add(1)
	// Owned by w: ends when w.stop is closed. finish waits for it.
	go func() {
		defer w.done.Done()
		since := w.rec.Now() // when the oldest write without a reply was sent
		for over := false; !over; {
			answered := write()
			over = w.stopped()
			now := w.rec.Now()
			if (answered || over) && now-since > pauseAfter {
				w.rec.Fault(history.Window{From: since, To: now, Kind: paused})
			}
			if answered {
				since = now
			}
			select {
			case <-time.After(writeEvery):
			case <-w.stop:
			}
		}
	}()
}
