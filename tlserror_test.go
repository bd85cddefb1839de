// SPDX-License-Identifier: Apache-2.0

package zklock

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

//zklock:promise P18.9
func TestTLSErrorsNameARemedy(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{x509.UnknownAuthorityError{}, " (add its issuer to RootCAs of Options.TLS)"},
		{&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, " (add its issuer to RootCAs of Options.TLS)"},
		{x509.HostnameError{Certificate: &x509.Certificate{}, Host: "zk1"}, " (list the server by a name of its certificate, or set ServerName of Options.TLS)"},
		{x509.CertificateInvalidError{Reason: x509.Expired}, " (renew the server's certificate, or correct this host's clock)"},
		{x509.CertificateInvalidError{Reason: x509.NotAuthorizedToSign}, ""},
		{tls.RecordHeaderError{}, " (the port may be one without TLS: list the server's secureClientPort)"},
		{fmt.Errorf("handshake: %w", io.EOF), " (the port may be one without TLS: list the server's secureClientPort)"},
		{&net.OpError{Op: "remote error", Err: tls.AlertError(116)}, " (the server refuses this client: set Certificates of Options.TLS)"},
		{&net.OpError{Op: "read", Err: errors.New("reset")}, ""},
	} {
		require.Equal(t, c.want, tlsAdvice(c.err), "%v", c.err)
	}
}
