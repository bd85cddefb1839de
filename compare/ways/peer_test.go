// SPDX-License-Identifier: Apache-2.0

package ways

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/zklock-go/zklock/internal/evidence/peer"
)

// TestMain makes the test program serve as the peer process if it is started as one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == PeerCommand {
		_ = peer.Serve(os.Stdin, os.Stdout, newPeerServer(&localWay{}).serve)
		return
	}
	os.Exit(m.Run())
}

// localWay is a lock in memory, to test the protocol without a server.
type localWay struct {
	plain
	mu     sync.Mutex
	grants int64 // guarded by mu
}

func (w *localWay) Open(context.Context) (Session, error) { return localSession{w}, nil }

type localSession struct{ way *localWay }

func (s localSession) Close() error { return nil }
func (s localSession) Locker(_ context.Context, name string) (Locker, error) {
	if name == "broken" {
		return nil, errors.New("two\nlines")
	}
	return &localLocker{way: s.way}, nil
}

type localLocker struct {
	way   *localWay
	token int64
}

func (l *localLocker) Lock(context.Context) error {
	l.way.mu.Lock()
	l.way.grants++
	l.token = l.way.grants
	return nil
}

func (l *localLocker) Unlock(context.Context) error {
	l.token = 0
	l.way.mu.Unlock()
	return nil
}

func (l *localLocker) Held(context.Context) bool { return l.token > 0 }
func (l *localLocker) Token() int64              { return l.token }
func (l *localLocker) Close() error              { return nil }

func newPeer(t *testing.T) *Peer {
	t.Helper()
	p, err := Spawn(&localWay{}, Endpoints{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

func must[T any](t *testing.T, v T, err error) T {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestPeerLocksInAnotherProcess(t *testing.T) {
	ctx := t.Context()
	p := newPeer(t)
	session, err := p.Open(ctx)
	must(t, session, err)
	a, err := session.Locker(ctx, "x")
	must(t, a, err)
	b, err := session.Locker(ctx, "x")
	must(t, b, err)
	must(t, 0, a.Lock(ctx))
	if a.Token() != 1 || !a.Held(ctx) {
		t.Errorf("token %d, held %v", a.Token(), a.Held(ctx))
	}
	got := make(chan error, 1)
	// Ends with the lock or with the peer; the test receives its result.
	go func() { got <- b.Lock(ctx) }()
	// A request sent after b's is answered, so the waiting one does not block it.
	if b.Held(ctx) {
		t.Error("two contenders hold at the same time")
	}
	must(t, 0, a.Unlock(ctx))
	must(t, 0, <-got)
	if b.Token() != 2 || a.Held(ctx) {
		t.Errorf("token %d, the first still holds: %v", b.Token(), a.Held(ctx))
	}
}

func TestPeerReturnsErrorsOnOneLine(t *testing.T) {
	p := newPeer(t)
	session, err := p.Open(t.Context())
	must(t, session, err)
	if _, err := session.Locker(t.Context(), "broken"); err == nil || err.Error() != "two lines" {
		t.Errorf("error = %v", err)
	}
}

func TestKillingAPeerEndsAllCalls(t *testing.T) {
	ctx := t.Context()
	p := newPeer(t)
	session, err := p.Open(ctx)
	must(t, session, err)
	a, err := session.Locker(ctx, "x")
	must(t, a, err)
	b, err := session.Locker(ctx, "x")
	must(t, b, err)
	must(t, 0, a.Lock(ctx))
	got := make(chan error, 1)
	// Ends with the peer; the test receives its result.
	go func() { got <- b.Lock(ctx) }()
	p.Kill()
	// The request may have been in flight, or not yet written.
	if err := <-got; err == nil {
		t.Error("a dead peer granted the lock")
	}
	if _, err := p.Open(ctx); !errors.Is(err, peer.ErrGone) {
		t.Errorf("error = %v", err)
	}
}

func TestServePeerRefusesWrongArguments(t *testing.T) {
	for _, args := range [][]string{nil, {"zklock"}, {"zklock", "{", "4s"}, {"no such way", "{}", "4s"}, {"zklock", "{}", "long"}} {
		if err := ServePeer(args, strings.NewReader(""), io.Discard); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
}

func TestWaysHaveDistinctNames(t *testing.T) {
	seen := map[string]bool{}
	for _, w := range append(All(Endpoints{}), Floors(Endpoints{})...) {
		info := w.Info()
		if info.Name == "" || info.Family == "" || info.How == "" || seen[info.Name] {
			t.Errorf("%+v", info)
		}
		seen[info.Name] = true
		if named, err := Named(info.Name, Endpoints{}); err != nil || named.Info() != info {
			t.Errorf("Named(%q): %v", info.Name, err)
		}
	}
}
