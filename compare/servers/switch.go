// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"net"
	"sync"
	"time"
)

// Switch is a TCP proxy whose target can be changed or cut off, as a failover does with a virtual IP. It can also delay the
// bytes, as a network does.
type Switch struct {
	listener net.Listener
	delay    time.Duration // of every byte, in each direction

	mu     sync.Mutex
	target string                // guarded by mu; "" while cut
	conns  map[net.Conn]struct{} // guarded by mu
	wg     sync.WaitGroup
}

// NewSwitch starts a Switch to target. If target is empty, the Switch refuses connections. The Set's Close closes it.
func (s *Set) NewSwitch(target string) (*Switch, error) { return s.NewDistance(target, 0) }

// NewDistance starts a Switch that delays every byte by delay, in each direction. It keeps the order and does not limit the
// bandwidth.
func (s *Set) NewDistance(target string, delay time.Duration) (*Switch, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	sw := &Switch{listener: l, delay: delay, target: target, conns: map[net.Conn]struct{}{}}
	// Owned by the Switch; ends when Close closes the listener, and Close waits for it.
	sw.wg.Go(sw.accept)
	s.atEnd(sw.Close)
	return sw, nil
}

// Addr returns the address on which the Switch listens.
func (sw *Switch) Addr() string { return sw.listener.Addr().String() }

// Connections returns how many clients are connected.
func (sw *Switch) Connections() int {
	sw.mu.Lock()
	defer sw.mu.Unlock()
	return len(sw.conns) / 2 // one to the client and one to the target
}

// Point forwards new connections to target and closes the existing ones.
func (sw *Switch) Point(target string) {
	sw.mu.Lock()
	sw.target = target
	open := sw.conns
	sw.conns = map[net.Conn]struct{}{}
	sw.mu.Unlock()
	for c := range open {
		_ = c.Close()
	}
}

// Cut closes all connections and refuses new ones.
func (sw *Switch) Cut() { sw.Point("") }

// Close closes the Switch and waits for its goroutines.
func (sw *Switch) Close() {
	_ = sw.listener.Close()
	sw.Cut()
	sw.wg.Wait()
}

func (sw *Switch) accept() {
	for {
		in, err := sw.listener.Accept()
		if err != nil {
			return
		}
		sw.forward(in)
	}
}

func (sw *Switch) forward(in net.Conn) {
	sw.mu.Lock()
	target := sw.target
	sw.mu.Unlock()
	out, err := net.Dial("tcp", target)
	if target == "" || err != nil {
		_ = in.Close()
		return
	}
	if !sw.keep(target, in, out) {
		return
	}
	// Owned by the Switch: each ends when one of the connections is closed, at the latest by Point or Close. Close waits.
	sw.wg.Go(func() { sw.pipe(in, out) })
	sw.wg.Go(func() { sw.pipe(out, in) })
}

// keep registers a pair of connections. It closes them and returns false if the Switch has another target by now.
func (sw *Switch) keep(target string, pair ...net.Conn) bool {
	sw.mu.Lock()
	defer sw.mu.Unlock()
	for _, c := range pair {
		if sw.target != target {
			_ = c.Close()
			continue
		}
		sw.conns[c] = struct{}{}
	}
	return sw.target == target
}

func (sw *Switch) pipe(to, from net.Conn) {
	passOn(to, from, sw.delay)
	_ = to.Close()
	_ = from.Close()
	sw.mu.Lock()
	delete(sw.conns, to)
	delete(sw.conns, from)
	sw.mu.Unlock()
}
