// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/zklock-go/zklock/internal/frames"
	"github.com/zklock-go/zklock/internal/lease"
)

// A race finds the server of one connection. If a server takes long, the race asks another one as well. The first server that
// answers becomes the connection's server, and the connections to the others are closed.
//
// Its first part is connected, which ends when one server is connected. Its second part is answered, which ends when one server has
// replied to the connection request. All methods except stop belong to the goroutine in which the client library connects.
type race struct {
	link    *Link
	network string
	timeout time.Duration // for the dialer
	term    time.Duration // the session timeout

	ctx     context.Context // done when the race is over
	stop    context.CancelFunc
	results chan result // received by the race; an attempt stops sending when its context is done

	chosen  string               // the client library's server
	isNew   bool                 // whether the client library has dialed it for the first time
	tried   []target             // all targets so far
	failed  []target             // those that have failed since they were last tried
	spare   []target             // other addresses of the names among them
	running []*attempt           // the attempts that have not failed
	begun   time.Time            // when the newest attempt began
	last    error                // of the attempt that failed last
	request []byte               // the connection request, in the second part
	asks    int64                // the session in the request; zero for a new one
	given   time.Duration        // how long a server may take to reply to the request
	until   map[target]time.Time // the deadlines of the replies
}

// maxAttempts is how many attempts of a race run at the same time.
const maxAttempts = 3

// A target is an address to dial.
type target struct {
	server  string // the address as it is listed, which its certificate must name
	address string // one of its addresses if it is a name, or empty if it is not resolved
}

// An attempt is a connection to one server.
type attempt struct {
	target
	ctx   context.Context // done when the attempt has failed or lost
	stop  context.CancelFunc
	conn  *serverConn   // nil until it is connected
	begun time.Time     // when it began to dial, or to wait for a reply
	sent  lease.Instant // when the connection request was sent
	data  []byte        // the beginning of the reply
	keep  func() bool   // keeps the connection open when ctx is done; false if it is too late
}

// A result is a report of an attempt. Exactly one of the last four fields is set.
type result struct {
	of     *attempt
	dialed time.Duration // how long the dialer took, with conn

	found []target // the addresses of a name, of which the attempt dials the first
	conn  net.Conn
	data  []byte
	err   error
}

func newRace(l *Link, network string, timeout time.Duration) *race {
	ctx, stop := context.WithCancel(context.Background())
	return &race{link: l, network: network, timeout: timeout, term: l.term(), ctx: ctx, stop: stop, results: make(chan result), until: map[target]time.Time{}}
}

// connected dials server, and other servers if that takes long. It returns the first attempt that is connected.
func (r *race) connected(server string) (*attempt, error) {
	var first *attempt
	r.chosen = server
	r.start(target{server: r.link.servers.first(server, r.term)})
	err := r.run(func(got result) bool {
		if got.conn != nil {
			first = r.won(got.of)
		}
		return first != nil
	})
	return first, err
}

// answered returns the first attempt to whose connection request a server has replied.
func (r *race) answered() (*attempt, error) {
	var first *attempt
	err := r.run(func(got result) bool {
		switch {
		case got.conn != nil:
			r.ask(got.of)
		case r.isTrusted(got.of) || frames.GreetingBegins(got.data, r.asks):
			first = r.won(got.of)
			first.data = got.data
		default:
			r.fail(got.of, errOtherSession)
		}
		return first != nil
	})
	return first, err
}

// errOtherSession is the error of a server that does not have the session, and cannot end it.
var errOtherSession = errors.New("server does not have the session")

// errSlow is returned if the client library must choose another server.
var errSlow = errors.New("no reply from the server in time")

// run handles the results of attempts until done returns true, and starts further attempts.
func (r *race) run(done func(result) bool) error {
	timer := time.NewTimer(r.patience())
	defer timer.Stop()
	for {
		select {
		case got := <-r.results:
			switch {
			case !slices.Contains(r.running, got.of): // it was stopped
				if got.conn != nil {
					got.conn.Close()
				}
			case got.err != nil:
				r.fail(got.of, got.err)
			case got.found != nil:
				r.resolved(got.of, got.found)
			default:
				r.take(got)
				if done(got) {
					return nil
				}
			}
			if failed := len(r.running) == 0; (failed || got.err != nil) && !r.another(failed) && failed {
				return r.last
			}
		case <-timer.C:
			switch {
			case r.another(false):
			case r.mayBeUnknown():
				return errSlow
			default:
				r.again()
			}
		case <-r.link.closing:
			r.stop()
			return errClosed
		case <-r.ctx.Done():
			return net.ErrClosed
		}
		timer.Reset(max(time.Until(r.begun.Add(r.patience())), r.term/50))
	}
}

// take takes the connection of an attempt, if that is its result.
func (r *race) take(got result) {
	if a := got.of; got.conn != nil {
		a.conn = newServerConn(a.server, got.conn)
		a.conn.dialed = got.dialed
		a.keep = context.AfterFunc(a.ctx, func() { a.conn.Close() })
	}
}

// resolved makes an attempt at a name an attempt at the name's first address. If it is made again, it goes to the same server.
func (r *race) resolved(a *attempt, found []target) {
	a.address = found[0].address
	r.tried = append(r.tried, a.target)
	r.link.login.know(a.server, len(found))
	r.spare = append(r.spare, slices.DeleteFunc(found, func(to target) bool { return slices.Contains(r.tried, to) })...)
}

// fail ends an attempt.
func (r *race) fail(a *attempt, why error) {
	r.last = why
	r.failed = append(r.failed, a.target)
	r.running = slices.DeleteFunc(r.running, func(other *attempt) bool { return other == a })
	a.stop()
}

// won ends all attempts except a.
func (r *race) won(a *attempt) *attempt {
	for _, other := range r.running {
		if other != a {
			other.stop()
			r.link.servers.lost(other.server)
		}
	}
	r.running = []*attempt{a}
	return a
}

// another starts another attempt if there is another server. failed means that none is running.
func (r *race) another(failed bool) bool {
	if !r.mayAdd() {
		return false
	}
	if len(r.spare) > 0 {
		next := r.spare[0]
		r.spare = r.spare[1:]
		r.start(next)
		return true
	}
	if server, ok := r.link.servers.other(r.tried, failed); ok {
		r.start(target{server: server})
		return true
	}
	// A reply can be lost inside the ensemble. To ask the only server again costs it little if nothing is encrypted.
	d := r.link.dialing
	if r.request != nil && d.Encrypt == nil && !d.IsOpaque && len(r.running) == 1 && time.Since(r.running[0].begun) >= r.term/3 && r.hasTime(r.running[0].target) {
		r.start(r.running[0].target)
		return true
	}
	return false
}

// again tries a server that has failed once more, while the race waits for another one. It may serve by now, for example because there is a
// leader again, and the other one may be frozen. Without a lease nothing is urgent, and a fleet must not come back all at once.
func (r *race) again() {
	if len(r.failed) > 0 && r.mayAdd() && r.link.left() > 0 {
		next := r.failed[0]
		r.failed = r.failed[1:]
		r.start(next)
	}
}

// mayAdd reports whether another attempt may start. Two requests for a new session would make two sessions.
func (r *race) mayAdd() bool {
	return len(r.running) < maxAttempts && (r.request == nil || r.asks != 0)
}

// mayBeUnknown reports whether the client library may know a server that this race does not, and that should be asked now.
func (r *race) mayBeUnknown() bool {
	return r.isNew && r.mayAdd() && (r.request == nil || r.link.left() > 0)
}

// patience returns how long the newest attempt may take before another server is asked as well. While the lease runs, what remains of
// it must be enough for another two servers that do not answer. A distant server needs more time.
func (r *race) patience() time.Duration {
	left, distance := r.link.left(), r.link.distance()
	switch {
	case left > 0:
		return max(min(left*2/5, r.term/3), 3*distance)
	case r.request == nil && len(r.spare) > 0:
		return 300 * time.Millisecond // as RFC 8305 recommends for the addresses of a name
	case r.request == nil:
		return time.Second
	}
	return r.term / 3
}

// start begins an attempt.
func (r *race) start(to target) {
	a := &attempt{target: to, begun: time.Now()}
	a.ctx, a.stop = context.WithCancel(r.ctx)
	r.tried, r.running, r.begun = append(r.tried, to), append(r.running, a), a.begun
	// Owned by the race; a.stop stops it, except for the program's dialer; nobody waits for it.
	go r.connect(a)
}

// maxDials is how many dials of a link run at the same time, with those that nobody waits for any more: the program's dialer may take
// longer than it should.
const maxDials = 8

// connect connects an attempt, and reports that.
func (r *race) connect(a *attempt) {
	select {
	case r.link.dials <- struct{}{}:
		defer func() { <-r.link.dials }()
	case <-a.ctx.Done():
		return
	}
	conn, dialed, err := r.dial(a)
	if failed := r.link.dialing.Failed; err != nil && failed != nil && a.ctx.Err() == nil {
		failed(a.server, err)
	}
	if err != nil {
		r.report(a, result{err: err})
	} else if !r.report(a, result{conn: conn, dialed: dialed}) {
		conn.Close()
	}
}

// report returns false if the attempt is over.
func (r *race) report(a *attempt, got result) bool {
	got.of = a
	select {
	case r.results <- got:
		return true
	case <-a.ctx.Done():
		return false
	}
}

// dial connects to a server, and returns how long the dialer took. Resolving its name and dialing have the dialer's timeout. The handshake of
// an encrypted connection has a whole session timeout: a server that is merely slow would otherwise begin it again and again.
func (r *race) dial(a *attempt) (net.Conn, time.Duration, error) {
	to := r.link.dialing
	address := cmp.Or(a.address, a.server)
	if to.Resolve != nil && a.address == "" {
		found, err := r.resolve(a)
		if err != nil {
			return nil, 0, err
		}
		address = found[0].address
		if len(found) > 1 && !r.report(a, result{found: found}) {
			return nil, 0, a.ctx.Err()
		}
	}
	timeout := r.timeout
	if to.IsOpaque && timeout > 0 {
		timeout = max(timeout, r.term/3)
	}
	began := time.Now()
	plain, err := to.Dial(r.network, address, timeout)
	dialed := time.Since(began)
	if err != nil || to.Encrypt == nil {
		return plain, dialed, err
	}
	ctx, cancel := context.WithTimeout(a.ctx, r.term)
	defer cancel()
	conn, err := to.Encrypt(ctx, a.server, plain)
	if err != nil {
		plain.Close()
	}
	return conn, dialed, err
}

// resolve returns the addresses of a server.
func (r *race) resolve(a *attempt) (found []target, err error) {
	host, port, err := net.SplitHostPort(a.server)
	if err != nil || net.ParseIP(host) != nil {
		return []target{{a.server, a.server}}, nil // the dialer reports a malformed address
	}
	ctx, cancel := context.WithTimeout(a.ctx, max(r.timeout, r.term/3))
	defer cancel()
	hosts, err := r.link.dialing.Resolve(ctx, host)
	if err != nil || len(hosts) == 0 {
		return nil, cmp.Or(err, fmt.Errorf("server %q has no address", a.server))
	}
	first := r.link.servers.turn(len(hosts))
	for _, host := range slices.Concat(hosts[first:], hosts[:first]) {
		found = append(found, target{a.server, net.JoinHostPort(host, port)})
	}
	return found, nil
}

// requests begins the second part of the race. timeout is the session timeout that the connection request asks for. A server may take
// as long as that to take a session over, because others are asked as well, and a third of it to create a session. The only server
// may always take as long.
func (r *race) requests(request []byte, timeout time.Duration) {
	r.request, r.given = request, timeout
	r.asks, _ = frames.SessionOf(request)
	if r.asks == 0 && (r.isNew || !r.isOnly()) {
		r.given = timeout / 3
	}
	r.given = max(r.given, time.Second)
	for _, a := range r.running {
		r.ask(a)
	}
	r.begun = time.Now()
}

// isOnly reports whether the race knows only one server.
func (r *race) isOnly() bool {
	return r.link.servers.isOne() && len(r.tried) <= 1 && len(r.spare) == 0
}

// hasTime reports whether a server may still reply.
func (r *race) hasTime(to target) bool { return time.Now().Before(r.until[to]) }

// ask sends the connection request to a server that is connected, and waits for the reply. A server that is asked again gets no more
// time: otherwise the race would last for as long as it does not answer.
func (r *race) ask(a *attempt) {
	a.begun, a.sent = time.Now(), r.link.Now()
	if r.until[a.target].IsZero() {
		r.until[a.target] = time.Now().Add(r.given)
	}
	a.conn.SetReadDeadline(r.until[a.target])
	a.conn.Write(r.request)
	least := 1
	if !r.isTrusted(a) {
		least = frames.GreetingHead
	}
	// Owned by the race; a.stop stops it; nobody waits for it.
	go func() {
		data := make([]byte, 4096)
		n, err := io.ReadAtLeast(a.conn, data, least)
		r.report(a, result{data: data[:n], err: err})
	}()
}

// isTrusted reports whether an attempt's server can end the session. One that the client library has dialed earlier, and that the race
// has chosen itself, cannot: it may belong to another ensemble by now.
func (r *race) isTrusted(a *attempt) bool {
	return r.asks == 0 || r.link.servers.hosts != nil || a.server == r.chosen
}
