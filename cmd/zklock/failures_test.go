// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zktest"
)

// failures are calls that fail, for each kind of failure that zklock can tell. The words in capitals stand for addresses, for a
// directory and for the executable files in it.
var failures = []string{
	// Wrong calls.
	"nosuch",
	"rnu",
	"run --nowait /a -- true",
	"run -x /a -- true",
	"run --wait 5 /a -- true",
	"run --wait -1s /a -- true",
	"run --wait soon /a -- true",
	"run --wait",
	"run --wait /a -- true",
	"run --semaphore x /a -- true",
	"run --semaphore 0 /a -- true",
	"run --semaphore 2 --shared /a -- true",
	"run --semaphore 2 --lock-delay 1s /a -- true",
	"run --quiet=maybe --once x /a -- true",
	"run --quiet /a -- true",
	"run --at-most-once /a -- true",
	"run --at-least -1s /a -- true",
	"run --every dayly /a -- true",
	"run --every 90m /a -- true",
	"run --every 24h@Nowhere /a -- true",
	"run --once daily /a -- true",
	"run --once 1 /a -- true",
	"run --once x --every 1h /a -- true",
	"run --once x --shared /a -- true",
	"run --no-wait --wait 1s /a -- true",
	"run -E 256 /a -- true",
	"run --grace -1s /a -- true",
	"run --grace 1h --session-timeout 1s /a -- true",
	"run --session-timeout 1ns /a -- true",
	"run --session-timeout -1s /a -- true",
	"run --label LABEL /a -- true",
	"run --lock-delay -1s /a -- true",
	"run --connect-timeout 0s /a -- true",
	"run",
	"run -- true",
	"run /a",
	"run /a --",
	"run /a true",
	"run /a /b -- true",
	"run a -- true",
	"run / -- true",
	"run /zookeeper/a -- true",
	"run --root x /a -- true",
	"run --acl x /a -- true",
	"run --acl world:anyone:x /a -- true",
	"run --acl world:anyone: /a -- true",
	"run --acl auth::cdrwa /a -- true",
	"run --acl nosuch:x:cdrwa /a -- true",
	"run --auth x /a -- true",
	"run --auth sasl:x /a -- true",
	"run --servers http://zk1:2181 /a -- true",
	"run --servers zk1:99999 /a -- true",
	"run --servers , /a -- true",
	"run --servers zk1:2181/x,zk2:2181/y /a -- true",
	"run --tls-ca DIR/nosuch /a -- true",
	"run --tls-ca DIR/text /a -- true",
	"run --tls-cert DIR/text /a -- true",
	"run --tls-cert DIR/nosuch --tls-key DIR/text /a -- true",
	"run --tls-cert DIR/text --tls-key DIR/text /a -- true",
	"elect",
	"elect --no-wait /e",
	"elect --watch /e -- true",
	"ls",
	"ls /a /b",
	"ls a",
	"ls --cycles --watch /",
	"top --limit -1",
	"top a",
	"web --listen nowhere",
	"web --listen nosuch.invalid:1",
	"web --public-url x",
	"web --https-cert DIR/text",
	"web --https-cert DIR/text --https-key DIR/text",
	"revoke",
	"revoke --node= /a",
	"evict /a",
	"evict --node x --all /a",
	"serve --members 0",
	"serve extra",
	"demo --items 1",
	"demo --workers 1000",
	"demo --html DIR/nosuch/x",
	"completion",
	"completion bsh",

	// Servers that are not there, or do not talk as ZooKeeper servers do.
	"ls --servers REFUSING /a",
	"run --servers REFUSING --connect-timeout 2s /a -- true",
	"ls --servers nosuch.invalid:2181 --connect-timeout 1m /a",
	"ls --servers SILENT --connect-timeout 1s /a",
	"run --servers SILENT --wait 1s /a -- true",
	"ls --servers HTTP --connect-timeout 3s /a",
	"ls --servers SSH --connect-timeout 3s /a",
	"ls --servers CLOSING --connect-timeout 3s /a",
	"ls --servers TLS --connect-timeout 3s /a",
	"ls --servers TLS --tls --connect-timeout 1m /a",
	"ls --servers ZK --tls --connect-timeout 1m /a",
	"ls --servers SILENT --tls --connect-timeout 900ms /a",
	"ls --servers HTTP --tls --connect-timeout 1m /a",
	"ls --servers UNANSWERING --connect-timeout 2s /a",
	"evict --servers UNANSWERING --connect-timeout 2s --all /a",

	// What the servers refuse, and what they do not have.
	"run --auth nosuch:x /a -- true",
	"run --auth sasl:user:password /a -- true",
	"run /private/a -- true",
	"ls /private/a",
	"ls -r /private",
	"evict --all /private/a",
	"elect /e",
	"revoke /none",
	"evict --holders /none",
	"evict --node x /held",

	// A lock that is not free.
	"run --no-wait /held -- true",
	"run --wait 3s /held -- true",
	"run --wait 3s --shared /held -- true",
	"run --semaphore 2 /held -- true",
	"elect --no-wait /led -- true",

	// Commands that cannot be run, and a port that is taken.
	"run /a -- nosuch",
	"run /a -- DIR/nosuch",
	"run /a -- DIR/text",
	"run /a -- DIR",
	"run /a -- DIR/no-interpreter",
	"serve --listen ZK",
	"web --listen ZK",
}

// TestEveryFailureIsReportedInPlainWords compares what zklock says with testdata/failures.txt. Run it with -args -update to write
// the file.
func TestEveryFailureIsReportedInPlainWords(t *testing.T) {
	t.Parallel()
	p := newPlaces(t)
	golden := filepath.Join("testdata", "failures.txt")
	text, err := os.ReadFile(golden)
	require.NoError(t, err)
	known := strings.SplitAfter(string(text), ")\n\n")
	told := make([]string, len(failures)) // by the index of the call
	t.Run("calls", func(t *testing.T) {
		for i, call := range failures {
			t.Run(call, func(t *testing.T) {
				t.Parallel()
				told[i] = p.told(t, call)
				assert.NotRegexp(t, foreignWords, told[i])
				for line := range strings.Lines(told[i]) {
					assert.LessOrEqual(t, len(line), 240, line)
				}
				if !*update {
					require.Len(t, known, len(failures), "failures.txt is of another list")
					assert.Equal(t, strings.TrimSpace(known[i]), told[i])
				}
			})
		}
	})
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(strings.Join(told, "\n\n")+"\n"), 0o600))
	}
}

// foreignWords are words of Go's libraries and of the client library.
var foreignWords = regexp.MustCompile(`context (deadline|canceled)|i/o timeout|dial |lookup |\btcp\b|\bbind:|\bread:|\bEOF\b|exec:|\$PATH|stat /|open /|fork/exec|parse error|flag provided|zk: |zktest:|tls: |x509: `)

// places are the servers and files that the failures mention.
type places struct {
	address map[string]string
	dir     string
	host    string
}

func newPlaces(t *testing.T) *places {
	srv, mute := zktest.Run(t, zktest.Options{TickTime: tickTime}), zktest.Run(t, zktest.Options{TickTime: tickTime})
	never := make(chan struct{})
	t.Cleanup(func() { close(never) })
	mute.Intercept(func(r *zktest.Request) zktest.Verdict {
		if strings.HasPrefix(r.Path, "/a") {
			return zktest.Hold(never)
		}
		return zktest.Pass
	})
	a := newAuthority(t)
	host, err := os.Hostname()
	require.NoError(t, err)
	p := &places{dir: t.TempDir(), host: host, address: map[string]string{
		"ZK": srv.Addr(), "UNANSWERING": mute.Addr(), "REFUSING": "127.0.0.1:1", "TLS": a.secure(srv.Addr(), "localhost").Addr().String(),
		"SILENT":  answering(t, func(c net.Conn) { c.Read(make([]byte, 1)); <-never }),
		"HTTP":    answering(t, func(c net.Conn) { fmt.Fprint(c, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n") }),
		"SSH":     answering(t, func(c net.Conn) { fmt.Fprint(c, "SSH-2.0-OpenSSH_9.6\r\n") }),
		"CLOSING": answering(t, func(net.Conn) {}),
	}}
	for name, text := range map[string]string{"text": "words\n", "no-interpreter": "#!/no/such/program\n"} {
		mode := os.FileMode(0o755)
		if name == "text" {
			mode = 0o644
		}
		require.NoError(t, os.WriteFile(filepath.Join(p.dir, name), []byte(text), mode))
	}
	holder, err := zklock.Connect(t.Context(), srv.Addrs(), &zklock.Options{Label: "sleep 100"})
	require.NoError(t, err)
	owner, err := zklock.Connect(t.Context(), srv.Addrs(), &zklock.Options{
		ACL: zk.DigestACL(zk.PermAll, "u", "p"), Auth: []zklock.Auth{{Scheme: "digest", Data: []byte("u:p")}},
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		holder.Close()
		owner.Close()
	})
	_, err = holder.Mutex("/held").Lock(t.Context())
	require.NoError(t, err)
	_, err = holder.Election("/led", nil).Campaign(t.Context(), []byte("host-a"))
	require.NoError(t, err)
	_, err = owner.Mutex("/private/a").Lock(t.Context())
	require.NoError(t, err)
	return p
}

// answering returns the address of a server that reads a first request and answers it as reply does.
func answering(t *testing.T, reply func(net.Conn)) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	// Ends when the test closes the listener.
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			// Ends when the client has closed the connection.
			go func() {
				defer conn.Close()
				bufio.NewReader(conn).ReadByte()
				reply(conn)
			}()
		}
	}()
	return l.Addr().String()
}

// told runs the command and returns the call, what it printed, and its exit code.
func (p *places) told(t *testing.T, call string) string {
	command := zklockCommand(t, p.address["ZK"], strings.Fields(p.expand(call))...)
	command.Env = append(command.Env, "TZ=UTC")
	code := command.start().code()
	assert.Empty(t, command.out.String())
	return fmt.Sprintf("$ zklock %s\n%s(exit code %d)", call, p.abbreviate(command.err.String()), code)
}

func (p *places) expand(call string) string {
	call = strings.ReplaceAll(strings.ReplaceAll(call, "DIR", p.dir), "LABEL", strings.Repeat("x", 5000))
	for name, address := range p.address {
		call = regexp.MustCompile(`\b`+name+`\b`).ReplaceAllString(call, address)
	}
	return call
}

var ownProcess = regexp.MustCompile(`host \S+, process \d+`)

func (p *places) abbreviate(text string) string {
	text = strings.ReplaceAll(text, p.dir, "DIR")
	for name, address := range p.address {
		text = strings.ReplaceAll(text, address, name)
	}
	return ownProcess.ReplaceAllString(text, "host HOST, process PID")
}
