// SPDX-License-Identifier: Apache-2.0

package zktest

import "time"

// stream is one direction of a follower's connection to its leader. Frames arrive in
// the order in which they were sent, each at least delay after it was sent. While the
// stream is closed, nothing arrives but nothing is lost: frames that were sent in the
// meantime arrive when it opens again, as with TCP.
type stream[F any] struct {
	delay  time.Duration
	closed bool
	frames []inFlight[F]
}

// inFlight is a frame and its time of arrival.
type inFlight[F any] struct {
	frame F
	due   time.Duration
}

// send adds a frame after those in flight.
func (w *stream[F]) send(f F, now time.Duration) {
	due := now + w.delay
	if n := len(w.frames); n > 0 {
		due = max(due, w.frames[n-1].due)
	}
	w.frames = append(w.frames, inFlight[F]{f, due})
}

// next returns when the first frame arrives, or never.
func (w *stream[F]) next() time.Duration {
	if w.closed || len(w.frames) == 0 {
		return never
	}
	return w.frames[0].due
}

// take removes and returns the first frame.
func (w *stream[F]) take() F {
	f := w.frames[0].frame
	w.frames[0] = inFlight[F]{}
	w.frames = w.frames[1:]
	if len(w.frames) == 0 {
		w.frames = nil
	}
	return f
}

// setDelay changes the delay of frames sent from now on. A shorter delay also applies to
// frames in flight.
func (w *stream[F]) setDelay(d, now time.Duration) {
	w.delay = d
	for i := range w.frames {
		w.frames[i].due = min(w.frames[i].due, now+d)
	}
}

// setClosed closes or opens the stream.
func (w *stream[F]) setClosed(closed bool, now time.Duration) {
	if w.closed && !closed {
		for i := range w.frames {
			w.frames[i].due = max(w.frames[i].due, now)
		}
	}
	w.closed = closed
}

// idle reports whether a frame sent now would arrive at once.
func (w *stream[F]) idle() bool { return !w.closed && w.delay == 0 && len(w.frames) == 0 }

// first returns when the first frame arrives for which matters returns true, or never.
func (w *stream[F]) first(matters func(F) bool) time.Duration {
	if w.closed {
		return never
	}
	for _, f := range w.frames {
		if matters(f.frame) {
			return f.due
		}
	}
	return never
}
