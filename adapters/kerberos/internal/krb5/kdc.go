// SPDX-License-Identifier: Apache-2.0

package krb5

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Client asks KDCs for tickets. It starts no goroutine that outlives a call, and keeps no ticket.
type Client struct {
	conf *Config
	mu   sync.Mutex          // guards the field below
	kdcs map[string][]string // of realms: the one that answered last comes first
}

// NewClient returns a client.
func NewClient(c *Config) *Client { return &Client{conf: c, kdcs: map[string][]string{}} }

// dial connects to a KDC. Tests replace it.
var dial = new(net.Dialer).DialContext

// ErrNoAnswer reports that no KDC answered.
var ErrNoAnswer = errors.New("no answer from the KDC")

// ErrNoKDC reports that neither the configuration nor DNS names a KDC of a realm.
var ErrNoKDC = errors.New("there is no KDC for this realm in krb5.conf or DNS")

const (
	// askLimit is how long a KDC has for an answer.
	askLimit = 10 * time.Second
	// hedge is after how long the next KDC is asked as well.
	hedge = time.Second
	// maxAnswer limits a KDC's answers. A ticket may contain a list of groups; MIT's and Microsoft's limits are 64 KiB.
	maxAnswer = 256 << 10
)

// ask sends a request to the KDCs of a realm and returns the answer, which is of this kind, or the KDC's refusal as a *KDCError.
// If a KDC fails, or does not answer for a second, the next one is asked as well, and the first answer counts. Requests use TCP,
// which each KDC must serve (RFC 4120, section 7.2): nobody can forge answers without being on the way.
func (c *Client) ask(ctx context.Context, realm string, request []byte, kind byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	var asked sync.WaitGroup
	defer asked.Wait()
	defer cancel()
	kdcs, err := c.of(ctx, realm)
	if err != nil {
		return nil, err
	}
	type result struct {
		kdc    string
		answer []byte
		err    error
	}
	results := make(chan result)
	timer := time.NewTimer(0)
	defer timer.Stop()
	var failures []error
	for pending := 0; ; {
		select {
		case <-timer.C:
			if len(kdcs) == 0 {
				continue
			}
			kdc := kdcs[0]
			kdcs = kdcs[1:]
			pending++
			// Owned by the call, which waits for it; ctx stops it.
			asked.Go(func() {
				answer, err := c.askOne(ctx, kdc, request, kind)
				select {
				case results <- result{kdc, answer, err}:
				case <-ctx.Done():
				}
			})
			timer.Reset(hedge)
		case r := <-results:
			pending--
			var refusal *KDCError
			if r.err == nil || errors.As(r.err, &refusal) && refusal.Code != ServiceUnavailable {
				c.prefer(realm, r.kdc)
				return r.answer, r.err
			}
			failures = append(failures, fmt.Errorf("%s: %w", r.kdc, r.err))
			if pending == 0 && len(kdcs) == 0 {
				return nil, fmt.Errorf("%w: %w", ErrNoAnswer, errors.Join(failures...))
			}
			timer.Reset(0)
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", ErrNoAnswer, errors.Join(append(failures, context.Cause(ctx))...))
		}
	}
}

// prefer makes a KDC the first that is asked: so a silent one is asked last.
func (c *Client) prefer(realm, kdc string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := slices.DeleteFunc(slices.Clone(c.kdcs[realm]), func(other string) bool { return other == kdc })
	c.kdcs[realm] = slices.Insert(all, 0, kdc)
}

// of returns the addresses of a realm's KDCs in the order in which they are asked.
func (c *Client) of(ctx context.Context, realm string) ([]string, error) {
	all := c.conf.kdcs(realm)
	if len(all) == 0 && c.conf.lookup {
		_, records, err := net.DefaultResolver.LookupSRV(ctx, "kerberos", "tcp", realm)
		var missing *net.DNSError
		if err != nil && !(errors.As(err, &missing) && missing.IsNotFound) {
			return nil, fmt.Errorf("%w: %w", ErrNoAnswer, err)
		}
		for _, r := range records {
			all = append(all, net.JoinHostPort(strings.TrimSuffix(r.Target, "."), strconv.Itoa(int(r.Port))))
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%w: %q", ErrNoKDC, realm)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kdcs[realm] = slices.DeleteFunc(c.kdcs[realm], func(kdc string) bool { return !slices.Contains(all, kdc) })
	for _, kdc := range all {
		if !slices.Contains(c.kdcs[realm], kdc) {
			c.kdcs[realm] = append(c.kdcs[realm], kdc)
		}
	}
	return slices.Clone(c.kdcs[realm]), nil
}

// askOne sends a request to a KDC.
func (c *Client) askOne(ctx context.Context, kdc string, request []byte, kind byte) ([]byte, error) {
	conn, err := dial(ctx, "tcp", kdc)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	// Owned by the call; starts when ctx is done and ends at once.
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if _, err := conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(request))), request...)); err != nil {
		return nil, err
	}
	answer, err := readAnswer(conn)
	if err != nil {
		return nil, err
	}
	if bytes.HasPrefix(answer, []byte{tagApplication | kindError}) {
		refusal, err := parseError(answer)
		return nil, cmp.Or[error](err, refusal)
	}
	if _, err := parseReply(kind, answer); err != nil {
		return nil, err
	}
	return answer, nil
}

// readAnswer reads a KDC's answer. The memory that it uses is in proportion to what the KDC sends, whatever size it announces.
func readAnswer(from io.Reader) ([]byte, error) {
	var size uint32
	if err := binary.Read(from, binary.BigEndian, &size); err != nil {
		return nil, err
	}
	if size > maxAnswer {
		return nil, fmt.Errorf("%w answer: it announces %d bytes", ErrMalformed, size)
	}
	var b bytes.Buffer
	if _, err := io.CopyN(&b, from, int64(size)); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
