// SPDX-License-Identifier: Apache-2.0

package outcome

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/escape"
)

// Explain returns err in the words of zklock's users, on one line and without characters that a terminal would interpret: the
// text can contain names and data of nodes. Errors of Go's libraries are replaced wherever they occur in it.
func Explain(err error) string {
	if err == nil {
		return ""
	}
	text := strings.ReplaceAll(strings.TrimPrefix(err.Error(), "zklock: "), ": zklock: ", ": ")
	if errors.Is(err, zklock.ErrInvalid) {
		text = strings.Replace(text, zklock.ErrInvalid.Error()+": ", "", 1) // the rest says what is invalid
	}
	for _, part := range foreign(err) {
		text = strings.Replace(text, part.Error(), reworded(part), 1)
	}
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\nzklock: ", "; "), "\n", "; ")
	return strings.ReplaceAll(escape.Text(text), `\\`, `\`) // do not escape backslashes twice
}

// foreign returns the errors in err's tree that come from Go's libraries or from the ZooKeeper client, the outermost ones.
func foreign(err error) (all []error) {
	if reworded(err) != "" {
		return []error{err}
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			all = foreign(inner)
		}
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			all = append(all, foreign(inner)...)
		}
	}
	return all
}

// reworded returns zklock's words for an error of a library, or "" if err is none.
func reworded(err error) string {
	for _, c := range constants {
		if err == c.err {
			return c.text
		}
	}
	if text, ok := strings.CutPrefix(err.Error(), "zk: "); ok && !strings.Contains(text, ": ") {
		return text
	}
	switch e := err.(type) {
	case *net.OpError:
		return ofNetwork(e)
	case *net.DNSError:
		return ofName(e)
	case *net.AddrError:
		return ofAddress(e)
	case *fs.PathError:
		return ofFile(e)
	case *os.SyscallError:
		return Explain(e.Err)
	case *exec.Error:
		return e.Name + ": " + ofCommand(e.Err)
	case net.Error:
		if e.Timeout() {
			return "no answer in time"
		}
	}
	return ofTLS(err)
}

// constants are the words for errors that are constants.
var constants = []struct {
	err  error
	text string
}{
	{context.DeadlineExceeded, "no answer in time"},
	{os.ErrDeadlineExceeded, "no answer in time"},
	{context.Canceled, "interrupted"},
	{io.EOF, "the connection was closed"},
	{io.ErrUnexpectedEOF, "the connection was closed"},
	{net.ErrClosed, "the connection was closed"},
	{zk.ErrNoAuth, "permission refused (see --auth)"},
	{zk.ErrInvalidACL, "the servers do not accept this ACL (see --acl)"},
	{zk.ErrAuthFailed, "authentication failed (see --auth)"},
	{zk.ErrNoNode, "no such path"},
}

func ofNetwork(e *net.OpError) string {
	why := Explain(e.Err)
	switch {
	case e.Op == "remote error":
		return "it refused the connection: " + why
	case e.Op == "listen" && e.Addr != nil:
		return fmt.Sprintf("cannot listen on %v: %s", e.Addr, why)
	case e.Op == "listen":
		return "cannot listen: " + why
	case e.Timeout() && e.Addr != nil:
		return fmt.Sprintf("%v: no answer in time", e.Addr)
	case e.Addr != nil:
		return fmt.Sprintf("%v: %s", e.Addr, why)
	}
	return why
}

func ofAddress(e *net.AddrError) string {
	if e.Err == "missing port in address" {
		return fmt.Sprintf("%q has no port", e.Addr)
	}
	return fmt.Sprintf("%q: %s", e.Addr, e.Err)
}

func ofName(e *net.DNSError) string {
	switch {
	case e.IsNotFound:
		return fmt.Sprintf("there is no host %s", e.Name)
	case e.IsTimeout:
		return fmt.Sprintf("no name server answered for %s", e.Name)
	}
	return fmt.Sprintf("the address of %s cannot be looked up", e.Name)
}

func ofFile(e *fs.PathError) string {
	if e.Op == "write" && strings.HasPrefix(e.Path, "/dev/std") {
		return fmt.Sprintf("cannot write to standard %s: %s", strings.TrimPrefix(e.Path, "/dev/std"), Explain(e.Err))
	}
	return e.Path + ": " + Explain(e.Err)
}

// ofCommand says why a command cannot be run.
func ofCommand(err error) string {
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return "command not found"
	case errors.Is(err, exec.ErrDot):
		return "the command is in the current directory; write ./ before its name"
	}
	var file *fs.PathError
	if errors.As(err, &file) {
		err = file.Err // the name has been said
	}
	return Explain(err)
}

// ofTLS returns the words for an error of a TLS connection or a certificate, or "".
func ofTLS(err error) string {
	switch e := err.(type) {
	case tls.RecordHeaderError:
		return "it does not use TLS (see --tls)"
	case *tls.CertificateVerificationError:
		return Explain(e.Err)
	case x509.UnknownAuthorityError:
		return "its certificate was issued by an unknown authority (see --tls-ca)"
	case x509.HostnameError:
		return fmt.Sprintf("its certificate is %s (see --tls-server-name)", validFor(e))
	case x509.CertificateInvalidError:
		if e.Reason == x509.Expired {
			return "its certificate has expired or is not valid yet"
		}
	}
	switch err.Error() {
	case "tls: failed to find any PEM data in certificate input":
		return "the file contains no certificate"
	case "tls: failed to find any PEM data in key input":
		return "the file contains no private key"
	}
	for _, prefix := range []string{"tls: ", "x509: "} {
		if text, ok := strings.CutPrefix(err.Error(), prefix); ok {
			return text
		}
	}
	return ""
}

// validFor says for which names the certificate of a server is valid.
func validFor(e x509.HostnameError) string {
	names := e.Certificate.DNSNames
	for _, ip := range e.Certificate.IPAddresses {
		names = append(names, ip.String())
	}
	if len(names) == 0 {
		return "valid for no name at all, and not for " + e.Host
	}
	return fmt.Sprintf("valid for %s, not for %s", strings.Join(names, ", "), e.Host)
}

// Roundly returns d as people say it.
func Roundly(d time.Duration) time.Duration {
	switch {
	case d < 100*time.Millisecond:
		return d.Round(time.Millisecond)
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Second)
}
