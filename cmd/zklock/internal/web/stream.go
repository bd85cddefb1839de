// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

const (
	framePace    = 200 * time.Millisecond // least time between two frames of a stream
	silence      = 15 * time.Second       // time without a frame after which a stream sends a keep-alive comment
	writeTime    = 10 * time.Second       // time limit for sending a frame to a page
	mostStreams  = 200
	longestQuery = 4 << 10
)

// streams is the handler that sends server-sent events to pages: first the view that the request selects, and then its changes.
type streams struct {
	board *board
	open  chan struct{} // contains one element for each open stream
}

func newStreams(b *board) *streams { return &streams{b, make(chan struct{}, mostStreams)} }

func (s *streams) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if len(r.URL.RawQuery) > longestQuery {
		http.Error(w, "the search text is too long", http.StatusRequestURITooLong)
		return
	}
	select {
	case s.open <- struct{}{}:
		defer func() { <-s.open }()
	default:
		http.Error(w, "too many pages are open", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	p := &page{out: w, control: http.NewResponseController(w), diff: newDifference(), look: s.lookFor(r)}
	p.run(r.Context(), s.board)
}

// lookFor returns a function that computes the view that a request selects.
func (s *streams) lookFor(r *http.Request) func(now time.Time) view {
	q := r.URL.Query()
	text := strings.ToLower(strings.TrimSpace(q.Get("q")))
	if q.Has("lock") {
		return func(now time.Time) view { return s.board.oneLock(q.Get("lock"), text, now) }
	}
	return func(now time.Time) view { return s.board.overview(text, now) }
}

// page is an open stream.
type page struct {
	out     http.ResponseWriter
	control *http.ResponseController
	diff    *difference
	look    func(now time.Time) view
}

// run sends frames until the page closes the connection or ctx is done.
func (p *page) run(ctx context.Context, b *board) {
	for ctx.Err() == nil {
		changed := b.change() // before the view is computed, so that no change is missed
		now := time.Now()
		v := p.look(now)
		f, err := p.diff.of(v, now)
		if err == nil && f != nil {
			err = p.send(f)
		}
		if err != nil || !pause(ctx, framePace) {
			return
		}
		if err := p.await(ctx, changed, v.again); err != nil {
			return
		}
	}
}

// await waits for a change, or until again if that is not zero.
func (p *page) await(ctx context.Context, changed <-chan struct{}, again time.Time) error {
	var due <-chan time.Time
	if !again.IsZero() {
		due = time.After(time.Until(again))
	}
	alive := time.NewTicker(silence)
	defer alive.Stop()
	for {
		select {
		case <-changed:
			return nil
		case <-due:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-alive.C:
			if err := p.write(":\n\n"); err != nil {
				return err
			}
		}
	}
}

func (p *page) send(f *frame) error {
	data, err := json.Marshal(f)
	if err != nil {
		return err
	}
	return p.write(fmt.Sprintf("data: %s\n\n", data))
}

func (p *page) write(text string) error {
	if err := p.control.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
		return err
	}
	if _, err := p.out.Write([]byte(text)); err != nil {
		return err
	}
	if err := p.control.Flush(); err != nil {
		return err
	}
	return p.control.SetWriteDeadline(time.Time{}) // otherwise HTTP/2 would end the stream at the deadline, even if there is nothing to write
}
