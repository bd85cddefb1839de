// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"context"
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
	"os"
	"path/filepath"
	"time"
)

// Secure is a ZooKeeper server that also has a TLS port. Its own certificate is the only one that its clients trust.
type Secure struct {
	*Process
	Port   string // the address of the TLS port
	Client *tls.Config
}

// SecureZooKeeper starts a single server with a TLS port.
func (s *Set) SecureZooKeeper(ctx context.Context) (Secure, error) {
	addr, err := freeAddr()
	if err != nil {
		return Secure{}, err
	}
	secure, err := freeAddr()
	if err != nil {
		return Secure{}, err
	}
	identity, client, err := selfSigned()
	if err != nil {
		return Secure{}, err
	}
	file := filepath.Join(s.dir, "server.pem")
	if err := os.WriteFile(file, identity, 0o600); err != nil {
		return Secure{}, err
	}
	p, err := s.newZooKeeper("zookeeper", addr, fmt.Sprintf(`secureClientPort=%s
secureClientPortAddress=127.0.0.1
serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory
ssl.keyStore.location=%s
ssl.keyStore.type=PEM
ssl.trustStore.location=%s
ssl.trustStore.type=PEM
ssl.clientAuth=none
`, port(secure), file, file))
	if err != nil {
		return Secure{}, err
	}
	return Secure{p, secure, client}, p.Start(ctx)
}

// selfSigned returns a new private key with its certificate for the loopback address, as PEM, and the configuration of a
// client that trusts this certificate only.
func selfSigned() (identity []byte, client *tls.Config, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "server"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	identity = append(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	client = &tls.Config{RootCAs: x509.NewCertPool()}
	client.RootCAs.AppendCertsFromPEM(identity)
	return identity, client, nil
}
