// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os/user"
	"strconv"
	"strings"
	"time"
)

// Memcached starts a server with its default memory limit.
func (s *Set) Memcached(ctx context.Context) (*Process, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	p, err := s.newProcess("memcached", addr)
	if err != nil {
		return nil, err
	}
	p.argv = []string{"memcached", "-l", "127.0.0.1", "-p", port(addr), "-U", "0", "-c", "4096"} // the longest queue has a thousand connections
	if u, err := user.Current(); err == nil && u.Uid == "0" {
		p.argv = append(p.argv, "-u", "nobody")
	}
	p.ready = func(ctx context.Context, p *Process) error {
		_, err := memcachedStats(ctx, p.Addr)
		return err
	}
	p.count = func(ctx context.Context, p *Process) (int64, error) {
		stats, err := memcachedStats(ctx, p.Addr)
		if err != nil {
			return 0, err
		}
		var sum int64
		for _, name := range []string{"cmd_get", "cmd_set", "cmd_touch", "cmd_meta", "delete_hits", "delete_misses"} {
			n, err := strconv.ParseInt(stats[name], 10, 64)
			if err != nil {
				return 0, fmt.Errorf("memcached: %s: %w", name, err)
			}
			sum += n
		}
		return sum, nil
	}
	return p, p.Start(ctx)
}

func memcachedStats(ctx context.Context, addr string) (map[string]string, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := fmt.Fprint(conn, "stats\r\n"); err != nil {
		return nil, err
	}
	stats := map[string]string{}
	in := bufio.NewScanner(conn)
	for in.Scan() {
		words := strings.Fields(in.Text())
		if len(words) == 3 && words[0] == "STAT" {
			stats[words[1]] = words[2]
		}
		if len(words) == 1 && words[0] == "END" {
			return stats, nil
		}
	}
	return nil, fmt.Errorf("memcached: stats ended early: %w", in.Err())
}
