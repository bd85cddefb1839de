// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/operate"
	"github.com/zklock-go/zklock/zktest"
)

// Tests with a server that sends wrong replies, or with someone between it and the client, without TLS.

// A lie receives a frame for the client, without its length, and the operation to which it replies. It returns the bytes to
// deliver instead; false closes the connection after them.
type lie func(op int32, frame []byte) (stream []byte, goOn bool)

// Pseudo-operations for frames that are not replies.
const (
	greeting = 0
	event    = -1
)

// framed returns the frame with its length in front.
func framed(frame []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...)
}

// dialLying connects through dial to a server and passes its frames through a lie.
func dialLying(dial func(network, address string, timeout time.Duration) (net.Conn, error), tell lie) func(network, address string, timeout time.Duration) (net.Conn, error) {
	return func(network, address string, timeout time.Duration) (net.Conn, error) {
		conn, err := dial(network, address, timeout)
		if err != nil {
			return nil, err
		}
		return &lyingConn{Conn: conn, tell: tell, asked: map[int32]int32{}}, nil
	}
}

type lyingConn struct {
	net.Conn
	tell  lie
	rest  []byte // guarded by the one reader
	ended bool
	began bool

	mu    sync.Mutex
	asked map[int32]int32 // guarded by mu: operations by xid
}

// Write records the operations of requests. Each Write has one request.
func (c *lyingConn) Write(p []byte) (int, error) {
	if len(p) >= 12 {
		c.mu.Lock()
		c.asked[int32(binary.BigEndian.Uint32(p[4:]))] = int32(binary.BigEndian.Uint32(p[8:]))
		c.mu.Unlock()
	}
	return c.Conn.Write(p)
}

func (c *lyingConn) Read(p []byte) (int, error) {
	for len(c.rest) == 0 {
		if c.ended {
			c.Close()
			return 0, io.EOF
		}
		if err := c.receive(); err != nil {
			return 0, err
		}
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

func (c *lyingConn) receive() error {
	var head [4]byte
	if _, err := io.ReadFull(c.Conn, head[:]); err != nil {
		return err
	}
	frame := make([]byte, binary.BigEndian.Uint32(head[:]))
	if _, err := io.ReadFull(c.Conn, frame); err != nil {
		return err
	}
	var goOn bool
	c.rest, goOn = c.tell(c.opOf(frame), frame)
	c.ended = !goOn
	return nil
}

func (c *lyingConn) opOf(frame []byte) int32 {
	if !c.began {
		c.began = true
		return greeting
	}
	xid := int32(binary.BigEndian.Uint32(frame))
	if xid == event {
		return event
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked[xid]
}

// once returns a lie that replaces the first successful reply to op, and counts it.
func once(op int32, told *int, tell func(frame []byte) []byte) lie {
	return func(answered int32, frame []byte) ([]byte, bool) {
		if answered != op || *told > 0 || op != greeting && binary.BigEndian.Uint32(frame[12:]) != 0 {
			return framed(frame), true
		}
		*told++
		return tell(frame), true
	}
}

// with returns a copy of the frame with a number at the given offset.
func with(frame []byte, at int, number uint32) []byte {
	frame = bytes.Clone(frame)
	binary.BigEndian.PutUint32(frame[at:], number)
	return frame
}

// maxTold limits the memory that a lie may cause the client to allocate.
const maxTold = 64 << 20

// allocated returns how much memory fn has allocated, freed or not.
func allocated(fn func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestAFalseReplyCostsAConnection replaces one reply, and the client must get its lock nevertheless.
//
//zklock:promise P8.5
func TestAFalseReplyCostsAConnection(t *testing.T) {
	const huge = 1<<31 - 1
	for name, c := range map[string]struct {
		op   zktest.Op
		tell func(frame []byte) []byte
	}{
		"connect reply with timeout 0":          {greeting, func(f []byte) []byte { return framed(with(f, 4, 0)) }},
		"connect reply with a negative timeout": {greeting, func(f []byte) []byte { return framed(with(f, 4, 1<<31)) }},
		"connect reply with a long password": {greeting, func(f []byte) []byte {
			return framed(append(with(f, 16, 300), make([]byte, 300-16)...))
		}},
		"connect reply without a password":     {greeting, func(f []byte) []byte { return framed(append(with(f, 16, 0)[:20], 0)) }},
		"connect reply cut short":              {greeting, func(f []byte) []byte { return framed(f[:12]) }},
		"connect reply of 4 GB":                {greeting, func(f []byte) []byte { return append(with(f, 0, 1<<32-1), make([]byte, 1<<20)...) }},
		"a frame of 8 bytes":                   {zktest.OpCreate, func(f []byte) []byte { return framed(f[:8]) }},
		"an empty frame":                       {zktest.OpCreate, func([]byte) []byte { return framed(nil) }},
		"a length of 2^32-1":                   {zktest.OpCreate, func(f []byte) []byte { return append(with(f, 0, 1<<32-1), make([]byte, 1<<20)...) }},
		"a length of 2^31-1":                   {zktest.OpCreate, func(f []byte) []byte { return append(with(f, 0, huge), make([]byte, 1<<20)...) }},
		"a path of 2^31-1":                     {zktest.OpCreate, func(f []byte) []byte { return framed(with(f, 16, huge)) }},
		"a path that was not asked for":        {zktest.OpCreate, func(f []byte) []byte { return framed(append(with(f[:20], 16, 2), "/x"...)) }},
		"a node without a number":              {zktest.OpCreate, func(f []byte) []byte { return framed(with(f[:len(f)-10], 16, uint32(len(f)-30))) }},
		"no path":                              {zktest.OpCreate, func(f []byte) []byte { return framed(f[:16]) }},
		"a transaction's results cut short":    {zktest.OpMulti, func(f []byte) []byte { return framed(f[:20]) }},
		"a transaction without results":        {zktest.OpMulti, func(f []byte) []byte { return framed(f[:16]) }},
		"a transaction's results without end":  {zktest.OpMulti, func(f []byte) []byte { return framed(f[:len(f)-9]) }},
		"a transaction's results of some kind": {zktest.OpMulti, func(f []byte) []byte { return framed(with(f, 16, 77)) }},
		"2^31-1 children":                      {zktest.OpGetChildren2, func(f []byte) []byte { return framed(with(f, 16, huge)) }},
		"-1 children":                          {zktest.OpGetChildren2, func(f []byte) []byte { return framed(with(f, 16, 1<<32-1)) }},
		"a child's name of 2^31-1":             {zktest.OpGetChildren2, func(f []byte) []byte { return framed(with(f, 20, huge)) }},
		"a listing without its state":          {zktest.OpGetChildren2, func(f []byte) []byte { return framed(f[:len(f)-60]) }},
		"data of 2^31-1":                       {zktest.OpGetData, func(f []byte) []byte { return framed(with(f, 16, huge)) }},
		"data of a negative length":            {zktest.OpGetData, func(f []byte) []byte { return framed(with(f, 16, 1<<31)) }},
		"a state cut short":                    {zktest.OpExists, func(f []byte) []byte { return framed(f[:len(f)-1]) }},
		"an answer that nobody asked for":      {zktest.OpCreate, func(f []byte) []byte { return append(framed(with(f, 0, 99999)), framed(f)...) }},
		"an answer twice":                      {zktest.OpCreate, func(f []byte) []byte { return append(framed(f), framed(f)...) }},
		"an event cut short":                   {zktest.OpGetData, func(f []byte) []byte { return append(framed(with(f[:24], 0, 1<<32-1)), framed(f)...) }},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				told := 0
				cost := allocated(func() {
					c := connectWith(t, srv, &zklock.Options{
						SessionTimeout: term,
						Dialer:         dialLying(srv.DialFrom("a"), once(int32(c.op), &told, c.tell)),
					})
					for range 2 {
						ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
						defer cancel()
						hold, err := c.Mutex(path).Lock(ctx)
						require.NoError(t, err)
						next := lockLater(ctx, c.Mutex(path).Lock)
						time.Sleep(term)
						_ = hold.Unlock(ctx) // it may have been lost
						<-next.done
						require.NoError(t, next.err)
						_ = next.hold.Unlock(ctx)
						srv.DropConnections()
						time.Sleep(term)
					}
					noGhost(t, srv, path)
				})
				require.Equal(t, 1, told)
				require.Less(t, cost, uint64(maxTold))
			})
		})
	}
}

// lies are drawn from the fuzzer's input, one for each frame. After its end, frames are unchanged.
type lies struct {
	mu    sync.Mutex
	input []byte // guarded by mu
	kept  []byte // guarded by mu: a frame that is held back
}

// next returns the next byte of the input. The caller must hold mu.
func (l *lies) next() int {
	if len(l.input) == 0 {
		return 0
	}
	b := l.input[0]
	l.input = l.input[1:]
	return int(b)
}

// bytes returns the next bytes of the input. The caller must hold mu.
func (l *lies) bytes() []byte {
	n := min(l.next(), len(l.input))
	b := bytes.Clone(l.input[:n])
	l.input = l.input[n:]
	return b
}

// odd are numbers at limits.
var odd = []uint32{0, 1, 2, 0xff, 0xffff, 1 << 20, 64 << 20, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1<<32 - 2, 1<<32 - 101, 1<<32 - 112, 1<<32 - 127, 16, 333}

// tell implements lie.
func (l *lies) tell(_ int32, frame []byte) ([]byte, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := func(size int) int { return l.next() % max(size, 1) }
	switch l.next() % 20 {
	case 1: // truncated, with a matching length
		return framed(frame[:at(len(frame))]), true
	case 2: // truncated, with a wrong length
		return framed(frame)[:at(len(frame)+4)], true
	case 3, 4: // an odd number somewhere
		if len(frame) >= 4 {
			frame = with(frame, min(at(64), len(frame)-4), odd[at(len(odd))])
		}
	case 5: // some byte
		if len(frame) > 0 {
			frame[at(len(frame))] = byte(l.next())
		}
	case 6: // lost
		return nil, true
	case 7: // twice
		return append(framed(frame), framed(frame)...), true
	case 8: // another frame before
		return append(framed(l.bytes()), framed(frame)...), true
	case 9: // some bytes before
		return append(l.bytes(), framed(frame)...), true
	case 10: // an odd length
		return append(binary.BigEndian.AppendUint32(nil, odd[at(len(odd))]), frame...), true
	case 11: // the end
		return framed(frame), false
	case 12: // an event before
		e := []byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
		e = binary.BigEndian.AppendUint32(e, uint32(l.next()))
		e = binary.BigEndian.AppendUint32(e, uint32(l.next()))
		e = append(e, framed([]byte(path))...)
		return append(framed(e), framed(frame)...), true
	case 13: // delayed until the next frame
		kept := l.kept
		l.kept = bytes.Clone(frame)
		if kept == nil {
			return nil, true
		}
		return framed(kept), true
	case 14: // a refusal
		if len(frame) >= 16 {
			frame = with(frame[:16], 12, odd[at(len(odd))])
		}
	case 15: // too long
		frame = append(frame, l.bytes()...)
	case 16: // other content after the header
		if len(frame) >= 16 {
			frame = append(frame[:16:16], l.bytes()...)
		}
	}
	return framed(frame), true
}

// within calls fn with a context that ends soon, and fails the test if fn does not return soon after that.
func within(t *testing.T, what string, fn func(ctx context.Context)) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	start := time.Now()
	fn(ctx)
	if took := time.Since(start); took > 5*time.Second {
		t.Fatalf("%s took %v", what, took)
	}
}

// useAll makes every call of a client and ignores the results.
func useAll(t *testing.T, c *zklock.Client) {
	endAfter := func(hold *zklock.Hold, err error) {
		if err != nil {
			return
		}
		time.Sleep(time.Second)
		_ = hold.Check()
		_, _ = hold.Token(), hold.Remaining()
		within(t, "confirm", func(ctx context.Context) { _ = hold.Confirm(ctx) })
		within(t, "unlock", func(ctx context.Context) { _ = hold.Unlock(ctx) })
	}
	for _, verb := range []struct {
		name string
		get  lockFunc
	}{
		{"lock", c.Mutex(path).Lock},
		{"try", c.Mutex(path).TryLock},
		{"write", c.RWMutex(path).Lock},
		{"read", c.RWMutex(path).RLock},
		{"permits", func(ctx context.Context) (*zklock.Hold, error) { return c.Semaphore(path+"/s", 3).Acquire(ctx, 2) }},
		{"campaign", func(ctx context.Context) (*zklock.Hold, error) {
			return c.Election(path+"/e", nil).Campaign(ctx, []byte("me"))
		}},
	} {
		var hold *zklock.Hold
		var err error
		within(t, verb.name, func(ctx context.Context) { hold, err = verb.get(ctx) })
		endAfter(hold, err)
	}
	within(t, "observe", func(ctx context.Context) {
		for range c.Election(path+"/e", nil).Observe(ctx) {
		}
	})
	within(t, "inspect", func(ctx context.Context) {
		q, err := operate.Inspect(ctx, c, path)
		if err == nil && len(q.Contenders) > 0 {
			_ = operate.Revoke(ctx, c, q.Contenders[0])
			_ = operate.Evict(ctx, c, "", q.Contenders...)
		}
	})
}

// FuzzLyingServer uses a client with a server whose replies are changed according to the input. Whatever the server replies, no
// call outlasts its context, Close returns, and the next client gets the lock.
//
//zklock:promise P8.5
func FuzzLyingServer(f *testing.F) {
	f.Add([]byte{})
	for kind := range byte(17) {
		f.Add(append(make([]byte, 4), kind, 7, 1, 0, 0, 0, kind, 16, 9, 0, kind, 20, 7, 0, 0, 0, 0, 0, 0, kind, 8, 8, 8, 8, 8))
		f.Add(bytes.Repeat([]byte{0, kind, 3, 7, 19, 5}, 12))
		f.Add([]byte{kind, 4, 7, kind, 0, 16, 9})
	}
	if raceDetector {
		// Connections that end one after the other may leave a list of watches behind, which the
		// client library sends on the next one: there it reads a number that it is about to write.
		f.Skip("the client library has a data race of its own")
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		var cost uint64
		synctest.Test(t, func(t *testing.T) {
			cost = allocated(func() { useLyingServer(t, input) })
		})
		if cost > 8*maxTold {
			t.Fatalf("%d bytes of memory", cost)
		}
	})
}

func useLyingServer(t *testing.T, input []byte) {
	srv := zktest.Start(t, zktest.Options{})
	honest := connect(t, srv, "honest", term)
	before, err := honest.Mutex(path).Lock(t.Context())
	require.NoError(t, err)
	l := &lies{input: bytes.Clone(input)}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	c, err := zklock.Connect(ctx, srv.Addrs(), &zklock.Options{
		SessionTimeout: term,
		Dialer:         dialLying(srv.DialFrom("lied to"), l.tell),
		Auth:           []zklock.Auth{{Scheme: "digest", Data: []byte("a:b")}},
	})
	time.AfterFunc(2*time.Second, func() { _ = before.Unlock(context.Background()) })
	if err == nil {
		defer c.Close()
		useAll(t, c)
		start := time.Now()
		_ = c.Close()
		require.LessOrEqual(t, time.Since(start), term)
	} else {
		require.False(t, errors.Is(err, zklock.ErrClosed))
	}
	cancel()
	ctx, cancel = context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	after, err := honest.Mutex(path).Lock(ctx)
	require.NoError(t, err)
	require.NoError(t, after.Unlock(ctx))
}
