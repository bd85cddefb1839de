// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// ErrNoNamespaces reports that network namespaces cannot be created here, so no member can be cut off.
var ErrNoNamespaces = errors.New("network namespaces need root, ip and iptables")

// Ensemble is a group of three servers. Each runs in its own network namespace, on a bridge inside this machine, so that a
// member can be cut off from its peers while its clients still reach it.
type Ensemble struct {
	Members []*Process
	leads   func(context.Context, *Process) (bool, error) // nil if the servers are independent
	net     *network
}

// Addrs returns the client addresses of all members.
func (e *Ensemble) Addrs() []string {
	var all []string
	for _, m := range e.Members {
		all = append(all, m.Addr)
	}
	return all
}

// Leader waits until a member leads and returns it.
func (e *Ensemble) Leader(ctx context.Context) (*Process, error) {
	var leader *Process
	err := eventually(ctx, func() error {
		for _, m := range e.Members {
			if leads, err := e.leads(ctx, m); err == nil && leads {
				leader = m
				return nil
			}
		}
		return errors.New("no member leads")
	})
	return leader, err
}

// Follower returns a member that does not lead.
func (e *Ensemble) Follower(ctx context.Context) (*Process, error) {
	leader, err := e.Leader(ctx)
	if err != nil {
		return nil, err
	}
	for _, m := range e.Members {
		if m != leader {
			return m, nil
		}
	}
	return nil, errors.New("no member follows")
}

// CutOff drops all packets between a member and its peers. Its clients still reach it.
func (e *Ensemble) CutOff(member *Process) error {
	for i, m := range e.Members {
		if m == member {
			return e.net.cutOff(i)
		}
	}
	return errors.New("not a member")
}

// Heal undoes every CutOff.
func (e *Ensemble) Heal() error { return e.net.heal() }

// Slow delays everything that the members send, to peers and to clients. It returns the setting of tc that it used.
func (e *Ensemble) Slow() (how string, err error) { return e.net.slow() }

// Fast undoes Slow.
func (e *Ensemble) Fast() error { return e.net.fast() }

// Healthy waits until every member answers and, unless the servers are independent, one of them leads.
func (e *Ensemble) Healthy(ctx context.Context) error {
	for _, m := range e.Members {
		if err := eventually(ctx, func() error { return m.ready(ctx, m) }); err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
	}
	if e.leads == nil {
		return nil
	}
	_, err := e.Leader(ctx)
	return err
}

// ZooKeeperEnsemble starts three servers.
func (s *Set) ZooKeeperEnsemble(ctx context.Context) (*Ensemble, error) {
	nw, err := s.newNetwork(3)
	if err != nil {
		return nil, err
	}
	var lines []string
	for i := range 3 {
		lines = append(lines, fmt.Sprintf("server.%d=%s:2888:3888", i+1, nw.ip(i)))
	}
	e := &Ensemble{net: nw, leads: func(ctx context.Context, p *Process) (bool, error) {
		stats, err := fourLetters(ctx, p.Addr, "mntr")
		return fields(stats, "\t")["zk_server_state"] == "leader", err
	}}
	for i := range 3 {
		p, err := s.newZooKeeper(fmt.Sprintf("zookeeper-%d", i+1), nw.ip(i)+":2181", strings.Join(lines, "\n")+"\n")
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(p.dir, "data", "myid"), fmt.Appendf(nil, "%d\n", i+1), 0o644); err != nil {
			return nil, err
		}
		p.argv = nw.inside(i, p.argv)
		e.Members = append(e.Members, p)
	}
	return e, e.startAll(ctx)
}

// EtcdCluster starts three members.
func (s *Set) EtcdCluster(ctx context.Context) (*Ensemble, error) {
	nw, err := s.newNetwork(3)
	if err != nil {
		return nil, err
	}
	var cluster []string
	for i := range 3 {
		cluster = append(cluster, fmt.Sprintf("etcd-%d=http://%s:2380", i+1, nw.ip(i)))
	}
	e := &Ensemble{net: nw, leads: func(ctx context.Context, p *Process) (bool, error) {
		metrics, err := httpGet(ctx, "http://"+p.Addr+"/metrics")
		return sumMetric(metrics, "etcd_server_is_leader ") == 1, err
	}}
	for i := range 3 {
		p, err := s.newEtcd(fmt.Sprintf("etcd-%d", i+1), nw.ip(i)+":2379", nw.ip(i)+":2380", strings.Join(cluster, ","))
		if err != nil {
			return nil, err
		}
		p.argv = nw.inside(i, p.argv)
		e.Members = append(e.Members, p)
	}
	return e, e.startAll(ctx)
}

// startAll starts the members at the same time, since a single one does not become ready.
func (e *Ensemble) startAll(ctx context.Context) error {
	errs := make(chan error, len(e.Members))
	for _, m := range e.Members {
		// Owned by startAll, which waits for every one; Start bounds each.
		go func() { errs <- m.Start(ctx) }()
	}
	var all error
	for range e.Members {
		all = errors.Join(all, <-errs)
	}
	if all != nil {
		return all
	}
	return e.Healthy(ctx)
}

// RedisTrio starts three independent servers. If durable is set, they write each change to disk before they reply.
func (s *Set) RedisTrio(ctx context.Context, durable bool) (*Ensemble, error) {
	nw, err := s.newNetwork(3)
	if err != nil {
		return nil, err
	}
	e := &Ensemble{net: nw}
	for i := range 3 {
		settings := []string{"--bind", nw.ip(i), "--port", "6379", "--protected-mode", "no"}
		if durable {
			settings = append(settings, "--appendonly", "yes", "--appendfsync", "always")
		}
		p, err := s.newRedis(fmt.Sprintf("redis-%d", i+1), settings...)
		if err != nil {
			return nil, err
		}
		p.Addr, p.argv = nw.ip(i)+":6379", nw.inside(i, p.argv)
		e.Members = append(e.Members, p)
	}
	return e, e.startAll(ctx)
}

// network is a bridge and a namespace for each member.
type network struct {
	name  string // name of our device, and prefix of the namespaces' names
	third int    // third byte of the addresses
	size  int
}

// newNetwork creates the namespaces. The Set's Close removes them.
func (s *Set) newNetwork(size int) (*network, error) {
	if os.Getuid() != 0 {
		return nil, ErrNoNamespaces
	}
	for _, tool := range []string{"ip", "iptables"} {
		if _, err := exec.LookPath(tool); err != nil {
			return nil, ErrNoNamespaces
		}
	}
	third, err := freeSubnet()
	if err != nil {
		return nil, err
	}
	n := &network{name: fmt.Sprintf("zlc%d", third), third: third, size: size}
	s.atEnd(n.remove)
	// The bridge has a namespace, too: a container engine may drop bridged packets in the host's.
	hub := n.name + "hub"
	steps := []string{
		"ip netns add " + hub,
		"ip -n " + hub + " link add bridge type bridge",
		"ip -n " + hub + " link set bridge up",
		fmt.Sprintf("ip link add %s type veth peer name host netns %s", n.name, hub),
		fmt.Sprintf("ip addr add 10.213.%d.1/24 dev %s", third, n.name),
		"ip link set " + n.name + " up",
		"ip -n " + hub + " link set host master bridge up",
	}
	for i := range size {
		ns, end := n.namespace(i), fmt.Sprintf("member%d", i)
		steps = append(steps,
			"ip netns add "+ns,
			"ip -n "+hub+" link add "+end+" type veth peer name eth0 netns "+ns,
			"ip -n "+hub+" link set "+end+" master bridge up",
			fmt.Sprintf("ip -n %s addr add %s/24 dev eth0", ns, n.ip(i)),
			"ip -n "+ns+" link set eth0 up",
			"ip -n "+ns+" link set lo up",
		)
	}
	return n, run(steps...)
}

// subnets remembers the last subnet in use by this process; several Sets can be built at the same time.
var subnets struct {
	sync.Mutex
	last int // guarded by the mutex
}

// freeSubnet finds a 10.213.x.0/24 that no device of this machine uses.
func freeSubnet() (int, error) {
	subnets.Lock()
	defer subnets.Unlock()
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return 0, err
	}
	used := map[string]bool{}
	for _, a := range addrs {
		if ip, _, err := net.ParseCIDR(a.String()); err == nil {
			used[ip.String()] = true
		}
	}
	for range 254 {
		subnets.last = subnets.last%254 + 1
		third := subnets.last
		if !used[fmt.Sprintf("10.213.%d.1", third)] {
			return third, nil
		}
	}
	return 0, errors.New("no free subnet under 10.213.0.0/16")
}

func (n *network) ip(i int) string        { return fmt.Sprintf("10.213.%d.%d", n.third, 10+i) }
func (n *network) namespace(i int) string { return fmt.Sprintf("%sn%d", n.name, i) }

// inside returns a command line that runs argv in member i's namespace.
func (n *network) inside(i int, argv []string) []string {
	return append([]string{"ip", "netns", "exec", n.namespace(i)}, argv...)
}

func (n *network) cutOff(i int) error {
	var steps []string
	for peer := range n.size {
		if peer == i {
			continue
		}
		at := "ip netns exec " + n.namespace(i) + " iptables -w "
		steps = append(steps, at+"-A INPUT -s "+n.ip(peer)+" -j DROP", at+"-A OUTPUT -d "+n.ip(peer)+" -j DROP")
	}
	return run(steps...)
}

// slow delays each packet. On a kernel without netem it limits the bandwidth instead, so that packets queue up.
func (n *network) slow() (how string, err error) {
	for _, how := range []string{"netem delay 40ms 15ms", "tbf rate 512kbit burst 3kb latency 3s"} {
		var steps []string
		for i := range n.size {
			steps = append(steps, "ip netns exec "+n.namespace(i)+" tc qdisc replace dev eth0 root "+how)
		}
		trouble := run(steps...)
		if trouble == nil {
			return how, nil
		}
		err = errors.Join(err, trouble)
	}
	return "", err
}

func (n *network) fast() error {
	var steps []string
	for i := range n.size {
		steps = append(steps, "ip netns exec "+n.namespace(i)+" tc qdisc del dev eth0 root")
	}
	return run(steps...)
}

func (n *network) heal() error {
	var steps []string
	for i := range n.size {
		steps = append(steps, "ip netns exec "+n.namespace(i)+" iptables -w -F")
	}
	return run(steps...)
}

func (n *network) remove() {
	for i := range n.size {
		_ = run("ip netns del " + n.namespace(i))
	}
	_ = run("ip netns del " + n.name + "hub")
}

// run runs command lines, split at spaces, one after the other. It stops at the first that fails.
func run(lines ...string) error {
	for _, line := range lines {
		if _, err := output(nil, "", strings.Fields(line)...); err != nil {
			return err
		}
	}
	return nil
}
