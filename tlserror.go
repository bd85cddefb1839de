// SPDX-License-Identifier: Apache-2.0

package zklock

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
)

// tlsAdvice returns what to do about a failed handshake, to append to its error, or "".
func tlsAdvice(err error) string {
	var (
		unknown x509.UnknownAuthorityError
		name    x509.HostnameError
		invalid x509.CertificateInvalidError
		record  tls.RecordHeaderError
		network *net.OpError
	)
	switch {
	case errors.As(err, &unknown):
		return " (add its issuer to RootCAs of Options.TLS)"
	case errors.As(err, &name):
		return " (list the server by a name of its certificate, or set ServerName of Options.TLS)"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return " (renew the server's certificate, or correct this host's clock)"
	case errors.As(err, &record), errors.Is(err, io.EOF):
		return " (the port may be one without TLS: list the server's secureClientPort)"
	case errors.As(err, &network) && network.Op == "remote error":
		return " (the server refuses this client: set Certificates of Options.TLS)"
	}
	return ""
}
