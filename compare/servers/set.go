// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Set owns a group of servers, their directory, and other resources that Close releases. It is not safe for concurrent use.
type Set struct {
	dir   string
	ends  []func()
	count int
}

// NewSet returns an empty Set with a temporary directory.
func NewSet() (*Set, error) {
	dir, err := os.MkdirTemp("", "zklock-compare-")
	if err != nil {
		return nil, err
	}
	// PostgreSQL runs as another user below this directory.
	if err := os.Chmod(dir, 0o711); err != nil {
		return nil, err
	}
	return &Set{dir: dir}, nil
}

// Close stops all servers, in reverse order of their start, and removes their data.
func (s *Set) Close() {
	for i := len(s.ends) - 1; i >= 0; i-- {
		s.ends[i]()
	}
	s.ends = nil
	_ = os.RemoveAll(s.dir)
}

func (s *Set) atEnd(end func()) { s.ends = append(s.ends, end) }

func (s *Set) newProcess(name, addr string) (*Process, error) {
	s.count++
	dir := filepath.Join(s.dir, strconv.Itoa(s.count)+"-"+name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	p := &Process{Name: name, Addr: addr, dir: dir}
	s.atEnd(p.Stop)
	return p, nil
}

// eventually calls ask until it returns nil, but no longer than readyWithin.
func eventually(ctx context.Context, ask func() error) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for {
		err := ask()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// fields reads "name<sep>value" lines.
func fields(text, sep string) map[string]string {
	out := map[string]string{}
	for _, line := range strings.Split(text, "\n") {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), sep); ok {
			out[name] = strings.TrimSpace(value)
		}
	}
	return out
}
