// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
)

// A session that comes when the time is over is too late, whatever the library noticed first. If it says more, that is shown.
func TestASessionThatComesTooLateIsNoSilentServer(t *testing.T) {
	answered := &dialer{trials: map[string]*trial{"a:1": {first: []byte{0, 0, 0, 37}}}}
	late := context.DeadlineExceeded
	for err, want := range map[error]string{
		late:                                   "no session within 1s: the time was too short",
		fmt.Errorf("connect to a:1: %w", late): "no session within 1s: the time was too short",
		fmt.Errorf("connect to a:1: %w", fmt.Errorf("%w (last error: %w)", late, net.ErrClosed)):    "no session within 1s: the time was too short",
		fmt.Errorf("connect to a:1: %w", fmt.Errorf("%w (last error: %w)", late, errors.New("no"))): "connect to a:1: no answer in time (last error: no)",
	} {
		assert.Equal(t, want, outcome.Explain(answered.failure(t.Context(), time.Second, err)))
	}
}

// The program ends when no server can be reached. Its log must name the last one by then.
func TestTheLogNamesEachServerBeforeTheProgramGivesUp(t *testing.T) {
	refusing, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	refusing.Close()
	address := refusing.Addr().String()
	var log bytes.Buffer
	logged := ""
	d, err := new(Flags).newDialer(slog.New(slog.NewTextHandler(&log, nil)))
	require.NoError(t, err)
	t.Cleanup(d.abort)
	d.servers, d.failed, d.allFail = 1, map[string]bool{}, func(error) { logged = log.String() }
	_, err = d.dial("tcp", address, time.Second)
	require.Error(t, err)
	assert.Contains(t, logged, `msg="cannot connect" server=`+address)
}

// A server that accepts connections and does not answer may be the first of its name.
func TestADialOfANameBeginsWithAnotherOfItsAddressesEachTime(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	other, err := net.Listen("tcp", net.JoinHostPort("127.0.0.2", port))
	if err != nil {
		t.Skip("127.0.0.2 is not an address of this machine: ", err)
	}
	defer other.Close()
	d, err := new(Flags).newDialer(slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(d.abort)
	d.resolve = func(_ context.Context, host string) ([]string, error) {
		require.Equal(t, "zk.example", host)
		return []string{"127.0.0.1", "127.0.0.2", "127.0.0.3"}, nil // nothing listens at the last one
	}
	var dialed []string
	for range 4 {
		conn, err := d.dial("tcp", net.JoinHostPort("zk.example", port), 10*time.Second)
		require.NoError(t, err)
		host, _, err := net.SplitHostPort(conn.RemoteAddr().String())
		require.NoError(t, err)
		dialed = append(dialed, host)
		conn.Close()
	}
	assert.Equal(t, []string{"127.0.0.1", "127.0.0.2", "127.0.0.1", "127.0.0.1"}, dialed)
}

func TestAReportIsAboutOneServer(t *testing.T) {
	s := &Flags{Servers: "zk:2181", Patience: time.Second}
	_, abort, err := s.Dialing()
	require.NoError(t, err)
	t.Cleanup(abort)
	for _, found := range [][]string{{"10.0.0.2", "10.0.0.1"}, {"10.0.0.1", "10.0.0.2"}} {
		s.dialer.resolve = func(context.Context, string) ([]string, error) { return found, nil }
		got, _ := s.dialer.hosts(t.Context(), "zk:2181")
		assert.Equal(t, []string{"10.0.0.1", "10.0.0.2"}, got)
	}
}

func TestAServerWithAnAddressOfEachFamilyIsDialedByItsName(t *testing.T) {
	for _, c := range []struct {
		address string
		found   []string
		want    []string
	}{
		{"zk:2181", []string{"10.0.0.1"}, []string{"10.0.0.1"}},
		{"zk:2181", []string{"2001:db8::1", "10.0.0.1"}, nil},
		{"zk:2181", nil, nil},
		{"10.0.0.9:2181", []string{"10.0.0.1", "10.0.0.2"}, nil},
		{"zk:2181", []string{"2001:db8::1", "2001:db8::2"}, []string{"2001:db8::1", "2001:db8::2"}},
		{"zk:2181", []string{"10.0.0.1", "10.0.0.2", "2001:db8::1"}, []string{"10.0.0.1", "10.0.0.2", "2001:db8::1"}},
	} {
		d, err := new(Flags).newDialer(slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		t.Cleanup(d.abort)
		d.resolve = func(context.Context, string) ([]string, error) { return c.found, nil }
		got, _ := d.hosts(t.Context(), c.address)
		assert.Equal(t, c.want, got, "%v", c.found)
	}
}
