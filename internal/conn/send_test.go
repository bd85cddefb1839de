// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"context"
	"encoding/binary"
	"math"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/frames"
	"github.com/zklock-go/zklock/zktest"
)

// asker keeps the reply to a request.
type asker struct {
	body []byte
	err  error
	done chan struct{}
}

func newAsker() *asker { return &asker{done: make(chan struct{})} }

// Answered keeps a copy: the body is valid during the call.
func (a *asker) Answered(r frames.Reply, err error) {
	a.body, a.err = slices.Clone(r.Body), err
	close(a.done)
}

// opened is like attached, after the client library has sent its credentials.
func opened(t *testing.T) (*Link, *wired) {
	l, w := attached(t)
	w.asks(77, frames.OpExists)
	w.sent(t)
	return l, w
}

// xidOf returns the xid of a frame that the server has received.
func xidOf(frame []byte) int32 { return int32(binary.BigEndian.Uint32(frame)) }

func TestZklockAndTheClientLibraryShareAConnection(t *testing.T) {
	virtual(t, func(t *testing.T) {
		l, w := opened(t)
		first, second := newAsker(), newAsker()
		require.NoError(t, l.SendNow(l.Carried(), Outgoing{Request: frames.Exists("/a"), By: first}))
		w.asks(1<<30, frames.OpDelete)
		require.NoError(t, l.SendNow(l.Carried(), Outgoing{Request: frames.Get("/b", true), By: second}))
		var numbers []int32
		for range 3 {
			numbers = append(numbers, xidOf(w.sent(t)))
		}
		require.Equal(t, []int32{2, 3, 4}, numbers, "no two requests have one number, whichever side sends them")

		go w.server.Write(slices.Concat(replyOf(4, frames.CodeNoNode, 1), replyOf(3, 0, 1))) // ends when it was read
		library := make([]byte, len(replyOf(0, 0, 0)))
		n, err := w.Read(library)
		require.NoError(t, err)
		require.Equal(t, replyOf(1<<30, 0, 1), library[:n], "the client library sees its own number, and nothing of ours")
		<-second.done
		require.ErrorIs(t, second.err, zk.ErrNoNode)
		select {
		case <-first.done:
			t.Error("nobody has answered that")
		default:
		}
	})
}

func TestTheNumbersOfRequestsBeginAgainBehindTheLargest(t *testing.T) {
	virtual(t, func(t *testing.T) {
		_, w := opened(t)
		w.link.lastXid.Store(math.MaxInt32 - 1)
		for _, number := range []int32{math.MaxInt32, 1, 2} {
			w.asks(5, frames.OpExists)
			require.Equal(t, number, xidOf(w.sent(t)), "a negative one would be an event's or a ping's, and zero a login's")
		}
	})
}

// opOf returns the operation of a frame that the server has received.
func opOf(frame []byte) int32 { return int32(binary.BigEndian.Uint32(frame[4:])) }

// credential returns the request that AddAuth sends.
func credential(xid int32, data string) []byte {
	r := frames.Auth("digest", []byte(data))
	r.Number(xid)
	return r
}

// This is the same for credentials of the program, sent by the client library, and of this library's client.
//
//zklock:promise P18.3
func TestCredentialsThatAServerHasAcceptedComeFirstOnEveryConnection(t *testing.T) {
	virtual(t, func(t *testing.T) {
		l, w := attached(t)
		s := l.Carried()
		for _, data := range []string{"a:1", "b:2", "a:1", "c:3"} { // the library presents them again
			_, _ = w.Write(credential(5, data))
			code := int32(frames.CodeOK)
			if data == "b:2" {
				code = frames.CodeNoAuth
			}
			require.NoError(t, w.answers(t, code))
		}
		ours := newAsker()
		require.NoError(t, l.SendNow(s, Outgoing{Request: frames.Auth("digest", []byte("d:4")), By: ours}))
		frame := w.sent(t)
		go w.server.Write(slices.Concat(replyOf(xidOf(frame), 0, 1), eventOf("/a"))) // ends when it was read
		w.hears = true
		_, err := w.Read(make([]byte, 100))
		require.NoError(t, err)
		<-ours.done
		require.NoError(t, ours.err)
		w.Close()

		next := wire(t, l)
		_, _ = next.Write(connectRequest(7))
		next.sent(t)
		read := make(chan error, 1)
		go func() { // ends with the connection
			_, err := next.Read(make([]byte, 100))
			read <- err
		}()
		_, _ = next.server.Write(greetingOf(7, term))
		for _, data := range []string{"a:1", "c:3", "d:4"} {
			require.Equal(t, credential(loginXid, data)[4:], next.sent(t))
			synctest.Wait()
			require.Empty(t, read, "the client library has no session yet")
			require.ErrorIs(t, l.SendNow(s, Outgoing{Request: frames.Exists("/"), By: newAsker()}), ErrNotSent)
			_, _ = next.server.Write(replyOf(loginXid, 0, 0))
		}
		require.NoError(t, <-read)
		require.NoError(t, l.Ready(t.Context(), s))
		require.NoError(t, l.SendNow(s, Outgoing{Request: frames.Exists("/"), By: newAsker()}))
		require.Equal(t, int32(frames.OpExists), opOf(next.sent(t)))
	})
}

func TestACredentialThatIsRefusedLaterEndsTheConnection(t *testing.T) {
	for name, reply := range map[string][]byte{
		"a refusal":      replyOf(loginXid, frames.CodeAuthFailed, 0),
		"another number": replyOf(3, 0, 0),
		"half a head":    framed([]byte{0, 0}),
	} {
		virtual(t, func(t *testing.T) {
			l, w := attached(t)
			_, _ = w.Write(credential(5, "a:1"))
			require.NoError(t, w.answers(t, frames.CodeOK))
			w.Close()
			next := wire(t, l)
			_, _ = next.Write(connectRequest(7))
			require.Error(t, next.says(append(greetingOf(7, term), reply...)), name)
			require.Nil(t, l.Carried(), name)
			require.Equal(t, name == "a refusal", l.IsDenied(), name)
		})
	}
}

func TestReadyWaitsForAConnection(t *testing.T) {
	virtual(t, func(t *testing.T) {
		l, w := attached(t)
		s := l.Carried()
		require.NoError(t, l.Ready(t.Context(), s))
		w.Close()
		results := make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		wait := func(ctx context.Context) {
			go func() { results <- l.Ready(ctx, s) }() // ends with the next connection, or ctx
			synctest.Wait()
		}
		wait(ctx)
		require.Empty(t, results)
		cancel()
		require.ErrorIs(t, <-results, context.Canceled)
		wait(t.Context())
		require.Empty(t, results)
		wire(t, l).greet(t, 7, 7)
		require.NoError(t, <-results)
		l.expire(s)
		require.ErrorIs(t, l.Ready(t.Context(), s), ErrSessionOver)
		require.ErrorIs(t, l.SendNow(s, Outgoing{Request: frames.Exists("/"), By: newAsker()}), ErrSessionOver)
	})
}

func TestTheEndOfAConnectionAnswersPendingRequests(t *testing.T) {
	for name, end := range map[string]func(*wired) error{
		"the client closes it": func(w *wired) error { return w.Close() },
		"the server does":      func(w *wired) error { w.server.Close(); _, _ = w.Read(make([]byte, 1)); return nil },
		"an answer malformed":  func(w *wired) error { _ = w.says(replyOf(2, 0, 1, 1)); return nil },
	} {
		virtual(t, func(t *testing.T) {
			l, w := opened(t)
			a := newAsker()
			require.NoError(t, l.SendNow(l.Carried(), Outgoing{Request: frames.Exists("/a"), By: a}))
			w.sent(t)
			s := l.Carried()
			require.NoError(t, end(w))
			<-a.done
			require.ErrorIs(t, a.err, zk.ErrConnectionClosed, name)
			require.ErrorIs(t, l.SendNow(s, Outgoing{Request: frames.Exists("/a"), By: newAsker()}), ErrNotSent, name)
		})
	}
}

// A server that lags behind this client must not resume the session: it would show older data.
func TestAConnectionRequestContainsTheZxidOfOurReplies(t *testing.T) {
	virtual(t, func(t *testing.T) {
		l, w := opened(t)
		require.NoError(t, l.SendNow(l.Carried(), Outgoing{Request: frames.Exists("/a"), By: newAsker()}))
		w.hears = true
		go w.server.Write(slices.Concat(replyOf(2, frames.CodeNoNode, 5000), eventOf("/a"))) // ends when it was read
		_, err := w.Read(make([]byte, 100))
		require.NoError(t, err)
		w.Close()
		next := wire(t, l)
		_, _ = next.Write(connectRequest(7))
		id, zxid := next.sessionAsked(t)
		require.Equal(t, []int64{7, 5000}, []int64{id, zxid}, "the client library has seen 99")
	})
}

func TestACallThatHasEndedSendsNothing(t *testing.T) {
	virtual(t, func(t *testing.T) {
		l, w := attached(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		request := Outgoing{Request: frames.Exists("/")}
		require.ErrorIs(t, l.Send(ctx, l.Carried(), request), context.Canceled)
		require.ErrorIs(t, l.SendBeat(ctx, l.Carried(), request), context.Canceled)
		synctest.Wait()
		require.Empty(t, w.frames)
	})
}

func TestASenderDoesNotWaitForAServerThatDoesNotRead(t *testing.T) {
	virtual(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		o := newOutbox(ours)
		for n := range byte(100) {
			o.put([]byte{n})
			o.flush()
		}
		for n := range byte(50) {
			var one [1]byte
			_, err := theirs.Read(one[:])
			require.NoError(t, err)
			require.Equal(t, n, one[0])
		}
		require.NoError(t, o.close())
		o.put([]byte{1})
		require.Empty(t, o.frames)
		_, err := theirs.Read(make([]byte, 1))
		require.Error(t, err)
	})
}

func TestAWriteThatFailsEndsTheConnection(t *testing.T) {
	virtual(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		o := newOutbox(ours)
		theirs.Close()
		o.put([]byte{1})
		o.flush()
		<-o.left
		_, err := ours.Read(make([]byte, 1))
		require.Error(t, err)
		o.put([]byte{2})
		require.Empty(t, o.frames, "no goroutine writes it")
		require.NoError(t, o.close())
	})
}

func sorted(names []string) []string { return slices.Sorted(slices.Values(names)) }

// recorder records the requests on a connection.
type recorder struct {
	net.Conn
	mu   sync.Mutex
	sent [][]byte
}

// Write records p. Each Write has exactly one request.
func (r *recorder) Write(p []byte) (int, error) {
	r.mu.Lock()
	r.sent = append(r.sent, slices.Clone(p))
	r.mu.Unlock()
	return r.Conn.Write(p)
}

// last returns the last request, without its xid.
func (r *recorder) last() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := slices.Clone(r.sent[len(r.sent)-1])
	clear(p[4:8])
	return p
}

// This library's requests are byte for byte those of the client library, and both read the same from replies.
func TestRequestsAndAnswersAreThoseOfTheClientLibrary(t *testing.T) {
	inVirtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server, l *Link) {
		var wire *recorder
		dial := func(network, address string, timeout time.Duration) (net.Conn, error) {
			conn, err := srv.DialFrom("a")(network, address, timeout)
			wire = &recorder{Conn: conn}
			return wire, err
		}
		conn, _, err := zk.Connect(srv.Addrs(), term, zk.WithLogger(quiet{}), zk.WithDialer(l.Dialer(Dialing{Dial: dial})), zk.WithHostProvider(l.Hosts(&Rotation{})))
		require.NoError(t, err)
		t.Cleanup(conn.Close)
		s, err := l.Attached(t.Context())
		require.NoError(t, err)
		require.NoError(t, l.Ready(t.Context(), s))
		synctest.Wait()

		acl := zk.WorldACL(zk.PermAll)
		// ask sends this library's request after the client library's, and reads the reply.
		ask := func(name string, r frames.Request, read func(*frames.Answer) any) (any, error) {
			theirs := wire.last()
			a := newAsker()
			require.NoError(t, l.SendNow(s, Outgoing{Request: r, By: a}))
			<-a.done
			require.Equal(t, theirs, wire.last(), name)
			if a.err != nil {
				return nil, a.err
			}
			answer := frames.Reply{Body: a.body}.Answer()
			return read(&answer), nil
		}
		text := func(a *frames.Answer) any { return a.Text() }
		stat := func(a *frames.Answer) any { return a.Stat() }

		path, err := conn.Create("/a-", []byte("data"), zk.FlagEphemeralSequential, acl)
		require.NoError(t, err)
		ours, err := ask("create", frames.Create("/a-", []byte("data"), zk.FlagEphemeralSequential, acl), text)
		require.NoError(t, err)
		assert.Equal(t, "/a-0000000000", path)
		assert.Equal(t, "/a-0000000001", ours)
		_, err = conn.CreateContainer("/c", nil, zk.FlagContainer, acl)
		require.NoError(t, err)
		_, err = ask("container", frames.Create("/c", nil, zk.FlagContainer, acl), text)
		require.ErrorIs(t, err, zk.ErrNodeExists)

		data, state, err := conn.Get("/a-0000000000")
		require.NoError(t, err)
		ours, err = ask("get", frames.Get("/a-0000000000", false), func(a *frames.Answer) any { return []any{a.Data(), a.Stat()} })
		require.NoError(t, err)
		assert.Equal(t, []any{data, state}, ours)
		data, state, _, err = conn.GetW("/c")
		require.NoError(t, err)
		ours, err = ask("get and watch", frames.Get("/c", true), func(a *frames.Answer) any { return []any{a.Data(), a.Stat()} })
		require.NoError(t, err)
		assert.Equal(t, []any{data, state}, ours)
		_, state, err = conn.Exists("/c")
		require.NoError(t, err)
		ours, err = ask("exists", frames.Exists("/c"), stat)
		require.NoError(t, err)
		assert.Equal(t, state, ours)
		names, state, _, err := conn.ChildrenW("/")
		require.NoError(t, err)
		ours, err = ask("children", frames.Children("/", true), func(a *frames.Answer) any { return []any{sorted(a.Names()), a.Stat()} })
		require.NoError(t, err)
		assert.Equal(t, []any{sorted(names), state}, ours)
		list, _, err := conn.GetACL("/c")
		require.NoError(t, err)
		ours, err = ask("access list", frames.GetACL("/c"), func(a *frames.Answer) any { return a.ACL() })
		require.NoError(t, err)
		assert.Equal(t, list, ours)
		_, err = conn.Sync("/")
		require.NoError(t, err)
		ours, err = ask("sync", frames.Sync("/"), text)
		require.NoError(t, err)
		assert.Equal(t, "/", ours)
		_, err = conn.Set("/c", []byte{}, -1)
		require.NoError(t, err)
		ours, err = ask("set", frames.SetData("/c", []byte{}, -1), stat)
		require.NoError(t, err)
		assert.Equal(t, int32(2), ours.(*zk.Stat).Version)

		ops := []any{
			&zk.CheckVersionRequest{Path: "/", Version: -1},
			&zk.CreateRequest{Path: "/m-", Data: nil, Acl: acl, Flags: zk.FlagSequence},
			&zk.SetDataRequest{Path: "/c", Data: []byte("y"), Version: -1},
		}
		theirs, err := conn.Multi(ops...)
		require.NoError(t, err)
		ours, err = ask("transaction", frames.Multi(ops), func(a *frames.Answer) any {
			results, err := a.Results()
			assert.NoError(t, err)
			return results
		})
		require.NoError(t, err)
		results := ours.([]zk.MultiResponse)
		require.Len(t, results, len(theirs))
		assert.Equal(t, theirs[0], results[0])
		assert.Equal(t, "/m-0000000004", results[1].String)
		assert.Equal(t, theirs[2].Stat.Version+1, results[2].Stat.Version)
		ops = append(ops, &zk.DeleteRequest{Path: "/none", Version: 3})
		theirs, err = conn.Multi(ops...)
		require.ErrorIs(t, err, zk.ErrNoNode)
		ours, err = ask("transaction that is refused", frames.Multi(ops), func(a *frames.Answer) any {
			results, err := a.Results()
			assert.ErrorIs(t, err, zk.ErrNoNode)
			return results
		})
		require.NoError(t, err)
		assert.Equal(t, theirs, ours)
		require.NoError(t, conn.Delete("/c", -1))
		_, err = ask("delete", frames.Delete("/c", -1), text)
		require.ErrorIs(t, err, zk.ErrNoNode)
	})
}

// Events are not passed to the client library as long as it has set no watch, because it would only look for one.
func TestEventsAreForTheClientLibraryIfItHasSetAWatch(t *testing.T) {
	virtual(t, func(t *testing.T) {
		l, w := opened(t)
		var told []string
		l.Listen(func(_ *Session, e frames.Event) { told = append(told, e.Path) })
		w.asks(78, frames.OpGetData)
		go w.server.Write(slices.Concat(eventOf("/a"), replyOf(2, frames.CodeNoNode, 1))) // ends when it was read
		library := make([]byte, 1000)
		n, err := w.Read(library)
		require.NoError(t, err)
		require.Equal(t, replyOf(78, frames.CodeNoNode, 1), library[:n])
		w.asks(79, frames.OpSetWatches)
		require.NoError(t, w.says(eventOf("/b")))
		require.Equal(t, []string{"/a", "/b"}, told)
	})
}
