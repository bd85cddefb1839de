// SPDX-License-Identifier: Apache-2.0

package zkcontainer

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

// tlsLines are the lines of zoo.cfg for a TLS port with certificates on both sides.
var tlsLines = []string{
	"secureClientPort=2281", "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
	"ssl.keyStore.location=" + keyStore, "ssl.keyStore.type=PEM",
	"ssl.trustStore.location=" + trustStore, "ssl.trustStore.type=PEM", "ssl.clientAuth=need",
}

const keyStore, trustStore = "/conf/server.pem", "/conf/ca.pem"

// Authority is a certificate authority for tests. Its certificates are valid for a day
// and for the loopback address, for servers and clients. Those of servers that this
// package starts are also valid for the host at which the engine publishes ports.
type Authority struct {
	// PEM is the authority's own certificate.
	PEM []byte
	// Pool contains the authority's own certificate alone: a value for RootCAs and
	// ClientCAs of a tls.Config. The caller must not change it.
	Pool *x509.CertPool

	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority creates an authority.
func NewAuthority() (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("zkcontainer: authority: %w", err)
	}
	template := lasting(&x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign,
	})
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("zkcontainer: authority: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("zkcontainer: authority: %w", err)
	}
	a := &Authority{PEM: encode("CERTIFICATE", der), Pool: x509.NewCertPool(), cert: cert, key: key}
	a.Pool.AddCert(cert)
	return a, nil
}

// Issue returns a new certificate for the loopback address and its private key, as PEM.
func (a *Authority) Issue() (cert, key []byte, err error) { return a.issue("127.0.0.1") }

// issue returns a certificate that is valid for a host as well.
func (a *Authority) issue(host string) (cert, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("zkcontainer: certificate: %w", err)
	}
	template := lasting(&x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "party"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = append(template.IPAddresses, ip)
	} else {
		template.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, private.Public(), a.key)
	if err != nil {
		return nil, nil, fmt.Errorf("zkcontainer: certificate: %w", err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, fmt.Errorf("zkcontainer: certificate: %w", err)
	}
	return encode("CERTIFICATE", der), encode("PRIVATE KEY", keyDER), nil
}

// Client returns the TLS configuration for a client that connects to Member.Secure.
func (a *Authority) Client() (*tls.Config, error) {
	cert, key, err := a.Issue()
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("zkcontainer: certificate: %w", err)
	}
	return &tls.Config{RootCAs: a.Pool, Certificates: []tls.Certificate{pair}}, nil
}

// addFiles adds the files that tlsLines refer to.
func (a *Authority) addFiles(files map[string][]byte) error {
	e, err := Find()
	if err != nil {
		return err
	}
	cert, key, err := a.issue(numeric(e.host))
	if err != nil {
		return err
	}
	files[keyStore], files[trustStore] = append(key, cert...), a.PEM
	return nil
}

// lasting sets the validity of a certificate.
func lasting(c *x509.Certificate) *x509.Certificate {
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	return c
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
