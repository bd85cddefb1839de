// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/cmd/zklock/internal/servers"
)

// The demo sells a few items to many workers. Each worker reads how many items are left, thinks, and writes one less: a
// read-modify-write, as in any program that uses a store without transactions.

// A kind says what happened in the sale.
type kind int

const (
	asks     kind = iota + 1 // the worker waits for the lock
	begins                   // the worker starts its work, holding the lock if there is one
	sells                    // the worker sells one item
	ends                     // the worker ends its work and releases the lock
	soldOut                  // the worker finds that no items are left
	crashes                  // the worker crashes during its work
	isCutOff                 // the worker is cut off from all servers during its work
	isTold                   // the worker learns that its lock is lost
	isBack                   // the worker can reach the servers again
)

var kindNames = [...]string{"", "waits for the lock", "holds", "sells", "releases the lock", "finds it sold out", "CRASHES while holding", "IS CUT OFF while holding", "learns that its lock is lost", "reconnects"}

func (k kind) String() string { return kindNames[k] }

type event struct {
	at     time.Duration // since the start of the sale
	worker int
	kind   kind
	node   string // the lock's node; set if kind is begins
	token  int64
	left   int // remaining items; set if kind is begins or sells
}

// recording is the list of events of a sale, in order.
type recording struct {
	start time.Time
	each  func(event) // called with every event, in order; may be nil

	mu     sync.Mutex
	events []event // guarded by mu
}

func (r *recording) note(e event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e.at = time.Since(r.start)
	r.events = append(r.events, e)
	// Called with mu held, so that the calls are in order too.
	if r.each != nil {
		r.each(e)
	}
}

func (r *recording) soFar() []event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.events[:len(r.events):len(r.events)]
}

// shop stores the number of items. Each of its operations is atomic; a sequence of two is not.
type shop struct {
	mu     sync.Mutex // guards the fields below
	left   int
	sold   int
	newest int64 // largest token so far
}

var errStaleToken = errors.New("stale token: a newer one was used before")

func (s *shop) look() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left
}

// sell writes the number of items that are left. It rejects a token that is smaller than the largest one so far.
func (s *shop) sell(left int, token int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if token < s.newest {
		return errStaleToken
	}
	s.left, s.newest = left, token
	s.sold++
	return nil
}

func (s *shop) soldSoFar() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sold
}

// sale is one run of the demo.
type sale struct {
	shop *shop
	log  *recording

	mu     sync.Mutex
	faults []fault // guarded by mu: the faults still to come
}

// fault is injected into the holder once afterSold items have been sold.
type fault struct {
	afterSold int
	kind      kind
}

func newSale(items int) *sale {
	return &sale{shop: &shop{left: items}, log: &recording{start: time.Now()}}
}

// due returns the fault to inject into the current holder, or zero if there is none.
func (s *sale) due() kind {
	sold := s.shop.soldSoFar()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.faults) == 0 || sold < s.faults[0].afterSold {
		return 0
	}
	k := s.faults[0].kind
	s.faults = s.faults[1:]
	return k
}

func think() { time.Sleep(40*time.Millisecond + rand.N(30*time.Millisecond)) }

// openUnlocked runs the sale without a lock until everything is sold.
func (s *sale) openUnlocked(ctx context.Context, workers int) {
	var all sync.WaitGroup
	for id := range workers {
		// Owned by this call, which waits; ends when everything is sold.
		all.Go(func() {
			for {
				left := s.shop.look()
				if ctx.Err() != nil {
					return
				}
				if left <= 0 {
					s.log.note(event{worker: id, kind: soldOut})
					return
				}
				s.log.note(event{worker: id, kind: begins, left: left})
				think()
				s.shop.sell(left-1, 0)
				s.log.note(event{worker: id, kind: sells, left: left - 1})
				s.log.note(event{worker: id, kind: ends})
			}
		})
	}
	all.Wait()
}

// open runs the sale with a lock until everything is sold.
func (s *sale) open(ctx context.Context, workers []*worker, path string) error {
	var all sync.WaitGroup
	errs := make([]error, len(workers))
	for i, w := range workers {
		// Owned by this call, which waits; ends when everything is sold or with ctx.
		all.Go(func() { errs[i] = w.orders(ctx, s, path) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// worker has its own connection and session, like a separate process.
type worker struct {
	id     int
	wire   *wire
	client *zklock.Client
}

func hire(ctx context.Context, id int, server *servers.Flags, opts zklock.Options) (*worker, error) {
	w := &worker{id: id, wire: newWire()}
	opts.Dialer = w.wire.dial
	opts.Label = fmt.Sprintf("demo worker %d", id+1)
	var err error
	w.client, err = zklock.Connect(ctx, []string{server.Address()}, &opts)
	return w, err
}

func (w *worker) orders(ctx context.Context, s *sale, path string) error {
	lock := w.client.Mutex(path)
	for {
		s.log.note(event{worker: w.id, kind: asks})
		hold, err := lock.Lock(ctx)
		if err != nil {
			return err
		}
		left := s.shop.look()
		s.log.note(event{worker: w.id, kind: begins, node: hold.Node(), token: hold.Token(), left: left})
		if left == 0 {
			s.log.note(event{worker: w.id, kind: soldOut})
			return w.release(ctx, s, hold)
		}
		if err := w.order(ctx, s, hold, left); err != nil {
			return err
		}
		if crashed := w.wire.isSevered(); crashed {
			return nil
		}
	}
}

// order sells one item, unless a fault is due.
func (w *worker) order(ctx context.Context, s *sale, hold *zklock.Hold, left int) error {
	think()
	switch s.due() {
	case crashes:
		s.log.note(event{worker: w.id, kind: crashes})
		w.wire.sever()
		w.client.Close() // frees the client's resources; it can no longer reach a server
		return nil
	case isCutOff:
		s.log.note(event{worker: w.id, kind: isCutOff})
		w.wire.cut()
		<-hold.Context().Done() // a real worker would stop its work here
		s.log.note(event{worker: w.id, kind: isTold})
		return w.reconnects(ctx, s)
	}
	if hold.Check() != nil {
		s.log.note(event{worker: w.id, kind: isTold})
		return nil
	}
	if err := s.shop.sell(left-1, hold.Token()); err != nil {
		return err
	}
	s.log.note(event{worker: w.id, kind: sells, left: left - 1})
	return w.release(ctx, s, hold)
}

func (w *worker) release(ctx context.Context, s *sale, hold *zklock.Hold) error {
	s.log.note(event{worker: w.id, kind: ends})
	if err := hold.Unlock(ctx); err != nil && !errors.Is(err, zklock.ErrLost) {
		return err
	}
	return nil
}

// reconnects ends the worker's partition after half a session timeout.
func (w *worker) reconnects(ctx context.Context, s *sale) error {
	timer := time.NewTimer(w.client.SessionTimeout() / 2)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	w.wire.heal()
	s.log.note(event{worker: w.id, kind: isBack})
	return w.isConnected(ctx)
}

// isConnected waits until the worker is connected: before that, it does not wait for the lock.
func (w *worker) isConnected(ctx context.Context) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !w.client.Stats().Connected {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
