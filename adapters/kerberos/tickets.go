// SPDX-License-Identifier: Apache-2.0

package kerberos

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/adapters/kerberos/internal/krb5"
)

// tickets are the tickets of a login: the first one, from which the others come, and one for each
// service. At most one question about each ticket is under way, and all logins that need the ticket
// wait for its answer. So an answer that comes too late for one connection serves the next.
type tickets struct {
	kdc       *krb5.Client
	source    source
	serviceOf func(server string) (string, error)

	life context.Context // until close
	end  context.CancelFunc
	wake chan struct{} // a server was added, or a question has ended
	part float64       // of a ticket's life: see land. Programs that were started together ask the KDC at different times
	runs sync.WaitGroup

	mu       sync.Mutex // guards the fields below
	closed   bool
	keeping  bool // keep was started
	first    slot
	services map[string]*slot
}

// A slot has a ticket and what is known about getting the next one.
type slot struct {
	get    func(ctx context.Context) (*krb5.Ticket, error)
	ticket *krb5.Ticket // nil if there is none
	got    time.Time    // when the ticket came
	flight *flight      // the question that is under way, or nil
	due    time.Time    // when to ask for another ticket
	failed time.Time    // when the last question failed
	err    error        // its error
}

// A flight is a question about a ticket. The fields are set before done is closed.
type flight struct {
	done   chan struct{}
	ticket *krb5.Ticket
	err    error
}

const (
	// flightLimit is how long the KDCs have for all answers that are necessary for a ticket.
	flightLimit = 40 * time.Second
	// poll is how often the tickets are checked, because timers stand still while a machine is suspended.
	poll = 30 * time.Second
	// soonest is the shortest time between two questions about a ticket that nobody waits for.
	soonest = time.Second
	// refusalLasts is how long a login repeats a refusal without asking the KDC, which may lock a
	// principal after too many wrong keys.
	refusalLasts = 10 * time.Second
	// fresh is how old a ticket may be for a server's rejection to be final: an older one may have been
	// made with a former key of the server.
	fresh = 10 * time.Second
	// refusalPause is after how long a refused ticket is asked for again, if nobody waits for it.
	refusalPause = 5 * time.Minute
)

// errClosed is the error of a login after Close.
var errClosed = fmt.Errorf("%w: the login is closed", zk.ErrAuthFailed)

func newTickets(kdc *krb5.Client, s source, serviceOf func(string) (string, error)) *tickets {
	t := &tickets{kdc: kdc, source: s, serviceOf: serviceOf, wake: make(chan struct{}, 1), part: 0.5 - 0.1*rand.Float64(), services: map[string]*slot{}}
	t.life, t.end = context.WithCancel(context.Background())
	t.first.get = func(ctx context.Context) (*krb5.Ticket, error) { return s.first(ctx, kdc) }
	return t
}

// close stops all goroutines and waits for them.
func (t *tickets) close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.end()
	t.runs.Wait()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.first.ticket, t.services = nil, nil
}

// prepare adds servers whose tickets are to be kept. It does not wait.
func (t *tickets) prepare(servers []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	t.startKeeping()
	// Owned by the program, whose Options.Host it calls; life stops it between two calls; close does not wait for it.
	go t.addServers(servers)
}

// addServers adds the services of servers. It tries again those whose name cannot be found yet.
func (t *tickets) addServers(servers []string) {
	for {
		servers = slices.DeleteFunc(servers, func(server string) bool { return t.addServer(server) == nil })
		if len(servers) == 0 {
			return
		}
		timer := time.NewTimer(poll)
		select {
		case <-timer.C:
		case <-t.life.Done():
			timer.Stop()
			return
		}
	}
}

func (t *tickets) addServer(server string) error {
	var service string
	err := guarded(func() (err error) {
		service, err = t.serviceOf(server)
		return err
	})
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil && !t.closed {
		t.service(service)
		t.poke()
	}
	return err
}

// poke wakes keep.
func (t *tickets) poke() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// startKeeping starts keep once. It must be called with mu held.
func (t *tickets) startKeeping() {
	if !t.keeping {
		t.keeping = true
		t.runs.Go(t.keep) // owned by the login; life stops it; close waits for it
	}
}

// keep asks for tickets when they are due.
func (t *tickets) keep() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-t.wake:
		case <-t.life.Done():
			return
		}
		timer.Reset(t.renew())
	}
}

// renew asks for the tickets that are due. It returns when to call it again.
func (t *tickets) renew() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	now, next := now(), poll
	for _, s := range t.all() {
		if !now.Before(s.due) && !t.closed {
			t.ask(s)
			continue // its end wakes keep
		}
		next = min(next, s.due.Sub(now))
	}
	return next
}

// all returns the slots whose tickets are to be kept. It must be called with mu held.
func (t *tickets) all() []*slot {
	all := slices.Collect(maps.Values(t.services))
	if t.first.ticket != nil {
		all = append(all, &t.first)
	}
	return all
}

// renewAll makes the tickets due that end before the first one: from that one, others can be made that
// last longer. It must be called with mu held.
func (t *tickets) renewAll() {
	for _, s := range t.services {
		if s.ticket != nil && s.ticket.End.Before(t.first.ticket.End) {
			s.due = time.Time{}
		}
	}
}

// now returns the time without the monotonic clock, which stands still while a machine is suspended.
func now() time.Time { return time.Now().Round(0) }

// service returns the slot of a service. It must be called with mu held.
func (t *tickets) service(name string) *slot {
	s := t.services[name]
	if s == nil {
		s = &slot{get: func(ctx context.Context) (*krb5.Ticket, error) { return t.getService(ctx, strings.Split(name, "/")) }}
		t.services[name] = s
	}
	return s
}

// ask starts a question about a ticket, unless one is under way. It must be called with mu held, and
// not after close.
func (t *tickets) ask(s *slot) *flight {
	if s.flight != nil {
		return s.flight
	}
	f := &flight{done: make(chan struct{})}
	s.flight = f
	// Owned by the login; life or its time limit stops it; close waits for it.
	t.runs.Go(func() {
		ctx, cancel := context.WithTimeout(t.life, flightLimit)
		defer cancel()
		f.err = guarded(func() (err error) {
			f.ticket, err = s.get(ctx)
			return err
		})
		t.mu.Lock()
		defer t.mu.Unlock()
		s.land(f, t.part)
		if s == &t.first && f.err == nil {
			t.renewAll()
		}
		close(f.done)
		t.poke()
	})
	return f
}

// land records the end of a question. Another ticket is due after this part of the ticket's life.
func (s *slot) land(f *flight, part float64) {
	s.flight = nil
	now := now()
	if f.err == nil {
		s.ticket, s.got, s.err = f.ticket, now, nil
		s.due = now.Add(max(time.Duration(float64(s.ticket.End.Sub(now))*part), soonest))
		return
	}
	s.err, s.failed = f.err, now
	pause := poll
	if isRefusal(f.err) {
		pause = refusalPause
	}
	if ticket := s.valid(); ticket != nil {
		pause = min(pause, max(ticket.End.Sub(now)/10, soonest))
	}
	s.due = now.Add(pause)
}

// isRefused reports whether the KDC has refused the ticket just now.
func (s *slot) isRefused() bool { return isRefusal(s.err) && within(s.failed, refusalLasts) }

// within reports whether t is less than d away, in the past or, if the clock was set back, in the future.
func within(t time.Time, d time.Duration) bool { return now().Sub(t).Abs() < d }

// valid returns the slot's ticket if it has not ended, or nil.
func (s *slot) valid() *krb5.Ticket {
	if s.ticket == nil || !s.ticket.End.After(now()) {
		return nil
	}
	return s.ticket
}

// wait waits for the answer.
func (f *flight) wait(ctx context.Context) (*krb5.Ticket, error) {
	select {
	case <-f.done:
		return f.ticket, f.err
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", krb5.ErrNoAnswer, context.Cause(ctx))
	}
}

// ticketFor returns a ticket for a service: the one that the login has, or a new one from the KDC. It
// returns when ctx is done, but the question to the KDC continues.
func (t *tickets) ticketFor(ctx context.Context, service string) (*krb5.Ticket, error) {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return nil, errClosed
	}
	t.startKeeping()
	s := t.service(service)
	if ticket := s.valid(); ticket != nil {
		t.mu.Unlock()
		return ticket, nil
	}
	if s.isRefused() {
		defer t.mu.Unlock()
		return nil, explain(s.err)
	}
	f := t.ask(s)
	t.mu.Unlock()
	ticket, err := f.wait(ctx)
	if t.life.Err() != nil {
		return nil, errClosed
	}
	return ticket, explain(err)
}

// reject records that a server has rejected a ticket. It reports whether another ticket may be accepted,
// which the login then gets: the server may have another key since this one was made.
func (t *tickets) reject(service string, ticket *krb5.Ticket) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.services[service]
	if s == nil || s.ticket == ticket && within(s.got, fresh) {
		return false
	}
	if s.ticket == ticket && s.flight == nil {
		s.due = time.Time{}
		t.poke()
	}
	return true
}

// ofService are the codes of a KDC's errors that have nothing to do with the first ticket.
var ofService = []int32{krb5.ServiceExpired, krb5.ServiceUnknown, krb5.PolicyRefuses, krb5.NoEncryptionType, krb5.ServiceRevoked}

// getService gets a ticket for a service. If the KDC does not accept the first ticket, for example
// because its own key was replaced, getService gets another first ticket once.
func (t *tickets) getService(ctx context.Context, name []string) (*krb5.Ticket, error) {
	first, err := t.firstTicket(ctx, nil)
	if err != nil {
		return nil, err
	}
	ticket, err := t.kdc.Service(ctx, first, name)
	var refusal *krb5.KDCError
	if err == nil || errors.Is(err, krb5.ErrNoAnswer) || errors.As(err, &refusal) && slices.Contains(ofService, refusal.Code) {
		return ticket, err
	}
	another, failure := t.firstTicket(ctx, first)
	switch {
	case failure != nil:
		return nil, failure
	case another.Equal(first): // from a credential cache
		return nil, err
	}
	return t.kdc.Service(ctx, another, name)
}

// firstTicket returns the first ticket, which is not the one that was rejected. If another one is
// due, it is preferred.
func (t *tickets) firstTicket(ctx context.Context, rejected *krb5.Ticket) (*krb5.Ticket, error) {
	t.mu.Lock()
	s := &t.first
	ticket := s.valid()
	if ticket == rejected {
		ticket = nil
	}
	switch {
	case t.closed:
		defer t.mu.Unlock()
		return nil, errClosed
	case ticket != nil && now().Before(s.due):
		defer t.mu.Unlock()
		return ticket, nil
	case ticket == nil && s.isRefused():
		defer t.mu.Unlock()
		return nil, s.err
	}
	f := t.ask(s)
	t.mu.Unlock()
	another, err := f.wait(ctx)
	if err != nil && ticket != nil {
		return ticket, nil
	}
	return another, err
}

// guarded calls fn. A panic becomes a refusal: what fn works on comes from other hosts.
func guarded(fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: panic: %v", zk.ErrAuthFailed, p)
		}
	}()
	return fn()
}

// passing are the codes of a KDC's errors that may pass, or that another ticket remedies. All other
// errors of a KDC are refusals.
var passing = []int32{
	krb5.ServiceUnavailable, krb5.GenericError, krb5.TicketExpired, krb5.TicketNotYetValid, krb5.TicketRevoked, krb5.Repeated,
}

// isRefusal reports whether an error of getting a ticket is final unless somebody changes something.
func isRefusal(err error) bool {
	var refusal *krb5.KDCError
	if errors.As(err, &refusal) {
		return !slices.Contains(passing, refusal.Code)
	}
	return errors.Is(err, krb5.ErrKey) || errors.Is(err, krb5.ErrNoKDC) || errors.Is(err, krb5.ErrClocks) || errors.Is(err, zk.ErrAuthFailed)
}

// hints say in an administrator's words why there is no ticket.
var hints = map[int32]string{
	krb5.ClientUnknown:    "the KDC does not know the client's principal",
	krb5.ServiceUnknown:   "the KDC does not know the server's principal: see Options.Host and Options.Service, and zklock.Hooks.HostProvider if you use Attach",
	krb5.WrongKey:         wrongKey,
	krb5.BadIntegrity:     wrongKey,
	krb5.ClockSkew:        clocksDiffer,
	krb5.CannotPostdate:   clocksDiffer,
	krb5.NeverValid:       clocksDiffer,
	krb5.NoEncryptionType: "the KDC and the client have no encryption type in common; the client supports those of AES",
	krb5.ClientRevoked:    "the client's principal is locked",
	krb5.ClientExpired:    "the client's principal has expired",
	krb5.PasswordExpired:  "the client's password has expired",
	krb5.TicketExpired:    "the ticket has expired",
	krb5.PreauthRequired:  otherProof,
	krb5.NoSuchProof:      otherProof,
	krb5.WrongRealm:       "the client's principal is in another realm",
	krb5.PolicyRefuses:    "the KDC's policy refuses it",
}

const (
	wrongKey     = "the password or the keytab's key is wrong"
	otherProof   = "the KDC requires a proof other than a time stamp, which is not supported"
	clocksDiffer = "the clocks of this host and the KDC differ by more than the KDC allows"
)

// explain adds a hint to an error of getting a ticket. A refusal wraps zk.ErrAuthFailed; everything
// else may pass.
func explain(err error) error {
	if err == nil || errors.Is(err, zk.ErrAuthFailed) {
		return err
	}
	hint := ""
	var refusal *krb5.KDCError
	switch {
	case errors.As(err, &refusal):
		hint = hints[refusal.Code]
	case errors.Is(err, krb5.ErrKey):
		hint = wrongKey
	case errors.Is(err, krb5.ErrClocks):
		hint = clocksDiffer
	}
	if hint != "" {
		err = fmt.Errorf("%s: %w", hint, err)
	}
	if isRefusal(err) {
		return fmt.Errorf("%w: %w", zk.ErrAuthFailed, err)
	}
	return err
}
