// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// zkClassPath is the class path of Debian's own scripts. The jar's manifest names its dependencies, except a part of Netty
// that TLS needs.
const zkClassPath = "/usr/share/java/zookeeper.jar:/usr/share/java/netty-codec.jar"

// zkTick is ZooKeeper's default tickTime. The shortest session timeout is two ticks, so 4 s.
const zkTick = 2 * time.Second

// ZooKeeper starts a single server.
func (s *Set) ZooKeeper(ctx context.Context) (*Process, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	p, err := s.newZooKeeper("zookeeper", addr, "")
	if err != nil {
		return nil, err
	}
	return p, p.Start(ctx)
}

func (s *Set) newZooKeeper(name, addr, members string) (*Process, error) {
	p, err := s.newProcess(name, addr)
	if err != nil {
		return nil, err
	}
	host, portNumber, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	config := fmt.Sprintf(`dataDir=%s
clientPort=%s
clientPortAddress=%s
tickTime=%d
initLimit=10
syncLimit=5
maxClientCnxns=0
admin.enableServer=false
4lw.commands.whitelist=mntr,srvr
%s`, filepath.Join(p.dir, "data"), portNumber, host, zkTick.Milliseconds(), members)
	if err := os.Mkdir(filepath.Join(p.dir, "data"), 0o755); err != nil {
		return nil, err
	}
	file := filepath.Join(p.dir, "zoo.cfg")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		return nil, err
	}
	p.argv = []string{"java", "-Xmx512m", "-Dzookeeper.root.logger=WARN,CONSOLE", "-cp", "/etc/zookeeper/conf_example:" + zkClassPath,
		"org.apache.zookeeper.server.quorum.QuorumPeerMain", file}
	p.ready = func(ctx context.Context, p *Process) error {
		stats, err := fourLetters(ctx, p.Addr, "mntr")
		if err == nil && !strings.Contains(stats, "zk_server_state") {
			err = fmt.Errorf("zookeeper is not ready: %q", strings.TrimSpace(stats))
		}
		return err
	}
	p.count = func(ctx context.Context, p *Process) (int64, error) {
		stats, err := fourLetters(ctx, p.Addr, "mntr")
		if err != nil {
			return 0, err
		}
		return strconv.ParseInt(fields(stats, "\t")["zk_packets_received"], 10, 64)
	}
	return p, nil
}

// fourLetters sends a four-letter command to a server and returns the reply.
func fourLetters(ctx context.Context, addr, word string) (string, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := io.WriteString(conn, word); err != nil {
		return "", err
	}
	out, err := io.ReadAll(conn)
	return string(out), err
}

// zkVersion returns the version from the first line of srvr, without the details of the build.
func zkVersion(ctx context.Context, addr string) string {
	out, err := fourLetters(ctx, addr, "srvr")
	if err != nil {
		return "unknown"
	}
	version, _, _ := strings.Cut(strings.TrimPrefix(strings.SplitN(out, "\n", 2)[0], "Zookeeper version: "), "-")
	return version
}
