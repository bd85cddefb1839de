// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

func (s *Set) newRedis(name string, extra ...string) (*Process, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	p, err := s.newProcess(name, addr)
	if err != nil {
		return nil, err
	}
	p.argv = append([]string{"redis-server", "--bind", "127.0.0.1", "--port", port(addr), "--dir", p.dir, "--protected-mode", "yes"}, extra...)
	p.ready = func(ctx context.Context, p *Process) error {
		_, err := redisInfo(ctx, p.Addr, "server")
		return err
	}
	p.count = func(ctx context.Context, p *Process) (int64, error) {
		info, err := redisInfo(ctx, p.Addr, "stats")
		if err != nil {
			return 0, err
		}
		return strconv.ParseInt(info["total_commands_processed"], 10, 64)
	}
	return p, nil
}

// Redis starts a single server.
func (s *Set) Redis(ctx context.Context) (*Process, error) {
	p, err := s.newRedis("redis")
	if err != nil {
		return nil, err
	}
	return p, p.Start(ctx)
}

// Redlock starts the five independent servers that the Redlock algorithm recommends.
func (s *Set) Redlock(ctx context.Context) ([]*Process, error) {
	var all []*Process
	for i := range 5 {
		p, err := s.newRedis(fmt.Sprintf("redlock-%d", i+1))
		if err != nil {
			return nil, err
		}
		if err := p.Start(ctx); err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// RedisPair starts a primary and a replica and waits until the replica is in sync.
func (s *Set) RedisPair(ctx context.Context) (*Pair, error) {
	primary, err := s.newRedis("redis-primary", "--repl-diskless-sync-delay", "0")
	if err != nil {
		return nil, err
	}
	if err := primary.Start(ctx); err != nil {
		return nil, err
	}
	link, err := s.NewSwitch(primary.Addr)
	if err != nil {
		return nil, err
	}
	host, linkPort, _ := net.SplitHostPort(link.Addr())
	replica, err := s.newRedis("redis-replica", "--replicaof", host, linkPort)
	if err != nil {
		return nil, err
	}
	if err := replica.Start(ctx); err != nil {
		return nil, err
	}
	inSync := func(ctx context.Context) error {
		info, err := redisInfo(ctx, replica.Addr, "replication")
		if err == nil && info["master_link_status"] != "up" {
			err = fmt.Errorf("replica's link is %s", info["master_link_status"])
		}
		return err
	}
	promote := func(ctx context.Context) error {
		_, err := redisCommand(ctx, replica.Addr, "REPLICAOF NO ONE")
		return err
	}
	return s.newPair(ctx, &Pair{Primary: primary, Standby: replica, link: link, inSync: inSync, promote: promote})
}

// redisCommand sends one inline command and returns its reply's text.
func redisCommand(ctx context.Context, addr, command string) (string, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := fmt.Fprintf(conn, "%s\r\n", command); err != nil {
		return "", err
	}
	in := bufio.NewReader(conn)
	line, err := in.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimSpace(line)
	switch {
	case strings.HasPrefix(line, "-"):
		return "", fmt.Errorf("redis: %s: %s", command, line[1:])
	case !strings.HasPrefix(line, "$"):
		return strings.TrimPrefix(line, "+"), nil
	}
	size, err := strconv.Atoi(line[1:])
	if err != nil {
		return "", err
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(in, body); err != nil {
		return "", err
	}
	return string(body), nil
}

func redisInfo(ctx context.Context, addr, section string) (map[string]string, error) {
	text, err := redisCommand(ctx, addr, "INFO "+section)
	if err != nil {
		return nil, err
	}
	return fields(text, ":"), nil
}

// redisDurability returns the persistence settings, as reported by the server.
func redisDurability(ctx context.Context, addr string) string {
	info, err := redisInfo(ctx, addr, "persistence")
	if err != nil {
		return "unknown"
	}
	aof := map[string]string{"0": "no", "1": "yes"}[info["aof_enabled"]]
	return "appendonly " + aof + ", snapshots as in the built-in default (save 3600 1 300 100 60 10000)"
}
