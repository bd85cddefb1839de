package lease

import "time"

// NextBeat returns when to begin the next heartbeat, where the last one began at last and its
// touches were answered at touched. So what a transaction would prove is never older than 0.55
// of the timeout, which leaves 0.4 of it.
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

// due returns when the heartbeat after one that began at last is due because of what that one can
// bring up to the leader, if it is: where the period has changed, that is less than the touches one
// period before. It must be called with mu held.
func (l *Lease) due(last time.Time) (time.Time, bool) {
	if l.run == nil {
		return time.Time{}, false
	}
	known, further := l.run.heard.Mono, time.Time{}
	if len(l.run.upstream) > 0 {
		known = l.run.upstream[len(l.run.upstream)-1].sent.Mono
	}
	for _, touch := range l.run.pairs {
		if ripe := touch.by.Add(l.lag()); !ripe.After(last) {
			known = touch.sent.Mono
		} else if touch.sent.Mono.Sub(known) >= l.spacing() { // else hardly anything is gained by another heartbeat
			further = ripe.Add(time.Millisecond)
			break
		}
	}
	due := known.Add(l.most())
	switch {
	case further.IsZero():
		return time.Time{}, false
	case due.Before(further):
		return further, true
	}
	return due, true
}

// spacing returns how much newer touches must be to be worth another heartbeat. Each heartbeat touches as well, so it
// bounds how many follow one another where none of them leaves what NextBeat is to leave. It must be called with mu held.
func (l *Lease) spacing() time.Duration {
	if l.isShort() {
		return l.coarse()
	}
	return l.timeout / 64
}

// isShort reports whether the timeout is too short for the tick to leave what NextBeat is to leave.
func (l *Lease) isShort() bool {
	return l.halfTick() > l.timeout/4 && l.lag()+l.rtt+l.timeout/32 > l.most()
}

// coarse is how far heartbeats are apart then: a half of what remains beyond what is Fresh is given up for fewer.
func (l *Lease) coarse() time.Duration {
	spare := l.timeout*825/1000 - l.pause() - l.lag() - 4*l.rtt
	return max(l.timeout/64, min(l.timeout/12, spare/2))
}

// most returns how old what can be proven may be when a heartbeat begins. It must be called with mu
// held.
func (l *Lease) most() time.Duration { return l.timeout*548/1000 - l.pause() - 4*l.rtt }

// period must be called with mu held.
func (l *Lease) period(reach time.Duration) time.Duration {
	most := l.most()
	if l.isShort() {
		reach += l.timeout / 256 // as below
		return reach / (reach/l.coarse() + 1)
	}
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

// BetweenSyncs returns how long to wait after the first sync was answered before the second is sent.
func (l *Lease) BetweenSyncs() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pause()
}

// NextQuorum returns how long it is until a quorum transaction proves a good deal more than is proven. It
// reports false if none does before the servers have answered another heartbeat.
func (l *Lease) NextQuorum() (time.Duration, bool) {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.run == nil {
		return 0, false
	}
	touch, at, ok := l.run.ready(now)
	if !ok || touch.Mono.Sub(l.proven.Mono) < l.timeout/64 {
		return 0, false
	}
	return max(0, at.Sub(now.Mono)), true
}

// IsAmple reports whether as much remains as a hold has at every moment of a healthy network, or as
// much as can be had now.
func (l *Lease) IsAmple() bool {
	if !l.Fresh() {
		return false
	}
	if l.Remaining() > l.Term()*41/100 {
		return true
	}
	_, more := l.NextQuorum()
	return !more
}

// IsFading reports whether the run would have a gap if the next sync came with the next heartbeat.
func (l *Lease) IsFading() bool {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.run == nil {
		return false
	}
	reach := l.lag() + l.rtt + time.Millisecond
	return l.leftOf(l.run.heard, now) <= l.period(reach)+l.timeout/16
}

// Patience returns for how long a server may answer nothing before another one is asked. Where an answer has taken long of
// late, another server is no faster: whatever is asked of it would be lost with the connection again and again.
func (l *Lease) Patience() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.patience()
}

// patience must be called with mu held.
func (l *Lease) patience() time.Duration { return max(l.timeout/5, 2*l.slow) }

// Leave takes that a server is left which has answered nothing for as long as Patience said. The next one is given longer.
func (l *Lease) Leave() {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waited(l.patience(), now)
}

// CanProve reports whether the timeout is long enough, for servers with this tick, to keep the session proven at all.
func (l *Lease) CanProve() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lag()+l.pause() <= l.timeout*3/4
}
