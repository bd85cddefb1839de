package main

import (
	"context"
	"crypto/tls"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

// dialer connects to servers, over TLS if it has a configuration for that. It can be
// stopped in the middle: the client library only takes a time limit.
type dialer struct {
	life   context.Context
	abort  context.CancelFunc // ends life: no connection is made any more
	config *tls.Config
	log    *slog.Logger

	mu      sync.Mutex
	failed  map[string]error // guarded by mu: the servers that no connection led to, nil after the first success
	servers int              // how many there are
	allFail func(error)      // is called when none of them can be reached; nil: nobody wants to know
	open    int              // connections

	connected func(bool) // is called when a first connection is open and when the last one is closed; may be nil
}

// dial is a zk.Dialer.
func (d *dialer) dial(network, address string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(d.life, timeout)
	defer cancel()
	d.log.Info("connecting", "server", address, "tls", d.config != nil)
	conn, err := d.connect(ctx, network, address)
	d.note(address, err)
	if err != nil {
		d.log.Info("no connection", "server", address, "why", err)
		return nil, err
	}
	d.log.Info("connected", "server", address, "address", conn.RemoteAddr())
	return d.count(conn), nil
}

// count returns conn in a form that is counted until it is closed.
func (d *dialer) count(conn net.Conn) net.Conn {
	d.opened(1)
	return &counted{Conn: conn, closed: sync.OnceFunc(func() { d.opened(-1) })}
}

// opened notes that there are so many more connections.
func (d *dialer) opened(more int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open += more
	if d.connected != nil {
		d.connected(d.open > 0)
	}
}

// counted is a connection that tells of its end.
type counted struct {
	net.Conn
	closed func()
}

func (c *counted) Close() error {
	c.closed()
	return c.Conn.Close()
}

func (d *dialer) connect(ctx context.Context, network, address string) (net.Conn, error) {
	if d.config != nil {
		return (&tls.Dialer{Config: d.config}).DialContext(ctx, network, address)
	}
	return (&net.Dialer{}).DialContext(ctx, network, address)
}

// note tells when every server has been tried and none was reached.
func (d *dialer) note(address string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil {
		d.failed = nil
	}
	if d.failed == nil || d.allFail == nil {
		return
	}
	d.failed[address] = err
	if len(d.failed) < d.servers {
		return
	}
	d.allFail(noneReached{d.failed})
	d.failed = nil
}

// noneReached is the error if no server could be reached: why, by address.
type noneReached struct{ failed map[string]error }

func (n noneReached) Error() string {
	var whys []string
	for _, address := range slices.Sorted(maps.Keys(n.failed)) {
		whys = append(whys, n.failed[address].Error())
	}
	return "no server was reached: " + strings.Join(slices.Compact(whys), "; ")
}
