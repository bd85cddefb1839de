// SPDX-License-Identifier: Apache-2.0

package zkcontainer

import (
	"crypto/tls"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOptionsBecomeTheServersFiles(t *testing.T) {
	o, err := Options{
		Servers: 2, TickTime: time.Second, MinSessionTimeout: 3 * time.Second, MaxSessionTimeout: 9 * time.Second,
		SASL: map[string]string{"joe": `a"b`}, Config: []string{"extendedTypesEnabled=true"}, Files: map[string][]byte{"/x": []byte("y")},
	}.complete()
	require.NoError(t, err)
	files, err := o.files(1)
	require.NoError(t, err)
	cfg := string(files["/conf/zoo.cfg"])
	for _, line := range []string{
		"tickTime=1000", "syncLimit=5", "minSessionTimeout=3000", "maxSessionTimeout=9000",
		"server.1=zk1:2888:3888", "server.2=zk2:2888:3888", "extendedTypesEnabled=true",
	} {
		assert.Contains(t, cfg, line+"\n")
	}
	assert.Equal(t, "2\n", string(files["/data/myid"]))
	assert.Contains(t, string(files[jaasPath]), `user_joe="a\"b";`)
	assert.Equal(t, "y", string(files["/x"]))
}

func TestASingleServerNamesNoPeers(t *testing.T) {
	o, err := Options{}.complete()
	require.NoError(t, err)
	files, err := o.files(0)
	require.NoError(t, err)
	assert.NotContains(t, string(files["/conf/zoo.cfg"]), "server.1")
	assert.NotContains(t, files, jaasPath)
	assert.Empty(t, o.jvmFlags())
}

func TestTheSuperUserIsGivenAsADigest(t *testing.T) {
	// What ZooKeeper's DigestAuthenticationProvider prints for super:secret.
	assert.Equal(t, "-Dzookeeper.DigestAuthenticationProvider.superDigest=super:lK75jTNcA+U9vtVEw5vB51mj/w4=",
		Options{Super: "super:secret"}.jvmFlags())
	_, err := Options{Super: "joe:secret"}.complete()
	assert.ErrorContains(t, err, "joe")
}

func TestAnAuthorityIsTrustedOnlyByItsOwnClients(t *testing.T) {
	ours, err := NewAuthority()
	require.NoError(t, err)
	theirs, err := NewAuthority()
	require.NoError(t, err)
	cert, key, err := ours.Issue()
	require.NoError(t, err)
	pair, err := tls.X509KeyPair(cert, key)
	require.NoError(t, err)
	serve := &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: ours.Pool, ClientAuth: tls.RequireAndVerifyClientCert}
	client, err := ours.Client()
	require.NoError(t, err)
	stranger, err := theirs.Client()
	require.NoError(t, err)
	assert.NoError(t, shake(t, serve, client))
	stranger.RootCAs = ours.Pool
	assert.Error(t, shake(t, serve, stranger), "a client of another authority")
	client.RootCAs = theirs.Pool
	assert.Error(t, shake(t, serve, client), "a server of another authority")
}

// shake plays both sides of a TLS handshake and returns what went wrong.
func shake(t *testing.T, server, client *tls.Config) error {
	near, far, err := socketPair()
	require.NoError(t, err)
	defer near.Close()
	defer far.Close()
	client = client.Clone()
	client.ServerName = "127.0.0.1"
	served := make(chan error, 1)
	// Ends with the handshake, or when far is closed.
	go func() { served <- tls.Server(far, server).Handshake() }()
	if err := tls.Client(near, client).Handshake(); err != nil {
		return err
	}
	return <-served
}
