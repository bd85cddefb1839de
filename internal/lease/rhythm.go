package lease

import "time"

// NextBeat returns when to begin the next heartbeat, where the last one began at last and its
// touches were answered at touched. So a proof is never older than 0.55 of the timeout, which
// leaves 0.4 of it.
func (l *Lease) NextBeat(last, touched time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	reach := l.lag() + l.rtt + time.Millisecond // from a beat's touches to the first beat that can prove them
	if due := touched.Add(l.lag() + time.Millisecond).Sub(last); due < reach+l.timeout/32 {
		reach = max(reach, due) // the touches took longer than usual
	}
	next := last.Add(l.period(reach))
	if due, ok := l.due(last); ok && due.Before(next) {
		return due
	}
	return next
}

// due returns when the heartbeat after one that began at last is due because of what that one can prove, if it is: where the
// period has changed, that is less than the touches one period before. It must be called with mu held.
func (l *Lease) due(last time.Time) (time.Time, bool) {
	known, further := l.proven.Mono, time.Time{}
	for _, touch := range l.pairs {
		if ripe := touch.by.Add(l.lag()); !ripe.After(last) {
			known = touch.sent.Mono
		} else if touch.sent.Mono.Sub(known) >= l.timeout/64 { // else hardly anything is gained by another heartbeat
			further = ripe.Add(time.Millisecond)
			break
		}
	}
	due := known.Add(l.most())
	if further.IsZero() || due.Before(last) {
		return time.Time{}, false
	}
	if due.Before(further) {
		return further, true
	}
	return due, true
}

// most returns how old a proof may be when a heartbeat begins. It must be called with mu held.
func (l *Lease) most() time.Duration { return l.timeout*548/1000 - l.pause() - 4*l.rtt }

// period must be called with mu held.
func (l *Lease) period(reach time.Duration) time.Duration {
	most := l.most()
	if reach <= l.timeout/4 {
		return max(reach, min(l.timeout/4, most/2))
	}
	if 2*reach <= most {
		return reach
	}
	reach += l.timeout / 256 // so that what varies from beat to beat does not cost one more
	if reach*3/2 <= most {
		return reach / 2
	}
	return reach / 3
}

// Thin returns how much has to remain when a heartbeat begins though the one before should have
// proven more by now, so that it proves another touch before less than 0.35 of the timeout remains.
func (l *Lease) Thin() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.timeout*355/1000 + l.pause() + 4*l.rtt
}

// BetweenSyncs returns how long to wait after the first sync was answered before the second is sent.
func (l *Lease) BetweenSyncs() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pause()
}

// CanProve reports whether the timeout is long enough, for servers with this tick, to keep the session proven at all.
func (l *Lease) CanProve() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lag()+l.pause() <= l.timeout*3/4
}

// CanRest reports whether a lease that has run out is proven again soon enough, on the same connection,
// to leave a good part of the timeout. Otherwise it must not run out while the client is idle.
func (l *Lease) CanRest() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lag()+l.pause()+l.settling() <= l.timeout*3/4
}
