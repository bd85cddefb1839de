// SPDX-License-Identifier: Apache-2.0

package zktest_test

import (
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/evidence/wire"
	"github.com/zklock-go/zklock/zktest"
)

const (
	benchClients = 8
	benchWindow  = 64 // requests each client has under way
)

// BenchmarkReads is one getData per iteration, spread over 8 pipelining clients.
func BenchmarkReads(b *testing.B) {
	srv := zktest.Start(b)
	require.NoError(b, srv.PutNode("/x", []byte("some data")))
	pipeline(b, srv, 4, wire.NewBody().Str("/x").Bool(false))
}

// BenchmarkEphemeralSequentialCreates is one create per iteration, likewise.
func BenchmarkEphemeralSequentialCreates(b *testing.B) {
	srv := zktest.Start(b)
	require.NoError(b, srv.PutNode("/dir", nil))
	pipeline(b, srv, 1, create("/dir/n-", 3))
}

// BenchmarkEnsembleCreates is the same through the followers of three members.
func BenchmarkEnsembleCreates(b *testing.B) {
	srv := zktest.Start(b, zktest.Options{Servers: 3})
	require.NoError(b, srv.PutNode("/dir", nil))
	pipeline(b, srv, 1, create("/dir/n-", 3))
}

// pipeline sends b.N requests in batches of half a window and reads the
// replies at the same time.
func pipeline(b *testing.B, srv *zktest.Server, op int32, body *wire.Body) {
	frame := wire.NewBody().Int(1).Int(op).Add(body).Framed()
	var wg sync.WaitGroup
	conns := make([]net.Conn, benchClients)
	addrs := srv.Addrs()
	for i := range conns {
		nc, err := srv.Dial("tcp", addrs[i%len(addrs)], time.Second)
		require.NoError(b, err)
		_, err = wire.New(nc).Connect(wire.Hello{Timeout: 40000})
		require.NoError(b, err)
		conns[i] = nc
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i, nc := range conns {
		n := b.N / benchClients
		if i < b.N%benchClients {
			n++
		}
		window := make(chan struct{}, benchWindow)
		wg.Add(2)
		// Both belong to this benchmark: they end with their share of the work.
		go func() {
			defer wg.Done()
			send(b, nc, frame, n, window)
		}()
		go func() {
			defer wg.Done()
			receive(b, nc, n, window)
		}()
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
	for _, nc := range conns {
		_ = nc.Close()
	}
}

func send(b *testing.B, nc net.Conn, frame []byte, n int, window chan struct{}) {
	var batch []byte
	for range n {
		window <- struct{}{}
		batch = append(batch, frame...)
		if len(window) < cap(window)/2 && len(batch) < 32*len(frame) {
			continue
		}
		if _, err := nc.Write(batch); err != nil {
			b.Error(err)
			return
		}
		batch = batch[:0]
	}
	if _, err := nc.Write(batch); err != nil {
		b.Error(err)
	}
}

func receive(b *testing.B, nc net.Conn, n int, window chan struct{}) {
	buf := make([]byte, 64<<10)
	left := 0 // bytes of the frame under way
	var head [4]byte
	have := 0
	for n > 0 {
		k, err := nc.Read(buf)
		if err != nil {
			b.Error(err)
			return
		}
		for p := buf[:k]; len(p) > 0; {
			if left == 0 {
				head[have] = p[0]
				p = p[1:]
				if have++; have == 4 {
					have, left = 0, int(head[0])<<24|int(head[1])<<16|int(head[2])<<8|int(head[3])
				}
				continue
			}
			take := min(left, len(p))
			p = p[take:]
			if left -= take; left == 0 {
				n--
				<-window
			}
		}
	}
}

// BenchmarkIdleSessions reports the memory of one idle session, both ends of
// its pipe included.
func BenchmarkIdleSessions(b *testing.B) {
	srv := zktest.Start(b)
	var before, after runtime.MemStats
	const sessions = 500
	for range b.N {
		runtime.GC()
		runtime.ReadMemStats(&before)
		var conns []net.Conn
		for range sessions {
			nc, err := srv.Dial("tcp", "", time.Second)
			require.NoError(b, err)
			_, err = wire.New(nc).Connect(wire.Hello{Timeout: 40000})
			require.NoError(b, err)
			conns = append(conns, nc)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		used := after.HeapAlloc + after.StackInuse - before.HeapAlloc - before.StackInuse
		b.ReportMetric(float64(used)/sessions, "B/session")
		for _, nc := range conns {
			_ = nc.Close()
		}
	}
}
