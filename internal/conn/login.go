package conn

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/digestmd5"
	"github.com/zklock-go/zklock/internal/frames"
	"github.com/zklock-go/zklock/internal/plain"
)

// gate knows what a connection begins with, and whether servers let this client in.
type gate struct {
	mu      sync.Mutex            // guards what follows
	login   *digestmd5.Credential // nil: none
	denials int                   // connections in a row on which servers refused this client
	most    int                   // so many of them are too many; zero: no number is
	why     error                 // of the last one
}

func (g *gate) set(login digestmd5.Credential, most int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.login, g.most = &login, most
}

// key returns what a connection begins with, nil for nothing.
func (g *gate) key() *digestmd5.Credential {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.login
}

// deny notes that a server has refused a login, or a client without one.
func (g *gate) deny(why error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.denials++
	g.why = why
}

// admit notes that a server has taken the login: from then on no denial is final.
func (g *gate) admit() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.most = 0
}

// serve notes that a server has answered a request.
func (g *gate) serve() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.denials = 0
}

// isShut reports whether the last server that was reached refused this client.
func (g *gate) isShut() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.denials > 0
}

// verdict returns why nobody will be let in, nil if somebody may be.
func (g *gate) verdict() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.most == 0 || g.denials < g.most {
		return nil
	}
	return shownError{g.why}
}

// loginXid is the number of a login's requests. The client library begins with 1.
const loginXid = 0

// errRefused is what a server answers to a request before a login that it requires.
var errRefused = fmt.Errorf("%w: the server serves only clients that have authenticated, as by SASL", zk.ErrAuthFailed)

// logIn proves to the server at the other end of conn that we know the login's password, and
// has it prove the same. Nothing else may be sent or read meanwhile. An error that wraps
// zk.ErrAuthFailed is a refusal.
func logIn(conn io.Writer, in *frames.Reader, login digestmd5.Credential) error {
	err := exchange(func(token []byte) ([]byte, error) { return pass(conn, in, token) }, login)
	if err != nil {
		return fmt.Errorf("SASL as %s: %w", login.User, err)
	}
	return nil
}

// exchange is the mechanism; pass sends a token and returns the server's.
func exchange(pass func(token []byte) ([]byte, error), login digestmd5.Credential) error {
	challenge, err := pass(nil)
	switch {
	case err != nil:
		return err
	case challenge == nil:
		return fmt.Errorf("%w: the server does not serve SASL", zk.ErrAuthFailed)
	}
	answer, proof, err := login.Answer(challenge, rand.Text())
	if err != nil {
		return fmt.Errorf("%w: %w", zk.ErrAuthFailed, err)
	}
	token, err := pass(answer)
	switch {
	case err != nil:
		return err
	case !bytes.Equal(token, proof):
		return fmt.Errorf("%w: the server has not proved that it knows the password", zk.ErrAuthFailed)
	}
	return nil
}

// pass sends a token and returns the server's, nil for none.
func pass(conn io.Writer, in *frames.Reader, token []byte) ([]byte, error) {
	if _, err := conn.Write(frames.SASL(loginXid, token)); err != nil {
		return nil, err
	}
	frame, err := in.Next(frames.MaxToken)
	if err != nil {
		return nil, fmt.Errorf("no answer from the server: %w", err)
	}
	r, err := frames.ParseReply(frame)
	switch {
	case err != nil:
		return nil, err
	case r.Xid != loginXid:
		return nil, frames.ErrMalformed
	case r.Code == frames.CodeAuthFailed || r.Code == frames.CodeRequiresSASL:
		return nil, fmt.Errorf("%w: the server refuses the user or the password", zk.ErrAuthFailed)
	case r.Code != frames.CodeOK:
		return nil, fmt.Errorf("the server refuses with the code %d", r.Code)
	}
	return frames.ParseToken(r.Body)
}

// shownError is an error whose text can be printed.
type shownError struct{ error }

func (e shownError) Error() string { return plain.Short(e.error.Error(), 1000) }
func (e shownError) Unwrap() error { return e.error }
