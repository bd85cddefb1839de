// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zktest"
)

// apiServer is the part of a Kubernetes API server that has one pod.
type apiServer struct {
	*httptest.Server
	t       *testing.T
	account string // the pod's service account

	mu     sync.Mutex
	labels map[string]any      // guarded by mu: of the pod
	fails  []http.HandlerFunc  // guarded by mu: the next requests' answers
	seen   chan map[string]any // the labels after each request that was carried out
}

func newAPIServer(t *testing.T) *apiServer {
	s := &apiServer{t: t, account: t.TempDir(), labels: map[string]any{"app": "billing", "role": "leader"}, seen: make(chan map[string]any, 1000)}
	s.Server = httptest.NewTLSServer(s)
	t.Cleanup(s.Server.Close)
	s.put("ca.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})))
	s.put("namespace", "shop\n")
	s.put("token", "first\n")
	return s
}

func (s *apiServer) put(name, text string) {
	require.NoError(s.t, os.WriteFile(filepath.Join(s.account, name), []byte(text), 0o600))
}

// failNext lets the next requests have these answers.
func (s *apiServer) failNext(answers ...http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails = answers
}

// ServeHTTP changes the pod's labels as a merge patch does.
func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	if len(s.fails) > 0 {
		fail := s.fails[0]
		s.fails = s.fails[1:]
		s.mu.Unlock()
		fail(w, r)
		return
	}
	defer s.mu.Unlock()
	token, _ := os.ReadFile(filepath.Join(s.account, "token"))
	var patch struct {
		Metadata struct{ Labels map[string]any }
	}
	assert.Equal(s.t, http.MethodPatch, r.Method)
	assert.Equal(s.t, "/api/v1/namespaces/shop/pods/billing-7", r.URL.Path)
	assert.Equal(s.t, "application/merge-patch+json", r.Header.Get("Content-Type"))
	assert.Equal(s.t, "Bearer "+strings.TrimSpace(string(token)), r.Header.Get("Authorization"))
	assert.NoError(s.t, json.Unmarshal(body, &patch))
	for key, value := range patch.Metadata.Labels {
		if value == nil {
			delete(s.labels, key)
		} else {
			s.labels[key] = value
		}
	}
	now := map[string]any{}
	for key, value := range s.labels {
		now[key] = value
	}
	s.seen <- now
	w.Write([]byte("{}"))
}

// until waits for a request after which the pod has these labels.
func (s *apiServer) until(want map[string]any) {
	s.t.Helper()
	for {
		select {
		case got := <-s.seen:
			if assert.ObjectsAreEqual(want, got) {
				return
			}
		case <-time.After(time.Minute):
			require.FailNow(s.t, "the pod does not get its labels", "%v", want)
		}
	}
}

var (
	leads  = map[string]any{"app": "billing", "role": "leader"}
	serves = map[string]any{"app": "billing"}
)

func (s *apiServer) label(logTo io.Writer) *Label {
	l, err := newLabel(&LabelOptions{Pod: "billing-7", Account: s.account, Server: s.URL, Logger: slog.New(slog.NewTextHandler(logTo, nil))})
	require.NoError(s.t, err)
	l.start(pace{request: 10 * time.Second, first: time.Millisecond, longest: 10 * time.Millisecond, refresh: time.Hour})
	s.t.Cleanup(func() { l.Close(s.t.Context()) })
	return l
}

func leader(t *testing.T) (*zktest.Server, *zklock.Hold) {
	srv := zktest.Run(t)
	client, err := zklock.Connect(t.Context(), srv.Addrs(), nil)
	require.NoError(t, err)
	t.Cleanup(func() { client.Close() })
	hold, err := client.Election("/leader").Campaign(t.Context(), nil)
	require.NoError(t, err)
	return srv, hold
}

// A label that an earlier process in this pod has left is taken away. Each end of a leadership takes it away again.
func TestThePodHasTheLabelWhileItLeads(t *testing.T) {
	s := newAPIServer(t)
	l := s.label(io.Discard)
	s.until(serves)
	srv, hold := leader(t)
	s.put("token", "second")
	l.Set(hold)
	s.until(leads)
	require.NoError(t, srv.DeleteNode(hold.Node()))
	s.until(serves)

	_, hold = leader(t)
	l.Set(hold)
	s.until(leads)
	l.Set(nil)
	s.until(serves)
	require.NoError(t, hold.Check())

	l.Set(hold)
	s.until(leads)
	require.NoError(t, l.Close(t.Context()))
	s.until(serves)
	l.Set(hold)
	require.NoError(t, l.Close(t.Context()))
	require.Empty(t, s.seen)
}

// A request that fails is repeated, with what the label should be by then.
func TestALabelThatCannotBeChangedIsTriedAgain(t *testing.T) {
	s := newAPIServer(t)
	refuse := func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		w.Write([]byte(`{"kind": "Status", "message": "pods is forbidden"}`))
	}
	s.failNext(refuse, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://elsewhere.example", http.StatusFound)
	})
	var log strings.Builder
	l := s.label(&log)
	s.until(serves)
	_, hold := leader(t)
	s.failNext(refuse, refuse)
	l.Set(hold)
	s.until(leads)
	require.NoError(t, l.Close(t.Context()))
	assert.Contains(t, log.String(), "pods is forbidden")
	assert.Contains(t, log.String(), "302 Found")
	assert.NotContains(t, log.String(), "first", "the token is no text for a log")
}

// Nothing waits for an API server that does not answer: neither the leader, nor the end of its hold.
func TestAnAPIServerThatHangsDelaysNoHold(t *testing.T) {
	s := newAPIServer(t)
	asked, released := make(chan struct{}), make(chan struct{})
	s.failNext(func(http.ResponseWriter, *http.Request) {
		close(asked)
		<-released
	})
	l := s.label(io.Discard)
	<-asked
	_, hold := leader(t)
	l.Set(hold)
	require.NoError(t, hold.Check())
	require.NoError(t, hold.Unlock(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := l.Close(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "may still have the label role")
	close(released)
}

func TestALabelIsCheckedBeforeAnythingIsSent(t *testing.T) {
	s := newAPIServer(t)
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for name, c := range map[string]struct {
		opts *LabelOptions
		want error
	}{
		"no pod":       {nil, ErrNoPod},
		"no account":   {&LabelOptions{Server: s.URL, Account: t.TempDir()}, ErrNoPod},
		"a bad key":    {&LabelOptions{Server: s.URL, Account: s.account, Key: "a b"}, zklock.ErrInvalid},
		"a bad value":  {&LabelOptions{Server: s.URL, Account: s.account, Value: strings.Repeat("x", 64)}, zklock.ErrInvalid},
		"a bad server": {&LabelOptions{Server: "127.0.0.1", Account: s.account}, zklock.ErrInvalid},
	} {
		_, err := NewLabel(c.opts)
		assert.ErrorIs(t, err, c.want, name)
	}
	s.put("ca.crt", "none")
	_, err := NewLabel(&LabelOptions{Server: s.URL, Account: s.account})
	require.ErrorIs(t, err, zklock.ErrInvalid)
	t.Setenv("KUBERNETES_SERVICE_HOST", "::1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	s.put("ca.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})))
	l, err := newLabel(&LabelOptions{Account: s.account, Pod: "p"})
	require.NoError(t, err)
	assert.Equal(t, "https://[::1]:443/api/v1/namespaces/shop/pods/p", l.pod)
}
