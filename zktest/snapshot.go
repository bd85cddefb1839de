// SPDX-License-Identifier: Apache-2.0

package zktest

import "time"

// Snapshot is the state of an ensemble at one moment. Its fields can be stored and
// edited, even as JSON.
type Snapshot struct {
	Zxid     int64
	Nodes    map[string]Node // all nodes except the root and /zookeeper
	Sessions []SavedSession
}

// SavedSession is a session in a Snapshot.
type SavedSession struct {
	ID      int64
	Timeout time.Duration
	Passwd  []byte
}
