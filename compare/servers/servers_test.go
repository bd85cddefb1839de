package servers

import (
	"io"
	"net"
	"testing"
)

// answering starts a server that greets each connection with its name and then waits for its end.
func answering(t *testing.T, name string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	// Ends with the listener; a connection's goroutine ends with the connection, which the Switch's Close sees to.
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.WriteString(conn, name)
				_, _ = io.Copy(io.Discard, conn)
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
	sw, err := set.newSwitch(answering(t, "a"))
	if err != nil {
		t.Fatal(err)
	}
	old := connect(t, sw.Addr())
	if got := greeting(old); got != "a" {
		t.Fatalf("greeted by %q", got)
	}
	sw.Point(answering(t, "b"))
	if got := greeting(old); got != "" {
		t.Errorf("the old connection still hears %q", got)
	}
	if got := greeting(connect(t, sw.Addr())); got != "b" {
		t.Errorf("greeted by %q after the move", got)
	}
	sw.Cut()
	if got := greeting(connect(t, sw.Addr())); got != "" {
		t.Errorf("greeted by %q after the cut", got)
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
