// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/zklock-go/zklock/internal/escape"
)

// cause is why a server creates no session, and what to do about it.
type cause struct{ text, advice string }

// causeOf returns why a server creates no session. What the server says to the word srvr tells causes apart that look alike to a
// client.
func (f *findings) causeOf(m *member) cause {
	const (
		address = "Correct the address: clients use the servers' clientPort, usually 2181."
		secure  = "Configure TLS in Options.Dialer as the server requires."
	)
	line, _, _ := strings.Cut(m.said, "\r\n")
	isEOF := errors.Is(m.barred, io.EOF)
	switch {
	case m.late:
		return cause{"has not answered everything in time", "Give the checks more time, or find out why the server is slow."}
	case isOfTLS(m.unreached):
		return cause{"cannot be reached over TLS: " + because(m.unreached), secure}
	case m.unreached != nil:
		return cause{"cannot be reached: " + because(m.unreached), "Start the server, or correct the list of servers."}
	case m.said != "" && m.said[0] == tlsAlert || strings.HasPrefix(m.said, "\x16"):
		return cause{"expects TLS", secure}
	case strings.HasPrefix(line, "HTTP/"):
		return cause{"is not a ZooKeeper server: it answers HTTP", address}
	case strings.HasPrefix(line, "SSH-"):
		return cause{"is not a ZooKeeper server: it answers " + escape.Short(strings.TrimSpace(line), 40), address}
	case isOfTLS(m.barred):
		return cause{"creates no session: " + because(m.barred), secure}
	case strings.Contains(m.said, "not currently serving") && len(f.given) > 0:
		return cause{"creates no session: it has no contact with the leader of the others", "Look at the server's log, and at the network between it and the others (by default ports 2888 and 3888)."}
	case strings.Contains(m.said, "not currently serving"):
		return cause{"creates no session: it has no quorum", "Start or reconnect servers until a majority of the ensemble is in contact."}
	case m.said == "" && isEOF:
		return cause{
			"closes connections without an answer: this host has as many as maxClientCnxns allows, or the server expects TLS",
			"Close clients on this host, or raise maxClientCnxns in the server's zoo.cfg; if the port is a secureClientPort, configure TLS.",
		}
	case m.said == "" && isTimeout(m.barred):
		return cause{"accepts connections and answers nothing: it hangs, or is stopped", "Look at the server's process and its log, and restart it."}
	case isTimeout(m.barred):
		return cause{"creates no session: it answers srvr, but no quorum agrees to a new session", "Look at the leader and at the network between the servers."}
	}
	return cause{"creates no session: " + because(m.barred), fmt.Sprintf("Restore the quorum, and make sure that %s is the address of a ZooKeeper server.", escape.Text(m.Addr))}
}

// tlsAlert is the first byte of what a server sends that expects TLS.
const tlsAlert = 0x15

// isOfTLS reports whether an error comes from TLS. Its text shows that: a dialer may return errors of other types.
func isOfTLS(err error) bool {
	return err != nil && slices.ContainsFunc([]string{"TLS", "tls: ", "x509: ", "certificate"}, func(word string) bool { return strings.Contains(err.Error(), word) })
}

func isTimeout(err error) bool {
	var network net.Error
	return errors.As(err, &network) && network.Timeout()
}
