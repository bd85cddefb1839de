package history

import "time"

// checkDelay is the promise of a lock-delay: for that long after the node of a holder has gone that was not released, nobody
// is granted. Readers and what another client has held are not followed by a delay, nor does that client know of one.
func (b *book) checkDelay(l *lock) {
	for _, op := range l.ops {
		life := b.claim[op]
		if !b.delays(op) || op.Shared || op.Outer != 0 || life == nil || life.downgraded < never || !forfeited(op, life) {
			continue
		}
		for _, next := range l.ops {
			if next == op || next.Outer != 0 || !b.delays(next) || b.epoch(next) != b.epoch(op) {
				continue
			}
			if after := next.Return - life.removed; after >= 0 && after < b.lim.Delay {
				b.report("delay", l.path, next.Return, []*Op{op, next}, "granted %v after %s was gone (%s), which nobody had released", after, life.path, life.how)
			}
		}
	}
}

// delays reports whether op is a grant that a lock-delay precedes and follows.
func (b *book) delays(op *Op) bool {
	return op.Outcome == Granted && op.Recipe != Semaphore && op.Client != b.lim.Stranger
}

// forfeited reports whether op's hold has ended in another way than by its own or its client's release.
func forfeited(op *Op, life *life) bool {
	switch life.how {
	case expired, foreign:
		return true
	case own:
		return op.Lost
	}
	return false
}

// excludesUntil returns how long others can be refused because of a life: as long as it stands, and where its lock may have been
// lost, for the lock-delay from when somebody has looked since.
func (b *book) excludesUntil(l *lock, life *life) time.Duration {
	if b.lim.Delay == 0 || !b.maybeForfeited(life) {
		return life.removed
	}
	seen := never
	for _, op := range l.ops {
		if (op.Outcome == Refused || op.Outcome == Granted) && op.Client != b.lim.Stranger && op.Return >= life.removed && op != life.op {
			seen = min(seen, op.Return)
		}
	}
	if seen == never {
		return never
	}
	return seen + b.lim.Delay
}

// maybeForfeited reports whether a lock-delay may follow a life: also that of one who was granted and did not learn of it, or who
// knows nothing of delays.
func (b *book) maybeForfeited(life *life) bool {
	if life.op == nil || life.client == b.lim.Stranger {
		return life.how != own || life.client == b.lim.Stranger
	}
	return !life.op.Clean || forfeited(life.op, life)
}
