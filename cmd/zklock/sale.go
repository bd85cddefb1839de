package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/zklock-go/zklock"
)

// The demo's subject: a few items are sold to many workers, each of which looks how
// many are left, thinks, and writes one less: a read-modify-write as in any program
// over a store without transactions.

// A kind is what happened in the sale.
type kind int

const (
	asks     kind = iota + 1 // for the lock
	begins                   // to work: holds the lock, if there is one
	sells                    // one item
	ends                     // its work, and gives the lock back
	soldOut                  // found that nothing is left
	crashes                  // in the middle of its work
	isCutOff                 // from all servers, in the middle of its work
	isTold                   // that its lock is lost
	isBack                   // in touch again
)

var kindNames = [...]string{"", "asks for the lock", "holds", "sells", "lets go", "finds all sold", "CRASHES while it holds", "IS CUT OFF while it holds", "is told that the lock is lost", "is back"}

func (k kind) String() string { return kindNames[k] }

type event struct {
	at     time.Duration // since the sale opened
	worker int
	kind   kind
	node   string // of the lock, when it begins
	token  int64
	left   int // items, when it begins or sells
}

// recording is what happened, in order.
type recording struct {
	start time.Time
	each  func(event) // told of every event, in order; may be nil

	mu     sync.Mutex
	events []event // guarded by mu
}

func (r *recording) note(e event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e.at = time.Since(r.start)
	r.events = append(r.events, e)
	// Under the lock, so that what is told is in order too.
	if r.each != nil {
		r.each(e)
	}
}

func (r *recording) soFar() []event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.events[:len(r.events):len(r.events)]
}

// shop has the items. Each of its operations is atomic, two in a row are not.
type shop struct {
	mu     sync.Mutex // guards what follows
	left   int
	sold   int
	newest int64 // token
}

var errStaleToken = errors.New("a newer token was here")

func (s *shop) look() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left
}

// sell writes how many are left. A token older than one that was here before is refused.
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

// sale is one run with some workers.
type sale struct {
	shop *shop
	log  *recording

	mu     sync.Mutex
	faults []fault // guarded by mu: still to come
}

// fault befalls the holder when so many items have been sold.
type fault struct {
	afterSold int
	kind      kind
}

func newSale(items int) *sale {
	return &sale{shop: &shop{left: items}, log: &recording{start: time.Now()}}
}

// due returns the fault that befalls the present holder, zero for none.
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

// openUnlocked lets workers order until all is sold, with nothing to keep them apart.
func (s *sale) openUnlocked(ctx context.Context, workers int) {
	var all sync.WaitGroup
	for id := range workers {
		// Owned by this call, which waits; ends when all is sold.
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

// open lets workers order until all is sold, each with the lock.
func (s *sale) open(ctx context.Context, workers []*worker, path string) error {
	var all sync.WaitGroup
	errs := make([]error, len(workers))
	for i, w := range workers {
		// Owned by this call, which waits; ends when all is sold or with ctx.
		all.Go(func() { errs[i] = w.orders(ctx, s, path) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// worker has a connection and a session of its own, as a process has.
type worker struct {
	id     int
	wire   *wire
	client *zklock.Client
}

func hire(ctx context.Context, id int, server *serverFlags, opts zklock.Options) (*worker, error) {
	w := &worker{id: id, wire: newWire()}
	opts.Dialer = w.wire.dial
	opts.Label = fmt.Sprintf("demo worker %d", id+1)
	var err error
	w.client, err = zklock.Connect(ctx, []string{server.address()}, &opts)
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
			return w.letGo(ctx, s, hold)
		}
		if err := w.order(ctx, s, hold, left); err != nil {
			return err
		}
		if crashed := w.wire.isSevered(); crashed {
			return nil
		}
	}
}

// order buys one item, unless a fault comes between.
func (w *worker) order(ctx context.Context, s *sale, hold *zklock.Hold, left int) error {
	think()
	switch s.due() {
	case crashes:
		s.log.note(event{worker: w.id, kind: crashes})
		w.wire.sever()
		w.client.Close() // of what this process still has: it reaches no server
		return nil
	case isCutOff:
		s.log.note(event{worker: w.id, kind: isCutOff})
		w.wire.cut()
		<-hold.Context().Done() // its work would end here
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
	return w.letGo(ctx, s, hold)
}

func (w *worker) letGo(ctx context.Context, s *sale, hold *zklock.Hold) error {
	s.log.note(event{worker: w.id, kind: ends})
	if err := hold.Unlock(ctx); err != nil && !errors.Is(err, zklock.ErrLost) {
		return err
	}
	return nil
}

// reconnects brings the worker back after a while.
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
	return nil
}
