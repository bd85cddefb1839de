// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/digestmd5"
	"github.com/zklock-go/zklock/internal/frames"
)

// loginXid is the number of the requests that a connection starts with: a login and credentials.
// All other requests have numbers from 1 on.
const loginXid = 0

// errClosed is the error of a dial or a login after the link was closed.
var errClosed = errors.New("client is closed")

// errRefused reports that a server requires a login before the request that it received.
var errRefused = fmt.Errorf("%w: server requires clients to authenticate, for example with SASL", zk.ErrAuthFailed)

// Login is a SASL mechanism with its credential.
type Login struct {
	Name string // who logs in, for error texts
	// Key is equal for logins that are the same. It is nil for one that is like no other.
	Key any
	// Exchange proves to a server who the client is. pass sends a token and returns the server's
	// token, or nil if it has none. An error that wraps zk.ErrAuthFailed is a refusal.
	Exchange func(ctx context.Context, server string, pass func(token []byte) ([]byte, error)) error
}

// Digest returns the login with the mechanism DIGEST-MD5.
func Digest(c digestmd5.Credential) Login {
	return Login{Name: c.User, Key: c, Exchange: func(_ context.Context, _ string, pass func(token []byte) ([]byte, error)) error {
		return exchange(pass, c)
	}}
}

// isLike reports whether both logins are the same.
func (l Login) isLike(other Login) bool { return l.Key != nil && l.Key == other.Key }

// logIn runs a login on conn. Nothing else may be sent or read at the same time. It returns at the
// deadline, or when closing is closed, even if the login does not return: a login is the program's,
// and may wait for other servers. An error that wraps zk.ErrAuthFailed is a refusal.
func logIn(closing <-chan struct{}, conn *serverConn, in *frames.Reader, deadline time.Time, login Login) error {
	left := time.Until(deadline)
	late := time.NewTimer(left)
	defer late.Stop()
	// The login's time is a little shorter: its own error says what it waited for.
	ctx, cancel := context.WithDeadlineCause(context.Background(), deadline.Add(-left/20), os.ErrDeadlineExceeded)
	defer cancel()
	type answer struct {
		token []byte
		err   error
	}
	tokens, answers, result := make(chan []byte), make(chan answer, 1), make(chan error, 1)
	ask := func(token []byte) ([]byte, error) {
		select {
		case tokens <- token:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		select {
		case a := <-answers:
			return a.token, a.err
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	// Owned by the program, whose login it runs; ctx stops it; Close does not wait for it.
	go func() { result <- login.Exchange(ctx, conn.address, ask) }()
	for {
		var err error
		select {
		case token := <-tokens:
			a, err := pass(conn, in, token)
			answers <- answer{a, err}
			continue
		case err = <-result:
			if err == nil {
				err = context.Cause(ctx)
			}
		case <-late.C:
			err = os.ErrDeadlineExceeded
		case <-closing:
			err = errClosed
		}
		if err != nil {
			return fmt.Errorf("SASL login as %s: %w", login.Name, err)
		}
		return nil
	}
}

// exchange is the mechanism DIGEST-MD5; pass sends a token and returns the server's token.
func exchange(pass func(token []byte) ([]byte, error), login digestmd5.Credential) error {
	challenge, err := pass(nil)
	switch {
	case errors.Is(err, zk.ErrAuthFailed): // before the server knows the user
		return fmt.Errorf("%w: server does not offer DIGEST-MD5 (ZooKeeper 3.9.6 and later refuse it unless zookeeper.fips-mode is false)", zk.ErrAuthFailed)
	case err != nil:
		return err
	case challenge == nil:
		return fmt.Errorf("%w: server does not support SASL", zk.ErrAuthFailed)
	}
	answer, proof, err := login.Answer(challenge, rand.Text())
	if err != nil {
		return fmt.Errorf("%w: %w", zk.ErrAuthFailed, err)
	}
	token, err := pass(answer)
	switch {
	case errors.Is(err, zk.ErrAuthFailed):
		return fmt.Errorf("%w: server rejected the user name or password", zk.ErrAuthFailed)
	case err != nil:
		return err
	case !bytes.Equal(token, proof):
		return fmt.Errorf("%w: server did not prove that it knows the password", zk.ErrAuthFailed)
	}
	return nil
}

// pass sends a token and returns the server's token, or nil if it has none.
func pass(conn io.Writer, in *frames.Reader, token []byte) ([]byte, error) {
	if _, err := conn.Write(frames.SASL(loginXid, token)); err != nil {
		return nil, err
	}
	r, err := readLoginReply(in)
	switch {
	case err != nil:
		return nil, err
	case r.Code == frames.CodeAuthFailed || r.Code == frames.CodeRequiresSASL:
		return nil, fmt.Errorf("%w: server rejected the login", zk.ErrAuthFailed)
	case r.Code != frames.CodeOK:
		return nil, fmt.Errorf("server rejected the login with code %d", r.Code)
	}
	return frames.ParseToken(r.Body)
}

// errCredential returns the error for a credential that a server has refused with a code.
func errCredential(code int32) error {
	return fmt.Errorf("server rejected a credential: %w", frames.ErrorOf(code))
}

// present presents credentials on conn, one after another. Nothing else may be sent or read at the
// same time. refused means that the server has refused one.
func present(conn io.Writer, in *frames.Reader, credentials []frames.Request) (refused bool, err error) {
	for _, credential := range credentials {
		credential = slices.Clone(credential) // other connections present it as well
		credential.Number(loginXid)
		if _, err := conn.Write(credential); err != nil {
			return false, err
		}
		r, err := readLoginReply(in)
		switch {
		case err != nil:
			return false, err
		case r.Code != frames.CodeOK:
			return true, errCredential(r.Code)
		}
	}
	return false, nil
}

// readLoginReply reads the reply to one of the requests that a connection starts with.
func readLoginReply(in *frames.Reader) (frames.Reply, error) {
	frame, err := in.Next(frames.MaxToken)
	if err != nil {
		return frames.Reply{}, fmt.Errorf("no reply from server: %w", err)
	}
	r, err := frames.ParseReply(frame)
	if err == nil && r.Xid != loginXid {
		err = frames.ErrMalformed
	}
	return r, err
}
