package zktest

import "time"

// Snapshot is what an ensemble knew at one moment. Its fields can be stored and
// edited, as JSON too.
type Snapshot struct {
	Zxid     int64
	Nodes    map[string]Node // all but the root and /zookeeper
	Sessions []SavedSession
}

// SavedSession is a session in a Snapshot.
type SavedSession struct {
	ID      int64
	Timeout time.Duration
	Passwd  []byte
}
