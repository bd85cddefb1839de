// SPDX-License-Identifier: Apache-2.0

package ways

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/zklock-go/zklock/internal/evidence/peer"
)

// PeerCommand is the first argument of the comparison's own program that makes it serve as a peer.
const PeerCommand = "peer"

// ServePeer serves as a peer for a way in Go. args are the name of the way, the endpoints and the lease. It returns when in
// ends.
func ServePeer(args []string, in io.Reader, out io.Writer) (err error) {
	if len(args) != 3 {
		return errors.New("usage: peer WAY ENDPOINTS LEASE")
	}
	var at Endpoints
	if err := json.Unmarshal([]byte(args[1]), &at); err != nil {
		return err
	}
	if Lease, err = time.ParseDuration(args[2]); err != nil {
		return err
	}
	way, err := Named(args[0], at)
	if err != nil {
		return err
	}
	return peer.Serve(in, out, newPeerServer(way).serve)
}

// peerServer executes the requests to a peer with a way in Go. Its contenders are lockers of the way.
type peerServer struct {
	way Way

	mu       sync.Mutex
	last     int                // guarded by mu
	sessions map[string]Session // guarded by mu
	lockers  map[string]Locker  // guarded by mu
}

func newPeerServer(way Way) *peerServer {
	return &peerServer{way: way, sessions: map[string]Session{}, lockers: map[string]Locker{}}
}

func (s *peerServer) serve(verb string, args []string) (string, error) {
	ctx := context.Background()
	switch verb {
	case "open":
		opened, err := s.way.Open(ctx)
		return add(s, s.sessions, opened, err)
	case "contender":
		return s.contender(ctx, args)
	case "end":
		session, err := known(s, s.sessions, "session", args[0])
		if err != nil {
			return "", err
		}
		return "", session.Close()
	}
	locker, err := known(s, s.lockers, "contender", args[0])
	if err != nil {
		return "", err
	}
	return ask(ctx, locker, verb)
}

func (s *peerServer) contender(ctx context.Context, args []string) (string, error) {
	session, err := known(s, s.sessions, "session", args[0])
	if err != nil {
		return "", err
	}
	if args[1] != peer.Plain {
		return "", fmt.Errorf("no such kind: %s", args[1])
	}
	made, err := session.Locker(ctx, args[2])
	return add(s, s.lockers, made, err)
}

// ask executes a request to a contender with its locker.
func ask(ctx context.Context, locker Locker, verb string) (string, error) {
	switch verb {
	case "lock":
		err := locker.Lock(ctx)
		if err != nil {
			return "", err
		}
		return strconv.FormatInt(locker.Token(), 10), nil
	case "unlock":
		return "", locker.Unlock(ctx)
	case "held":
		return strconv.FormatBool(locker.Held(ctx)), nil
	case "close":
		return "", locker.Close()
	case "sign":
		if teller, ok := locker.(Teller); ok {
			said, err := teller.Sign(ctx)
			return string(said), err
		}
	}
	return "", fmt.Errorf("this way does not support %s", verb)
}

// add stores a new session or locker and returns its number. If err is not nil, it returns err.
func add[T any](s *peerServer, all map[string]T, one T, err error) (string, error) {
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	number := strconv.Itoa(s.last)
	all[number] = one
	return number, nil
}

func known[T any](s *peerServer, all map[string]T, what, number string) (T, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := all[number]
	if !ok {
		return one, fmt.Errorf("no such %s: %s", what, number)
	}
	return one, nil
}
