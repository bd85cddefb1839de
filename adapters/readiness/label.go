// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/zklock-go/zklock"
)

// LabelOptions configures a Label. A nil *LabelOptions means the defaults, with which a pod finds everything that it needs in
// its own container.
type LabelOptions struct {
	Key, Value string // default "role" and "leader"
	Pod        string // default the host name, which is the pod's name unless the pod sets another one
	Namespace  string // default that of the service account
	// Account is the directory with the service account's files. Default
	// /var/run/secrets/kubernetes.io/serviceaccount. The token is read for each request, because Kubernetes
	// replaces it.
	Account string
	// Server is the address of the API server, such as https://10.0.0.1:443. Default that of the environment
	// variables KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT.
	Server string
	Logger *slog.Logger // default slog.Default
}

// Label sets a label of this process's pod in Kubernetes while the process holds a lock, so that a service can select the
// leader's pod. Other pods stay ready. Create it with NewLabel.
//
// A label is late, as a probe is: after the lock is lost, the pod keeps it until the API server has answered. Two pods have it
// if the earlier holder cannot reach the API server. A request that must not be served without the lock has to
// check the hold itself.
type Label struct {
	key, value string
	pod        string // the address of the pod
	token      string // the file
	log        *slog.Logger
	http       *http.Client
	pace       pace

	life   context.Context
	cancel context.CancelFunc
	done   chan struct{} // closed when run has returned

	mu      sync.Mutex
	hold    *zklock.Hold  // guarded by mu: the hold passed to Set last, or nil
	closed  bool          // guarded by mu: Close was called
	changed chan struct{} // has a value if what the label should be may have changed
}

// pace says when requests are sent. Tests set it.
type pace struct{ request, first, longest, refresh time.Duration }

var usualPace = pace{request: 10 * time.Second, first: time.Second, longest: 30 * time.Second, refresh: time.Minute}

// account is where Kubernetes puts the files of a pod's service account.
const account = "/var/run/secrets/kubernetes.io/serviceaccount"

var (
	// ErrNoPod is returned by NewLabel if this process does not run in a pod of Kubernetes, or the pod has no service account.
	ErrNoPod = errors.New("not in a pod with a service account")

	labelKey   = regexp.MustCompile(`^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)
	labelValue = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)
)

// NewLabel returns a Label for this process's pod, which does not have the label at first. It sends nothing itself: a
// goroutine sends all requests, until Close.
//
// The service account needs the permission to patch the pod: see the package's README.
func NewLabel(opts *LabelOptions) (*Label, error) {
	l, err := newLabel(opts)
	if err != nil {
		return nil, fmt.Errorf("readiness: label: %w", err)
	}
	l.start(usualPace)
	return l, nil
}

func newLabel(opts *LabelOptions) (*Label, error) {
	var o LabelOptions
	if opts != nil {
		o = *opts
	}
	o.Account = cmp.Or(o.Account, account)
	l := &Label{key: cmp.Or(o.Key, "role"), value: cmp.Or(o.Value, "leader"), token: filepath.Join(o.Account, "token"), log: o.Logger, done: make(chan struct{}), changed: make(chan struct{}, 1)}
	switch {
	case !labelKey.MatchString(l.key):
		return nil, fmt.Errorf("%w: %q is not the key of a label", zklock.ErrInvalid, l.key)
	case !labelValue.MatchString(l.value):
		return nil, fmt.Errorf("%w: %q is not the value of a label", zklock.ErrInvalid, l.value)
	}
	if l.log == nil {
		l.log = slog.Default()
	}
	if o.Server == "" {
		host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
		if host == "" || port == "" {
			return nil, fmt.Errorf("%w: KUBERNETES_SERVICE_HOST or KUBERNETES_SERVICE_PORT is not set", ErrNoPod)
		}
		o.Server = "https://" + net.JoinHostPort(host, port)
	}
	if o.Namespace == "" {
		name, err := os.ReadFile(filepath.Join(o.Account, "namespace"))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNoPod, err)
		}
		o.Namespace = strings.TrimSpace(string(name))
	}
	if o.Pod == "" {
		name, err := os.Hostname()
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNoPod, err)
		}
		o.Pod = name
	}
	if _, err := os.Stat(l.token); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoPod, err)
	}
	server, err := url.Parse(o.Server)
	if err != nil || server.Host == "" {
		return nil, fmt.Errorf("%w: %q is not the address of an API server", zklock.ErrInvalid, o.Server)
	}
	l.pod = server.JoinPath("api/v1/namespaces", url.PathEscape(o.Namespace), "pods", url.PathEscape(o.Pod)).String()
	transport := &http.Transport{Proxy: nil, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}}
	if server.Scheme == "https" {
		pem, err := os.ReadFile(filepath.Join(o.Account, "ca.crt"))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNoPod, err)
		}
		transport.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%w: the service account's ca.crt contains no certificate", zklock.ErrInvalid)
		}
	}
	l.http = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return l, nil
}

func (l *Label) start(p pace) {
	l.pace = p
	l.life, l.cancel = context.WithCancel(context.Background())
	// Owned by the label; Close ends it and waits for it.
	go l.run()
}

// Set gives the pod the label for as long as hold lasts, from Lock or Campaign, until the next call. nil takes the label
// away. Set sends no request and does not wait, and nothing that a hold needs waits for the API server. After Close it does
// nothing.
//
//	election.Run(ctx, value, func(ctx context.Context) error {
//		label.Set(zklock.HoldOf(ctx))
//		defer label.Set(nil)
//		...
//	})
func (l *Label) Set(hold *zklock.Hold) {
	l.mu.Lock()
	if l.closed {
		hold = nil
	}
	l.hold = hold
	l.mu.Unlock()
	if hold != nil {
		hold.OnEnd(func(error) { l.wake() })
	}
	l.wake()
}

// Close takes the label away, and waits until the API server has confirmed that or ctx ends. Then nothing is sent any more.
func (l *Label) Close(ctx context.Context) error {
	l.mu.Lock()
	l.hold, l.closed = nil, true
	l.mu.Unlock()
	l.wake()
	defer l.http.CloseIdleConnections()
	select {
	case <-l.done:
		return nil
	case <-ctx.Done():
		l.cancel()
		<-l.done
		return fmt.Errorf("readiness: the pod may still have the label %s: %w", l.key, context.Cause(ctx))
	}
}

func (l *Label) wake() {
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// wanted reports whether the pod should have the label, and whether nothing can change that.
func (l *Label) wanted() (set, final bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hold != nil && l.hold.Context().Err() == nil, l.closed
}

// run sends a request whenever the label should change, and repeats it until it has succeeded. It also repeats it from time to
// time: a request that had no reply can be carried out after the next one.
func (l *Label) run() {
	defer close(l.done)
	defer l.cancel()
	pause := l.pace.first
	for l.life.Err() == nil {
		set, _ := l.wanted()
		wait := l.pace.refresh
		err := l.patch(set)
		now, final := l.wanted()
		switch {
		case now != set:
			pause = l.pace.first
			continue
		case err == nil && final:
			return
		case err == nil:
			pause = l.pace.first
		default:
			l.log.Warn("readiness: label of the pod not changed", "key", l.key, "set", set, "err", err)
			wait, pause = pause, min(2*pause, l.pace.longest)
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-l.changed:
		case <-l.life.Done():
		}
		timer.Stop()
	}
}

// patch sets the label or takes it away.
func (l *Label) patch(set bool) error {
	var value any // null takes a label away
	if set {
		value = l.value
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]any{l.key: value}}})
	if err != nil {
		return err
	}
	token, err := os.ReadFile(l.token)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(l.life, l.pace.request)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPatch, l.pod, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/merge-patch+json")
	r.Header.Set("Accept", "application/json")
	r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	answer, err := l.http.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	said, _ := io.ReadAll(io.LimitReader(answer.Body, 64<<10)) // also lets the connection be used again
	if answer.StatusCode != http.StatusOK {
		var status struct {
			Message string `json:"message"`
		}
		json.Unmarshal(said, &status) // without a message the status says enough
		return fmt.Errorf("the API server answered %s: %.200q", answer.Status, status.Message)
	}
	return nil
}
