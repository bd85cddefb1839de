// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/digestmd5"
	"github.com/zklock-go/zklock/internal/frames"
	"github.com/zklock-go/zklock/zktest"
)

var joe = digestmd5.Credential{User: "joe", Password: "secret"}

const challenge = `realm="zk-sasl-md5",nonce="abc",charset=utf-8,algorithm=md5-sess`

// scripted passes tokens to a server that answers from a list.
func scripted(answers ...any) func([]byte) ([]byte, error) {
	return func([]byte) ([]byte, error) {
		next := answers[0]
		answers = answers[1:]
		switch next := next.(type) {
		case error:
			return nil, next
		case string:
			return []byte(next), nil
		}
		return nil, nil
	}
}

func TestALoginFailsForGoodReasonsOnly(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		answers []any
		refused bool // the server or its proof is wrong: wraps zk.ErrAuthFailed
	}{
		"SASL is not served":               {[]any{nil}, true},
		"a challenge nobody can answer":    {[]any{"x"}, true},
		"a proof of another password":      {[]any{challenge, "rspauth=0"}, true},
		"no proof":                         {[]any{challenge, nil}, true},
		"a connection broken at the start": {[]any{broken}, false},
		"a connection broken at the end":   {[]any{challenge, broken}, false},
	} {
		err := exchange(scripted(c.answers...), joe)
		require.Error(t, err, name)
		assert.Equal(t, c.refused, errors.Is(err, zk.ErrAuthFailed), "%s: %v", name, err)
		assert.Equal(t, !c.refused, errors.Is(err, broken), name)
	}
}

//zklock:promise P18.6
func TestAServersProofIsChecked(t *testing.T) {
	var proof []byte
	tokens := 0
	err := exchange(func(token []byte) ([]byte, error) {
		if tokens++; tokens == 1 {
			assert.Empty(t, token)
			return []byte(challenge), nil
		}
		proof = proofFor(t, token)
		return proof, nil
	}, joe)
	require.NoError(t, err)
	assert.Equal(t, 2, tokens)
}

// proofFor returns the final token of a server that knows joe's password.
func proofFor(t *testing.T, answer []byte) []byte {
	_, cnonce, ok := cut(string(answer), `cnonce="`, `"`)
	require.True(t, ok, "%s", answer)
	again, proof, err := joe.Answer([]byte(challenge), cnonce)
	require.NoError(t, err)
	require.Equal(t, string(answer), string(again))
	return proof
}

//zklock:promise P8.6
func TestARefusedLoginIsReported(t *testing.T) {
	virtual(t, func(t *testing.T) {
		l := NewLink()
		l.SetLogin(Digest(joe), 1)
		w := wire(t, l)
		_, _ = w.Write(connectRequest(0))
		go func() { // ends with the refusal
			_, _ = w.server.Write(greetingOf(7, term))
			<-w.frames // the connection request
			<-w.frames // the empty token
			_, _ = w.server.Write(replyOf(loginXid, frames.CodeAuthFailed, 0))
		}()
		_, err := w.Read(make([]byte, 1))
		require.ErrorIs(t, err, zk.ErrAuthFailed)
		assert.ErrorContains(t, err, "joe")
		assert.True(t, l.IsDenied())
		_, err = l.Attached(t.Context())
		require.ErrorIs(t, err, zk.ErrAuthFailed)
		assert.Nil(t, l.Carried(), "a session without a login is none")
	})
}

func TestAnAnswerOfAnotherKindEndsTheLogin(t *testing.T) {
	for name, answer := range map[string][]byte{
		"another number":     replyOf(9, 0, 0, 0, 0, 0, 0),
		"a broken token":     replyOf(loginXid, 0, 0, 0, 0, 0, 9),
		"some other refusal": replyOf(loginXid, -1, 0),
		"a frame too long":   {0x7f, 0, 0, 0},
		"half a head":        framed([]byte{0, 0}),
	} {
		virtual(t, func(t *testing.T) {
			l := NewLink()
			l.SetLogin(Digest(joe), 1)
			w := wire(t, l)
			_, _ = w.Write(connectRequest(0))
			go func() { // ends with the answer, or with the connection
				_, _ = w.server.Write(append(greetingOf(7, term), answer...))
			}()
			_, err := w.Read(make([]byte, 1))
			w.Close()
			assert.Error(t, err, name)
			assert.NotErrorIs(t, err, zk.ErrAuthFailed, name)
			assert.False(t, l.IsDenied(), name)
		})
	}
}

//zklock:promise P18.3
func TestALoginIsTheFirstRequestOnEveryConnection(t *testing.T) {
	inVirtual(t, zktest.Options{SASL: map[string]string{"joe": "secret"}, RequireSASL: true}, func(t *testing.T, srv *zktest.Server, l *Link) {
		l.SetLogin(Digest(joe), 1)
		conn := client(t, srv, l)
		s, err := l.Attached(t.Context())
		require.NoError(t, err)
		_, err = conn.Create("/a", nil, 0, []zk.ACL{{Scheme: "sasl", ID: "joe", Perms: zk.PermAll}})
		require.NoError(t, err)
		srv.DropConnections()
		<-s.Reattached()
		_, _, err = conn.Get("/a")
		require.NoError(t, err)
		assert.False(t, l.IsDenied())
		login, _ := l.login.starts()
		l.deny(login, errRefused)
		_, err = l.Attached(t.Context())
		assert.NoError(t, err, "what was taken once is not refused for good")
		assert.NoError(t, l.login.verdict())
	})
}

func TestAServerThatRequiresALoginRefusesAClientWithoutOne(t *testing.T) {
	inVirtual(t, zktest.Options{SASL: map[string]string{"joe": "secret"}, RequireSASL: true}, func(t *testing.T, srv *zktest.Server, l *Link) {
		conn := client(t, srv, l)
		_, _, _ = conn.Exists("/") // fails, in one way or another
		assert.True(t, l.IsDenied())
		assert.ErrorIs(t, l.LastError(), zk.ErrAuthFailed)
	})
}

//zklock:promise P7.7
func TestAWrongPasswordIsFinalOnceAllServersHaveRefusedIt(t *testing.T) {
	inVirtual(t, zktest.Options{Servers: 3, SASL: map[string]string{"joe": "other"}}, func(t *testing.T, srv *zktest.Server, l *Link) {
		l.SetLogin(Digest(joe), 3)
		client(t, srv, l)
		begin := time.Now()
		_, err := l.Attached(t.Context())
		require.ErrorIs(t, err, zk.ErrAuthFailed)
		assert.Less(t, time.Since(begin), time.Minute)
	})
}

// Each address of a name is a server.
//
//zklock:promise P7.7
func TestAWrongPasswordIsFinalOnceAllAddressesOfANameHaveRefusedIt(t *testing.T) {
	inVirtual(t, zktest.Options{Servers: 3, SASL: map[string]string{"joe": "other"}}, func(t *testing.T, srv *zktest.Server, l *Link) {
		var refusals atomic.Int32
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Op == zktest.OpSASL {
				refusals.Add(1)
			}
			return zktest.Pass
		})
		l.SetLogin(Digest(joe), 1)
		connectToName(t, &trials{srv: srv, open: map[net.Conn]string{}}, l)
		begin := time.Now()
		_, err := l.Attached(t.Context())
		require.ErrorIs(t, err, zk.ErrAuthFailed)
		assert.Less(t, time.Since(begin), time.Minute)
		assert.EqualValues(t, 2*3, refusals.Load(), "each server is asked, with two requests a login")
	})
}

// A login is code of the program, and may wait for a server that does not reply.
//
//zklock:promise P18.10
func TestALoginThatDoesNotReturnEndsWithTheHandshakeAndWithTheLink(t *testing.T) {
	for name, end := range map[string]func(l *Link){
		"the handshake takes too long": func(*Link) {},
		"the link is closed":           func(l *Link) { l.Close() },
	} {
		virtual(t, func(t *testing.T) {
			l := NewLink()
			returned := make(chan error, 1)
			l.SetLogin(Login{Name: "joe", Exchange: func(ctx context.Context, server string, pass func([]byte) ([]byte, error)) error {
				<-ctx.Done()
				_, err := pass(nil)
				returned <- err
				return nil
			}}, 1)
			w := wire(t, l)
			_, _ = w.Write(connectRequest(0))
			go func() { // ends with the pipe
				_, _ = w.server.Write(greetingOf(7, term))
			}()
			time.AfterFunc(time.Second, func() { end(l) })
			start := time.Now()
			_, err := w.Read(make([]byte, 1))
			require.Error(t, err, name)
			require.LessOrEqual(t, time.Since(start), term/3, name)
			require.Error(t, <-returned, name)
			require.Nil(t, l.Carried(), name)
		})
	}
}

// The login knows best what it waited for.
//
//zklock:promise P18.10
func TestTheErrorOfALoginThatRanOutOfTimeIsTheLogins(t *testing.T) {
	virtual(t, func(t *testing.T) {
		l := NewLink()
		l.SetLogin(Login{Name: "joe", Exchange: func(ctx context.Context, server string, pass func([]byte) ([]byte, error)) error {
			<-ctx.Done()
			return fmt.Errorf("no answer from the KDC: %w", context.Cause(ctx))
		}}, 1)
		w := wire(t, l)
		_, _ = w.Write(connectRequest(0))
		go func() { // ends with the pipe
			_, _ = w.server.Write(greetingOf(7, term))
		}()
		start := time.Now()
		_, err := w.Read(make([]byte, 1))
		require.ErrorContains(t, err, "no answer from the KDC")
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Less(t, time.Since(start), term/3)
	})
}
