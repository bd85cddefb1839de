package zklock

import "time"

// poll follows the session of a bare connection. timeout is the session's.
func (r *requests) poll(timeout time.Duration) {
	// Both are owned by the client and end with its life; Close waits for them.
	r.calls.run(func() { r.link.Follow(r.life, r.conn, timeout) })
	r.calls.run(func() { r.pollServer(timeout) })
}

// pollServer takes the place of the client library's pings, which are not seen: it provides
// answered requests that the next write can prove.
func (r *requests) pollServer(timeout time.Duration) {
	tick := time.NewTicker(timeout / 4)
	defer tick.Stop()
	for {
		if s, _ := r.link.State(); s != nil {
			r.stat(r.life, s, "/")
		}
		select {
		case <-tick.C:
		case <-r.life.Done():
			return
		}
	}
}
