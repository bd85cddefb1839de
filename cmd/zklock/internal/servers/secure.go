// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"sync"

	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
)

// secure makes the TLS configuration of each connection. It reads files again that have changed: a zklock that runs for months
// outlives its certificate.
type secure struct {
	config *tls.Config // without what is in files
	roots  file[*x509.CertPool]
	own    file[*tls.Certificate]
}

// newSecure returns the configuration for the files and the name that the flags give. An empty one is not given.
func newSecure(ca, cert, key, serverName string) (*secure, error) {
	if (cert == "") != (key == "") {
		return nil, outcome.Misuse("--tls-cert and --tls-key must be given together")
	}
	s := &secure{config: &tls.Config{ServerName: serverName, MinVersion: tls.VersionTLS12}}
	s.roots = file[*x509.CertPool]{names: given(ca), parse: func() (*x509.CertPool, error) { return readRoots(ca) }}
	s.own = file[*tls.Certificate]{names: given(cert, key), parse: func() (*tls.Certificate, error) { return readPair(cert, key) }}
	if _, err := s.roots.read(); err != nil {
		return nil, err
	}
	_, err := s.own.read()
	return s, err
}

// given returns the names that are not empty.
func given(names ...string) (files []string) {
	for _, name := range names {
		if name != "" {
			files = append(files, name)
		}
	}
	return files
}

// configFor returns the configuration of a connection to a server. If a file has changed and cannot be used, for example because
// it is being written, its previous content is used.
func (s *secure) configFor(address string) *tls.Config {
	config := s.config.Clone()
	if config.ServerName == "" {
		config.ServerName, _, _ = net.SplitHostPort(address)
	}
	config.RootCAs, _ = s.roots.read()
	if own, _ := s.own.read(); own != nil {
		config.Certificates = []tls.Certificate{*own}
	}
	return config
}

func readRoots(name string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(name)
	if err != nil {
		return nil, outcome.Misuse("--tls-ca: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, outcome.Misuse("--tls-ca: no certificate in %s", name)
	}
	return roots, nil
}

func readPair(cert, key string) (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, outcome.Misuse("--tls-cert and --tls-key: %w", err)
	}
	return &pair, nil
}

// file is what was parsed of one or two files, with a zero value if there are none.
type file[T any] struct {
	names []string
	parse func() (T, error)

	mu     sync.Mutex
	value  T         // guarded by mu, like the fields below: what was parsed last
	state  [2]string // what the files were like then
	parsed bool
}

// read parses the files if they have changed. If that fails, it returns the previous value with the error.
func (f *file[T]) read() (T, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.names) == 0 {
		return f.value, nil
	}
	var state [2]string
	for i, name := range f.names {
		if info, err := os.Stat(name); err == nil {
			state[i] = fmt.Sprint(info.ModTime().UnixNano(), info.Size())
		}
	}
	if f.parsed && state == f.state {
		return f.value, nil
	}
	value, err := f.parse()
	if err == nil {
		f.value, f.state, f.parsed = value, state, true
	}
	return f.value, err
}
