// SPDX-License-Identifier: Apache-2.0

package zkcertmagic_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/certmagic"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/zklock-go/zklock"
	zkcertmagic "github.com/zklock-go/zklock/adapters/certmagic"
	"github.com/zklock-go/zklock/internal/evidence/everystep"
	"github.com/zklock-go/zklock/zktest"
)

func storage(t *testing.T, srv *zktest.Server, name string) *zkcertmagic.Storage {
	client, err := zklock.Connect(t.Context(), srv.Addrs(), &zklock.Options{Dialer: srv.DialFrom(name), FailStop: func(err error) { t.Error(err) }})
	require.NoError(t, err)
	t.Cleanup(func() { client.Close() })
	return zkcertmagic.NewStorage(&certmagic.FileStorage{Path: t.TempDir()}, client, "/certs")
}

const name = "issue_cert_*.example.com/../x"

func TestOneHoldsAtATimeInAFleetAndInAProcess(t *testing.T) {
	srv := zktest.Start(t)
	var inside atomic.Int32
	var all sync.WaitGroup
	for _, process := range []string{"a", "b"} {
		s := storage(t, srv, process)
		for range 3 {
			// Ends when it has had its turns; the test waits for it below.
			all.Go(func() {
				for range 3 {
					if !assert.NoError(t, s.Lock(t.Context(), name)) {
						return
					}
					assert.EqualValues(t, 1, inside.Add(1))
					assert.NoError(t, s.RenewLockLease(t.Context(), name, time.Hour))
					inside.Add(-1)
					assert.NoError(t, s.Unlock(t.Context(), name))
				}
			})
		}
	}
	all.Wait()
}

func TestNamesDoNotShareALock(t *testing.T) {
	srv := zktest.Start(t)
	s := storage(t, srv, "a")
	names := []string{"", ".", "..", "a/b", "a_b", "a%2Fb", "%", "%2E", "*.example.com", "ä", "a b", "a\x00b", "a/../b"}
	for _, key := range names {
		ok, err := s.TryLock(t.Context(), key)
		require.NoError(t, err, "%q", key)
		assert.True(t, ok, "%q", key)
	}
	for _, key := range names {
		require.NoError(t, s.Unlock(t.Context(), key), "%q", key)
	}
}

func TestTryLockDoesNotWait(t *testing.T) {
	srv := zktest.Start(t)
	a, b := storage(t, srv, "a"), storage(t, srv, "b")
	require.NoError(t, a.Lock(t.Context(), name))
	for _, s := range []*zkcertmagic.Storage{a, b} {
		ok, err := s.TryLock(t.Context(), name)
		require.NoError(t, err)
		assert.False(t, ok)
	}
	require.NoError(t, a.Unlock(t.Context(), name))
	ok, err := b.TryLock(t.Context(), name)
	require.NoError(t, err)
	assert.True(t, ok)
	require.NoError(t, b.Unlock(t.Context(), name))
	assert.ErrorIs(t, b.Unlock(t.Context(), name), zklock.ErrNotHeld)
	assert.ErrorIs(t, b.RenewLockLease(t.Context(), name, time.Hour), zklock.ErrNotHeld)
}

func TestAWaitEndsWithItsContext(t *testing.T) {
	srv := zktest.Start(t)
	a, b := storage(t, srv, "a"), storage(t, srv, "b")
	require.NoError(t, a.Lock(t.Context(), name))
	for _, s := range []*zkcertmagic.Storage{a, b} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		assert.ErrorIs(t, s.Lock(ctx, name), context.Canceled)
	}
	require.NoError(t, a.Unlock(t.Context(), name))
	require.NoError(t, a.Lock(t.Context(), name))
}

// The loser's Unlock must not end the hold of the next one in the same process.
func TestALostLock(t *testing.T) {
	srv := zktest.Start(t)
	s := storage(t, srv, "a")
	require.NoError(t, s.Lock(t.Context(), name))
	lost := s.Hold(name)
	require.NoError(t, srv.DeleteNode(lost.Node()))
	<-lost.Context().Done()
	assert.ErrorIs(t, s.RenewLockLease(t.Context(), name, time.Hour), zklock.ErrLost)
	next := make(chan error, 1)
	// Owned by the test, which waits for what it sends; ends when the lock is granted.
	go func() { next <- s.Lock(t.Context(), name) }()
	assert.NoError(t, s.Unlock(t.Context(), name), "it is given up, as it should be")
	require.NoError(t, <-next)
	assert.NoError(t, s.RenewLockLease(t.Context(), name, time.Hour))
	require.NoError(t, s.Unlock(t.Context(), name))
}

// A partitioned process loses its locks, and another one continues.
func TestALockOutlivesNoPartition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		a, b := storage(t, srv, "a"), storage(t, srv, "b")
		require.NoError(t, a.Lock(t.Context(), name))
		time.Sleep(time.Hour)
		require.NoError(t, a.RenewLockLease(t.Context(), name, time.Minute), "it is held for as long as it takes")
		srv.Partition("a")
		defer srv.HealClient("a")
		require.NoError(t, b.Lock(t.Context(), name))
		assert.ErrorIs(t, a.RenewLockLease(t.Context(), name, time.Hour), zklock.ErrLost)
		assert.NoError(t, a.Unlock(t.Context(), name))
		require.NoError(t, b.Unlock(t.Context(), name))
	})
}

// issuer signs every request and counts them.
type issuer struct {
	key   *ecdsa.PrivateKey
	calls atomic.Int32
}

func (i *issuer) IssuerKey() string { return "test" }

func (i *issuer) Issue(_ context.Context, request *x509.CertificateRequest) (*certmagic.IssuedCertificate, error) {
	serial := int64(i.calls.Add(1))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), DNSNames: request.DNSNames,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(90 * 24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, request.PublicKey, i.key)
	if err != nil {
		return nil, err
	}
	return &certmagic.IssuedCertificate{Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}, nil
}

func TestAFleetObtainsACertificateOnce(t *testing.T) {
	srv := zktest.Start(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	ca := &issuer{key: key}
	shared := &certmagic.FileStorage{Path: t.TempDir()}
	var all sync.WaitGroup
	for _, process := range []string{"a", "b", "c"} {
		s := storage(t, srv, process)
		s.Storage = shared
		var config *certmagic.Config
		cache := certmagic.NewCache(certmagic.CacheOptions{GetConfigForCert: func(certmagic.Certificate) (*certmagic.Config, error) { return config, nil }})
		t.Cleanup(cache.Stop)
		config = certmagic.New(cache, certmagic.Config{Storage: s, Issuers: []certmagic.Issuer{ca}, Logger: zap.NewNop()})
		// Ends when the certificate is there; the test waits for it below.
		all.Go(func() { assert.NoError(t, config.ObtainCertSync(t.Context(), "example.com")) })
	}
	all.Wait()
	assert.EqualValues(t, 1, ca.calls.Load())
}

// TestALockIsReleasedUnderAnEndedContext runs the case of certmagic's own lock test in which the context ends earliest.
func TestALockIsReleasedUnderAnEndedContext(t *testing.T) {
	srv := zktest.Start(t)
	s := storage(t, srv, "a")
	ended, cancel := context.WithCancel(t.Context())
	require.NoError(t, s.Lock(ended, name))
	cancel()
	assert.Error(t, s.Lock(ended, name), "it is held")
	require.NoError(t, s.Unlock(ended, name))
	assert.Empty(t, srv.Ephemerals(srv.Sessions()[0].ID))
}

// A program that exits may close the client before certmagic.CleanUpOwnLocks.
func TestALockOfAClosedClientIsReleased(t *testing.T) {
	srv := zktest.Start(t)
	client, err := zklock.Connect(t.Context(), srv.Addrs(), &zklock.Options{Dialer: srv.Dial})
	require.NoError(t, err)
	s := zkcertmagic.NewStorage(&certmagic.FileStorage{Path: t.TempDir()}, client, "/certs")
	require.NoError(t, s.Lock(t.Context(), name))
	require.NoError(t, client.Close())
	assert.NoError(t, s.Unlock(t.Context(), name))
}

// TestOneHoldsUnderAnyFault uses a storage's lock, from its wait to its release, with a fault at each request.
func TestOneHoldsUnderAnyFault(t *testing.T) {
	everystep.Through(t, 3, func(t *testing.T, srv *zktest.Server, over func()) {
		struck, other := storage(t, srv, everystep.Client), storage(t, srv, "other")
		var inside atomic.Int32
		var all sync.WaitGroup
		for _, s := range []*zkcertmagic.Storage{struck, other} {
			// Ends when it has had its turn; the test waits for it below.
			all.Go(func() {
				if !assert.NoError(t, s.Lock(t.Context(), name)) {
					return
				}
				time.Sleep(time.Microsecond) // when a server ends a session early, both are notified at the same time
				if s.RenewLockLease(t.Context(), name, time.Minute) == nil {
					assert.EqualValues(t, 1, inside.Add(1))
					select {
					case <-s.Hold(name).Context().Done():
					case <-time.After(time.Second):
					}
					inside.Add(-1)
				}
				if err := s.Unlock(t.Context(), name); err != nil {
					assert.True(t, errors.Is(err, zklock.ErrUncertain), err)
				}
				assert.Nil(t, s.Hold(name))
			})
		}
		all.Wait()
		over()
		time.Sleep(2 * time.Minute) // until the session of a client that was cut off has ended
		for _, session := range srv.Sessions() {
			assert.Empty(t, srv.Ephemerals(session.ID))
		}
		for _, s := range []*zkcertmagic.Storage{struck, other} {
			ok, err := s.TryLock(t.Context(), name)
			assert.NoError(t, err)
			assert.True(t, ok, "it can be used again")
			assert.NoError(t, s.Unlock(t.Context(), name))
		}
	})
}

// secretive is a storage with a String method that hides its password, like Caddy's storage for Redis.
type secretive struct {
	certmagic.Storage
	Password string
}

func (s secretive) String() string { return "secretive" }

// outspoken is a storage without a String method.
type outspoken struct {
	certmagic.Storage
	Password string
}

// certmagic logs its storage with zap.Any, which writes the exported fields as JSON if there is no String method.
func TestNoPasswordOfAStorageIsLogged(t *testing.T) {
	for want, s := range map[string]certmagic.Storage{"secretive": secretive{Password: "secret"}, "zkcertmagic_test.outspoken": outspoken{Password: "secret"}} {
		var logged bytes.Buffer
		log := zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.AddSync(&logged), zap.InfoLevel))
		log.Info("cleaned", zap.Any("storage", zkcertmagic.NewStorage(s, nil, "/certs")))
		assert.NotContains(t, logged.String(), "secret\"")
		assert.Contains(t, logged.String(), want+" with locks in ZooKeeper below /certs")
	}
}
