// SPDX-License-Identifier: Apache-2.0

package zktest_test

import (
	"io"
	"testing"
	"time"

	"github.com/zklock-go/zklock/internal/evidence/wire"
	"github.com/zklock-go/zklock/zktest"
)

// seeds are bodies of real requests, for the fuzzer to begin with.
func seeds() [][]byte {
	header := func(op int32) *wire.Body { return wire.NewBody().Int(7).Int(op) }
	return [][]byte{
		header(1).Add(create("/a", 3)).Bytes(),
		header(2).Str("/a").Int(-1).Bytes(),
		header(4).Str("/a").Bool(true).Bytes(),
		header(5).Str("/").Buf([]byte("x")).Int(0).Bytes(),
		header(7).Str("/").Int(1).Int(31).Str("ip").Str("127.0.0.1/8").Int(-1).Bytes(),
		header(12).Str("/").Bool(true).Bytes(),
		header(14).Int(1).Bool(false).Int(-1).Add(create("/b", 0)).Int(2).Bool(false).Int(-1).Str("/b").Int(0).Int(-1).Bool(true).Int(-1).Bytes(),
		header(20).Bytes(),
		header(21).Add(create("/t", 5)).Long(1000).Bytes(),
		header(22).Int(4).Bool(false).Int(-1).Str("/").Bool(false).Int(-1).Bool(true).Int(-1).Bytes(),
		header(100).Int(0).Str("digest").Buf([]byte("a:b")).Bytes(),
		header(101).Long(0).Strs([]string{"/a", "/"}).Strs([]string{"/b"}).Strs([]string{"/"}).Bytes(),
		header(105).Long(0).Strs(nil).Strs(nil).Strs(nil).Strs([]string{"/"}).Strs([]string{"/"}).Bytes(),
		header(106).Str("/").Int(1).Bytes(),
		header(18).Str("/").Int(3).Bytes(),
		header(103).Str("/").Bytes(),
		header(-11).Bytes(),
		header(11).Bytes(),
	}
}

// FuzzFrame decodes arbitrary frames: none may panic, and none may make the
// server keep more than its own length accounts for.
func FuzzFrame(f *testing.F) {
	for _, seed := range seeds() {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		if kept := zktest.DecodeFrame(frame); kept > len(frame) {
			t.Fatalf("%d bytes made the server keep %d items", len(frame), kept)
		}
	})
}

// FuzzConnection sends arbitrary bytes behind a connect request. The server
// must survive them, serve somebody else, and end without a trace.
func FuzzConnection(f *testing.F) {
	for _, seed := range seeds() {
		framed := wire.NewBody().Buf(seed).Bytes() // a buffer on the wire is a frame
		f.Add(true, framed)
		f.Add(false, framed)
		f.Add(true, append(framed, framed...))
	}
	f.Add(false, []byte("mntr"))
	f.Fuzz(func(t *testing.T, attach bool, bytes []byte) {
		srv := zktest.Start(t)
		if err := srv.PutNode("/a", nil); err != nil {
			t.Fatal(err)
		}
		nc, err := srv.Dial("tcp", "", time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if attach {
			if _, err := wire.New(nc).Connect(wire.Hello{Timeout: 4000}); err != nil {
				t.Fatal(err)
			}
		}
		drained := make(chan struct{})
		// Ends when the connection does; the deferred receive waits for it.
		go func() {
			defer close(drained)
			_, _ = io.Copy(io.Discard, nc)
		}()
		_, _ = nc.Write(bytes)
		other, _ := raw(t, srv, srv.Member(0), wire.Hello{Timeout: 10000})
		if err := other.Send(1, 3, wire.NewBody().Str("/").Bool(false)); err != nil {
			t.Fatal(err)
		}
		if frame, err := other.Read(); err != nil || frame.Err != 0 {
			t.Fatalf("the server no longer serves others: %+v, %v", frame, err)
		}
		_ = nc.Close()
		<-drained
		srv.Close()
	})
}
