// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/escape"
)

// dialer connects to servers, over TLS if secure is set. Unlike the client library, which only accepts a time limit, it can
// be stopped during a dial.
type dialer struct {
	life   context.Context
	abort  context.CancelFunc // ends life: no more connections are made
	secure *secure            // nil without TLS
	log    *slog.Logger

	resolve func(ctx context.Context, host string) (addresses []string, err error)
	stays   bool // dials of a name do not begin with another address each time, so that a report is about one server

	mu      sync.Mutex
	dials   map[string]int    // guarded by mu: how often each server was dialed, by its address
	trials  map[string]*trial // guarded by mu: what happened at each server, by its address
	failed  map[string]bool   // guarded by mu: the servers that could not be reached; nil after the first success, and without allFail
	last    map[string]error  // guarded by mu: the outcome of the last dial of each server
	servers int               // number of servers
	allFail func(error)       // called when no server can be reached; may be nil

	contact *Contact
}

// dial is a zk.Dialer.
func (d *dialer) dial(network, address string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(d.life, timeout)
	defer cancel()
	d.log.Info("connecting", "server", address, "tls", d.secure != nil)
	t := d.begin(address)
	conn, err := d.connect(ctx, network, address, t)
	if err != nil {
		d.log.Info("cannot connect", "server", address, "err", outcome.Explain(err)) // before note, which may end the program
	}
	d.note(address, t, err)
	if err != nil {
		return nil, inWords(err)
	}
	d.log.Info("connected", "server", address, "address", conn.RemoteAddr())
	return d.contact.watch(&tried{conn, d, address, t}), nil
}

func (d *dialer) connect(ctx context.Context, network, address string, t *trial) (net.Conn, error) {
	conn, err := d.open(ctx, network, address)
	if err != nil || d.secure == nil {
		return conn, err
	}
	d.accepted(t)
	secure := tls.Client(conn, d.secure.configFor(address))
	if err := secure.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, noHandshake{err}
	}
	return secure, nil
}

// open connects to a server. If its name is that of several servers, each dial begins with another one: a server that accepts
// connections may not answer.
func (d *dialer) open(ctx context.Context, network, address string) (conn net.Conn, err error) {
	hosts, port := d.hosts(ctx, address)
	if len(hosts) == 0 {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	for i, host := range hosts {
		if conn, err = d.openOne(ctx, network, net.JoinHostPort(host, port), len(hosts)-i); err == nil {
			return conn, nil
		}
	}
	return nil, err
}

// openOne connects to one of the addresses that are left, and leaves time for the others.
func (d *dialer) openOne(ctx context.Context, network, address string, left int) (net.Conn, error) {
	if until, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(until)/time.Duration(left))
		defer cancel()
	}
	return (&net.Dialer{}).DialContext(ctx, network, address)
}

// hosts returns the IP addresses of a name, in the order in which to dial them, and its port. It returns none if the name must be dialed
// instead: if it cannot be resolved, or is that of a server with IPv4 and IPv6.
func (d *dialer) hosts(ctx context.Context, address string) (found []string, port string) {
	host, port, err := net.SplitHostPort(address)
	if err != nil || net.ParseIP(host) != nil {
		return nil, ""
	}
	found, err = d.resolve(ctx, host)
	if err != nil {
		return nil, "" // the dial returns the error
	}
	families := map[bool]bool{}
	for _, ip := range found {
		families[strings.Contains(ip, ":")] = true
	}
	if len(found) == 0 || len(families) > 1 && len(found) == len(families) {
		return nil, ""
	}
	if d.stays {
		slices.Sort(found)
		return found, port
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	first := d.dials[address] % len(found)
	d.dials[address]++
	return slices.Concat(found[first:], found[:first]), port
}

// begin records that a dial begins.
func (d *dialer) begin(address string) *trial {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := &trial{err: context.DeadlineExceeded} // if the dial does not end in time
	if d.trials[address] == nil {
		d.trials[address] = t
	}
	return t
}

// accepted records that a server has accepted a connection that is to use TLS.
func (d *dialer) accepted(t *trial) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t.err = noHandshake{context.DeadlineExceeded}
}

// note records the outcome of a dial. It calls allFail once every server has been tried and none was reached.
func (d *dialer) note(address string, t *trial, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t.err = err
	if d.life.Err() == nil {
		d.last[address] = err
	}
	if err == nil {
		d.failed = nil // a new connection says nothing yet: an earlier trial says more
		return
	}
	if d.life.Err() != nil {
		return // zklock has stopped the dial
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		d.trials[address] = t
	}
	if d.failed == nil {
		return
	}
	d.failed[address] = true
	if len(d.failed) >= d.servers {
		d.allFail(errNoneReached)
		d.failed = nil
	}
}

// errNoneReached is the error of a client that stops because no server can be reached.
var errNoneReached = errors.New("no server reached")

// outcome says what happened at each server.
func (d *dialer) outcome() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []string
	for _, address := range slices.Sorted(maps.Keys(d.trials)) {
		all = append(all, escape.Short(address, 80)+" "+d.trials[address].String())
	}
	return strings.Join(all, "; ")
}

// failures says which servers could not be reached when they were last tried, and why.
func (d *dialer) failures() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []string
	for _, address := range slices.Sorted(maps.Keys(d.last)) {
		if err := d.last[address]; err != nil {
			all = append(all, fmt.Sprintf("%s: %v", escape.Short(address, 80), inWords(err)))
		}
	}
	return strings.Join(all, "; ")
}

// answered reports whether something that talks as a ZooKeeper server does has answered.
func (d *dialer) answered() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(slices.Collect(maps.Values(d.trials)), (*trial).answered)
}

// trial is what happened when zklock last connected to a server.
type trial struct {
	err   error  // why there is no connection; nil if the server accepted one
	first []byte // the first bytes that the server sent
	ended error  // why the connection has ended; nil if it is open or zklock has closed it
}

// longestFirst is how many bytes of a server's first answer a trial keeps.
const longestFirst = 64

func (t *trial) String() string {
	var handshake noHandshake
	var op *net.OpError
	switch {
	case errors.As(t.err, &handshake):
		return handshake.String()
	case errors.Is(t.err, context.DeadlineExceeded), errors.Is(t.err, context.Canceled):
		return "did not accept the connection"
	case errors.As(t.err, &op):
		return fmt.Sprintf("cannot be reached (%s)", outcome.Explain(op.Err))
	case t.err != nil:
		return fmt.Sprintf("cannot be reached (%s)", outcome.Explain(t.err))
	case len(t.first) > 0 && !t.answered():
		return says(t.first)
	case t.answered():
		return "answered and created no session"
	case errors.As(t.ended, &op) && op.Op == "remote error":
		return refusedOverTLS(op)
	case t.ended != nil:
		return "closed the connection without creating a session (no quorum, maxClientCnxns reached, or it expects --tls)"
	}
	return "accepted the connection and sent nothing"
}

// answered reports whether the first bytes may be those of a ZooKeeper server. It begins each answer with its length in four
// bytes, and none is as long as 16 MiB.
func (t *trial) answered() bool { return len(t.first) > 0 && t.first[0] == 0 }

// says says what answers instead of a ZooKeeper server.
func says(first []byte) string {
	const alert, handshake = 0x15, 0x16
	line, _, _ := strings.Cut(string(first), "\r\n")
	switch {
	case first[0] == alert, first[0] == handshake:
		return "expects TLS (see --tls)"
	case strings.HasPrefix(line, "HTTP/"):
		return "is not a ZooKeeper server (it answers HTTP)"
	}
	return fmt.Sprintf("is not a ZooKeeper server (it answers %q)", escape.Short(line, 20))
}

// noHandshake is the error of a connection that a server has accepted, without agreeing on TLS.
type noHandshake struct{ err error }

func (n noHandshake) Error() string { return "TLS handshake: " + n.err.Error() }

func (n noHandshake) Unwrap() error { return n.err }

func (n noHandshake) String() string {
	var record tls.RecordHeaderError
	switch {
	case errors.As(n.err, &record):
		return "does not use TLS (see --tls)"
	case errors.Is(n.err, context.DeadlineExceeded), errors.Is(n.err, context.Canceled):
		return "accepted the connection and did not answer the TLS handshake"
	case errors.Is(n.err, io.EOF):
		return "closed the connection during the TLS handshake; it may not use TLS"
	}
	return "did not agree on TLS: " + outcome.Explain(n.err)
}

// worded is an error of a connection in the words of zklock's users. The library's messages contain its text.
type worded struct {
	error
	text string
}

func (w worded) Error() string { return w.text }

func (w worded) Unwrap() error { return w.error }

// inWords returns an error of a connection in zklock's words.
func inWords(err error) error {
	var handshake noHandshake
	var op *net.OpError
	switch {
	case errors.As(err, &handshake):
		return worded{err, handshake.String()}
	case errors.As(err, &op) && op.Op == "remote error":
		return worded{err, refusedOverTLS(op)}
	case errors.As(err, &op):
		return worded{err, outcome.Explain(op.Err)}
	}
	return worded{err, outcome.Explain(err)}
}

// refusedOverTLS returns the words for an alert that a server has sent.
func refusedOverTLS(op *net.OpError) string {
	return fmt.Sprintf("refused the connection: %s (see --tls-cert)", outcome.Explain(op.Err))
}

// tried is a connection that records how the server answers.
type tried struct {
	net.Conn
	dialer  *dialer
	address string
	trial   *trial
}

func (c *tried) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	d := c.dialer
	d.mu.Lock()
	defer d.mu.Unlock()
	t := c.trial
	t.first = append(t.first, p[:min(n, longestFirst-len(t.first))]...)
	if t.ended == nil && err != nil && !errors.Is(err, net.ErrClosed) && !errors.Is(err, os.ErrDeadlineExceeded) {
		t.ended = err
	}
	if n > 0 || t.ended != nil {
		d.trials[c.address] = t
	}
	if op := (*net.OpError)(nil); errors.As(err, &op) && op.Op == "remote error" {
		err = inWords(err) // the client library compares the others
	}
	return n, err
}
