// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
)

// Etcd starts a cluster of one member.
func (s *Set) Etcd(ctx context.Context) (*Process, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	peer, err := freeAddr()
	if err != nil {
		return nil, err
	}
	p, err := s.newEtcd("etcd", addr, peer, "etcd=http://"+peer)
	if err != nil {
		return nil, err
	}
	return p, p.Start(ctx)
}

func (s *Set) newEtcd(name, addr, peer, cluster string) (*Process, error) {
	p, err := s.newProcess(name, addr)
	if err != nil {
		return nil, err
	}
	p.argv = []string{
		"etcd", "--name", name, "--data-dir", filepath.Join(p.dir, "data"), "--logger", "zap",
		"--listen-client-urls", "http://" + addr, "--advertise-client-urls", "http://" + addr,
		"--listen-peer-urls", "http://" + peer, "--initial-advertise-peer-urls", "http://" + peer,
		"--initial-cluster", cluster,
	}
	p.ready = func(ctx context.Context, p *Process) error {
		health, err := httpGet(ctx, "http://"+p.Addr+"/health")
		if err == nil && !strings.Contains(health, `"true"`) {
			err = fmt.Errorf("etcd is not healthy: %s", health)
		}
		return err
	}
	p.count = func(ctx context.Context, p *Process) (int64, error) {
		metrics, err := httpGet(ctx, "http://"+p.Addr+"/metrics")
		if err != nil {
			return 0, err
		}
		return sumMetric(metrics, "grpc_server_msg_received_total{"), nil
	}
	return p, nil
}

// sumMetric adds up all the series of one metric in Prometheus' text format.
func sumMetric(metrics, prefix string) int64 {
	var sum float64
	for _, line := range strings.Split(metrics, "\n") {
		if !strings.HasPrefix(line, prefix) {
			continue
		}
		words := strings.Fields(line)
		if v, err := strconv.ParseFloat(words[len(words)-1], 64); err == nil {
			sum += v
		}
	}
	return int64(sum)
}

func httpGet(ctx context.Context, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}
