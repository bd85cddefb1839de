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
	framePace    = 200 * time.Millisecond // the least time between two frames of a stream
	silence      = 15 * time.Second       // after which a stream says that it is there
	writeTime    = 10 * time.Second       // for a page to take a frame
	mostStreams  = 200
	longestQuery = 4 << 10
)

// streams send pages what they show, as server-sent events: the view that an address asks for, and then what changes in it.
type streams struct {
	board *board
	open  chan struct{} // has an element for each
}

func newStreams(b *board) *streams { return &streams{b, make(chan struct{}, mostStreams)} }

func (s *streams) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if len(r.URL.RawQuery) > longestQuery {
		http.Error(w, "the search is too long", http.StatusRequestURITooLong)
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

// lookFor returns what makes the view that a request asks for.
func (s *streams) lookFor(r *http.Request) func(now time.Time) view {
	q := r.URL.Query()
	text := strings.ToLower(strings.TrimSpace(q.Get("q")))
	if q.Has("lock") {
		return func(now time.Time) view { return s.board.oneLock(q.Get("lock"), text, now) }
	}
	return func(now time.Time) view { return s.board.overview(text, now) }
}

// page is a stream at work.
type page struct {
	out     http.ResponseWriter
	control *http.ResponseController
	diff    *difference
	look    func(now time.Time) view
}

// run sends frames until the page goes or ctx ends.
func (p *page) run(ctx context.Context, b *board) {
	for ctx.Err() == nil {
		changed := b.change() // before the look, so that no change is missed
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

// await waits for a change, or until again if that is a time.
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
	return p.control.SetWriteDeadline(time.Time{}) // else HTTP/2 ends the stream then, also if there is nothing to write
}

// pause waits and reports whether ctx has not ended meanwhile.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
