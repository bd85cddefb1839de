// SPDX-License-Identifier: Apache-2.0

package lease

import "time"

// HasRoomFor reports whether a transfer that occupies the connection for d can begin now. Afterwards, enough of the lease remains for
// the heartbeat that waited for the transfer. If the network is so slow that a proof never leaves as much, HasRoomFor is true right
// after a proof. While no node is kept, nothing proves the session, so HasRoomFor is true.
func (l *Lease) HasRoomFor(d time.Duration) bool {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.run == nil || !l.run.sender.proves {
		return true
	}
	left := l.leftOf(l.proven, now)
	return left <= 0 || left >= min(l.timeout*36/100+d, l.newest(l.replies.distance(now.Mono, l.timeout)))
}

// newest returns what remains right after a proof if each reply takes that long. It must be called with mu held.
func (l *Lease) newest(reply time.Duration) time.Duration {
	return l.timeout*93/100 - l.lag() - l.pause() - 4*reply
}
