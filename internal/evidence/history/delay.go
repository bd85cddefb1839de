// SPDX-License-Identifier: Apache-2.0

package history

import (
	"slices"
	"time"
)

// checkDelay checks the lock-delay: if a holder's node is deleted without a release, no one is granted the lock for that long.
// There is no delay after a reader or after a hold of the Stranger, which has no delay itself.
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
				b.report("delay", l.path, next.Return, []*Op{op, next}, "granted %v after %s was deleted (%s) without a release", after, life.path, life.how)
			}
		}
	}
}

// delays reports whether the lock-delay applies to op.
func (b *book) delays(op *Op) bool {
	return op.Outcome == Granted && op.Recipe != Semaphore && op.Client != b.lim.Stranger
}

// forfeited reports whether op's hold ended without a release by its holder or its client.
func forfeited(op *Op, life *life) bool {
	switch life.how {
	case expired, foreign:
		return true
	case own:
		return op.Lost && op.Group == 0 // if one of several locks is lost, the others are released
	}
	return false
}

// excludesUntil returns until when a try can be refused because of a node. This is until its deletion. If its lock may have been
// lost, the lock-delay follows, which begins when a contender first finds nobody else in its way after the deletion. A call under the same
// hold has no contender.
func (b *book) excludesUntil(l *lock, life *life) time.Duration {
	longest := max(b.lim.Delay, b.lim.LongestDelay)
	if longest == 0 || !b.maybeForfeited(l, life) {
		return life.removed
	}
	seen := never
	for _, op := range l.ops {
		// A try that was called before the deletion may have been refused before, and be kept by an observer since.
		reads := op.Outcome == Refused && op.Call >= life.removed && !l.isBlocked(op) || op.Outcome == Granted && op.Return >= life.removed
		if reads && op.Outer == 0 && op.Client != b.lim.Stranger && op != life.op {
			seen = min(seen, op.Return)
		}
	}
	if seen == never {
		return never
	}
	return seen + longest
}

// isBlocked reports whether a node was in the way of a try during the whole call, so that the try was refused whether or not a lock-delay
// ran.
func (l *lock) isBlocked(op *Op) bool {
	return slices.ContainsFunc(l.lives, func(other *life) bool { return stood(other, op) && !(op.Shared && other.shared) })
}

// delayedAgain returns when a reader last had to wait for another lock-delay before until, or zero. A reader that waits for a delay also
// waits for the one that a reader behind it records, for a writer of the Stranger between both.
func (b *book) delayedAgain(l *lock, reader *life, until time.Duration) (at time.Duration) {
	if !reader.shared || max(b.lim.Delay, b.lim.LongestDelay) == 0 {
		return 0
	}
	for _, writer := range l.lives {
		if writer.client == b.lim.Stranger && !writer.shared && writer.czxid > reader.czxid && writer.removed < until && l.isWaitedForByReader(writer) {
			at = max(at, writer.removed)
		}
	}
	return at
}

// isWaitedForByReader reports whether a reader was behind a writer when the writer's node was deleted.
func (l *lock) isWaitedForByReader(writer *life) bool {
	return slices.ContainsFunc(l.lives, func(x *life) bool {
		return x.shared && x.czxid > writer.czxid && x.created <= writer.removed && x.removed > writer.removed
	})
}

// maybeForfeited reports whether a lock-delay may follow a node. This includes a node whose owner was granted the lock without
// being notified, and nodes of a client without lock-delays.
func (b *book) maybeForfeited(l *lock, life *life) bool {
	switch {
	case life.client == b.lim.Stranger:
		return true
	case life.op == nil:
		return life.how != own || l.wasLostBefore(life)
	}
	return !life.op.Clean || forfeited(life.op, life)
}

// wasLostBefore reports whether a call that created the node was granted the lock and lost it before it returned.
func (l *lock) wasLostBefore(life *life) bool {
	return slices.ContainsFunc(l.ops, func(op *Op) bool {
		return op.Outcome == Failed && op.Lost && op.Client == life.client && op.Call <= life.created && life.created <= op.Return
	})
}
