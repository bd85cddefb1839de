// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// answering starts a server that greets each connection with its name and reads until the client closes it.
func answering(t *testing.T, name string) string {
	t.Helper()
	return serving(t, func(conn net.Conn) {
		_, _ = io.WriteString(conn, name)
		_, _ = io.Copy(io.Discard, conn)
	})
}

// echoing starts an echo server.
func echoing(t *testing.T) string {
	t.Helper()
	return serving(t, func(conn net.Conn) { _, _ = io.Copy(conn, conn) })
}

// serving starts a server on loopback.
func serving(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	// Ends when the listener is closed. The goroutine of a connection ends when the Switch closes the connection.
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				serve(conn)
			}()
		}
	}()
	return l.Addr().String()
}

func connect(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func greeting(conn net.Conn) string {
	buf := make([]byte, 1)
	n, _ := io.ReadFull(conn, buf)
	return string(buf[:n])
}

func TestSwitchMovesAndDropsItsConnections(t *testing.T) {
	set := &Set{}
	t.Cleanup(set.Close)
	sw, err := set.NewSwitch(answering(t, "a"))
	if err != nil {
		t.Fatal(err)
	}
	old := connect(t, sw.Addr())
	if got := greeting(old); got != "a" {
		t.Fatalf("greeted by %q", got)
	}
	sw.Point(answering(t, "b"))
	if got := greeting(old); got != "" {
		t.Errorf("the old connection still receives %q", got)
	}
	if got := greeting(connect(t, sw.Addr())); got != "b" {
		t.Errorf("greeted by %q after the move", got)
	}
	sw.Cut()
	if got := greeting(connect(t, sw.Addr())); got != "" {
		t.Errorf("greeted by %q after the cut", got)
	}
}

// TestADistanceDelaysAndKeepsTheOrder sends more bytes than one piece holds to an echo server.
func TestADistanceDelaysAndKeepsTheOrder(t *testing.T) {
	const delay = 20 * time.Millisecond
	set := &Set{}
	t.Cleanup(set.Close)
	sw, err := set.NewDistance(echoing(t), delay)
	if err != nil {
		t.Fatal(err)
	}
	conn := connect(t, sw.Addr())
	sent := make([]byte, 200_000)
	for i := range sent {
		sent[i] = byte(i % 251)
	}
	began := time.Now()
	wrote := make(chan error, 1)
	// Ends with the connection; the test receives its result.
	go func() {
		_, err := conn.Write(sent)
		wrote <- err
	}()
	got := make([]byte, len(sent))
	_, err = io.ReadFull(conn, got[:1])
	if took := time.Since(began); err != nil || took < 2*delay {
		t.Errorf("the first byte came back after %v (%v), with %v each way", took, err, delay)
	}
	if _, err := io.ReadFull(conn, got[1:]); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, sent) {
		t.Error("the bytes came back in another order")
	}
	if err := <-wrote; err != nil {
		t.Error(err)
	}
	if n := sw.Connections(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}

func TestEveryByteOfADistanceIsLate(t *testing.T) {
	const delay = 20 * time.Millisecond
	set := &Set{}
	t.Cleanup(set.Close)
	sw, err := set.NewDistance(echoing(t), delay)
	if err != nil {
		t.Fatal(err)
	}
	conn := connect(t, sw.Addr())
	for range 3 {
		began := time.Now()
		if _, err := io.WriteString(conn, "x"); err != nil {
			t.Fatal(err)
		}
		if got := greeting(conn); got != "x" || time.Since(began) < 2*delay {
			t.Errorf("%q came back after %v, with %v each way", got, time.Since(began), delay)
		}
	}
}

// TestADistanceEndsWithItsConnections relies on Close, which waits for all goroutines.
func TestADistanceEndsWithItsConnections(t *testing.T) {
	set := &Set{}
	t.Cleanup(set.Close)
	sw, err := set.NewDistance(answering(t, "a"), time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	conn := connect(t, sw.Addr())
	if got := greeting(conn); got != "a" {
		t.Fatalf("greeted by %q", got)
	}
	sw.Close()
	if got := greeting(conn); got != "" {
		t.Errorf("the connection still receives %q", got)
	}
	if n := sw.Connections(); n != 0 {
		t.Errorf("%d connections after the end", n)
	}
}

func TestRestartTriesAgainWhenTheServerEndsAtOnce(t *testing.T) {
	dir := t.TempDir()
	p := &Process{Name: "late", dir: dir, argv: []string{"sh", "-c", "[ -e once ] || { touch once; exit 1; }; touch up; exec sleep 60"}}
	p.ready = func(context.Context, *Process) error {
		_, err := os.Stat(filepath.Join(dir, "up"))
		return err
	}
	t.Cleanup(p.Kill)
	if err := p.Restart(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestSumMetricAddsAllSeries(t *testing.T) {
	text := "# HELP x\nx{a=\"1\"} 3\nx{a=\"2\"} 1e2\nxy{a=\"1\"} 7\n"
	if got := sumMetric(text, "x{"); got != 103 {
		t.Errorf("sum = %d", got)
	}
}

func TestFieldsReadsNamesAndValues(t *testing.T) {
	got := fields("# Server\r\nredis_version:7.0\r\n\r\nnothing\r\n", ":")
	if got["redis_version"] != "7.0" || len(got) != 1 {
		t.Errorf("fields = %v", got)
	}
}
