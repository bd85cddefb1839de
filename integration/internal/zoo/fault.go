package zoo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go/exec"
)

// What a server says it is.
const (
	Standalone = "standalone"
	Leader     = "leader"
	Follower   = "follower"
)

// ask sends one of the server's four letter words.
func (s *Server) ask(ctx context.Context, word string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.Addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, word); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	return string(answer), err
}

// Mode is what the server is now: Leader, Follower, Standalone, or "" while it serves nobody.
func (s *Server) Mode(ctx context.Context) string {
	answer, err := s.ask(ctx, "srvr")
	if err != nil {
		return ""
	}
	_, mode, _ := strings.Cut(answer, "Mode: ")
	mode, _, _ = strings.Cut(mode, "\n")
	return mode
}

// Version is what the server says of itself.
func (s *Server) Version(ctx context.Context) string {
	answer, _ := s.ask(ctx, "srvr")
	_, version, _ := strings.Cut(answer, "version: ")
	version, _, _ = strings.Cut(version, ",")
	version, _, _ = strings.Cut(version, "-")
	return version
}

// Watches is how many watches the server's connections have set.
func (s *Server) Watches(ctx context.Context) (int, error) {
	answer, err := s.ask(ctx, "wchs")
	if err != nil {
		return 0, err
	}
	_, count, _ := strings.Cut(answer, "Total watches:")
	return strconv.Atoi(strings.TrimSpace(count))
}

// Busy waits until the server has a request that it has not answered.
func (s *Server) Busy(ctx context.Context) error {
	return poll(ctx, s.Name+" to have a request to answer", func() bool {
		answer, err := s.ask(ctx, "srvr")
		_, count, _ := strings.Cut(answer, "Outstanding: ")
		count, _, _ = strings.Cut(count, "\n")
		return err == nil && count != "" && count != "0"
	})
}

// poll asks until ok. A server tells nobody when it has found its leader: there is nothing else to wait for.
func poll(ctx context.Context, what string, ok func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, 90*time.Second)
	defer cancel()
	for !ok() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
	return nil
}

// Serves waits until the server serves clients.
func (s *Server) Serves(ctx context.Context) error {
	return poll(ctx, s.Name+" to serve", func() bool { return s.Mode(ctx) != "" })
}

// Healthy waits until every member serves and they agree on one leader.
func (z *Ensemble) Healthy(ctx context.Context) error {
	return poll(ctx, "a healthy ensemble", func() bool {
		modes := map[string]int{}
		for _, s := range z.Servers {
			modes[s.Mode(ctx)]++
		}
		if len(z.Servers) == 1 {
			return modes[Standalone] == 1
		}
		return modes[Leader] == 1 && modes[Follower] == len(z.Servers)-1
	})
}

// Leader waits for a leader other than the given servers and returns it.
func (z *Ensemble) Leader(ctx context.Context, except ...*Server) (*Server, error) {
	var leader *Server
	err := poll(ctx, "a leader", func() bool {
		for _, s := range z.Servers {
			if !among(s, except) && s.Mode(ctx) == Leader {
				leader = s
			}
		}
		return leader != nil
	})
	return leader, err
}

// Followers returns all but the leader.
func (z *Ensemble) Followers(ctx context.Context) ([]*Server, error) {
	leader, err := z.Leader(ctx)
	var followers []*Server
	for _, s := range z.Servers {
		if s != leader {
			followers = append(followers, s)
		}
	}
	return followers, err
}

func among(s *Server, list []*Server) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// Kill ends the server's process at once, as a power cut does.
func (s *Server) Kill(ctx context.Context) error {
	_, err := s.api.ContainerKill(ctx, s.ctr.GetContainerID(), client.ContainerKillOptions{Signal: "KILL"})
	return err
}

// Restart starts a killed server again and waits until it serves.
func (s *Server) Restart(ctx context.Context) error {
	if _, err := s.api.ContainerStart(ctx, s.ctr.GetContainerID(), client.ContainerStartOptions{}); err != nil {
		return err
	}
	return s.Serves(ctx)
}

// Wipe takes all of the server's data away and starts it anew, as after the loss of a disk or with an empty backup.
func (s *Server) Wipe(ctx context.Context) error {
	if err := s.inside(ctx, "rm", "-rf", "/data/version-2"); err != nil {
		return err
	}
	if err := s.Kill(ctx); err != nil {
		return err
	}
	return s.Restart(ctx)
}

// Pause stops the server's process where it stands; its sockets stay open.
func (s *Server) Pause(ctx context.Context) error {
	_, err := s.api.ContainerPause(ctx, s.ctr.GetContainerID(), client.ContainerPauseOptions{})
	return err
}

// Unpause lets it go on.
func (s *Server) Unpause(ctx context.Context) error {
	_, err := s.api.ContainerUnpause(ctx, s.ctr.GetContainerID(), client.ContainerUnpauseOptions{})
	return err
}

// CutFromPeers drops every packet between the server and the other members. Its clients still reach it.
func (s *Server) CutFromPeers(ctx context.Context) error {
	var rules []string
	for _, peer := range s.all.Servers {
		if peer == s {
			continue
		}
		ip, err := peer.ctr.ContainerIP(ctx)
		if err != nil {
			return err
		}
		rules = append(rules, "iptables -w -A INPUT -s "+ip+" -j DROP", "iptables -w -A OUTPUT -d "+ip+" -j DROP")
	}
	return s.inside(ctx, "sh", "-c", strings.Join(rules, " && ")) // all at once
}

// Heal takes CutFromPeers back.
func (s *Server) Heal(ctx context.Context) error { return s.inside(ctx, "iptables", "-w", "-F") }

// Slow makes everything that the server sends late, and says how: a delay of each packet by netem, or, on a kernel
// without it, a link so narrow that packets queue up.
func (s *Server) Slow(ctx context.Context) (how string, err error) {
	netem := []string{"netem", "delay", "40ms", "15ms"}
	narrow := []string{"tbf", "rate", "512kbit", "burst", "3kb", "latency", "3s"}
	for _, qdisc := range [][]string{netem, narrow} {
		trouble := s.inside(ctx, append([]string{"tc", "qdisc", "replace", "dev", "eth0", "root"}, qdisc...)...)
		if trouble == nil {
			return strings.Join(qdisc, " "), nil
		}
		err = errors.Join(err, trouble)
	}
	return "", err
}

// Fast takes Slow back.
func (s *Server) Fast(ctx context.Context) error {
	return s.inside(ctx, "tc", "qdisc", "del", "dev", "eth0", "root")
}

// CanHurtNetworks reports what is missing for cuts and slow links, if anything is.
func (z *Ensemble) CanHurtNetworks(ctx context.Context) error {
	for _, tool := range []string{"iptables", "tc"} {
		if err := z.Servers[0].inside(ctx, "which", tool); err != nil {
			return fmt.Errorf("the image %s has no %s", z.Config.Image, tool)
		}
	}
	return nil
}

// inside runs one of the image's tools in the server's container, which may change its own network.
func (s *Server) inside(ctx context.Context, command ...string) error {
	code, out, err := s.ctr.Exec(ctx, command, exec.Multiplexed())
	if err != nil {
		return fmt.Errorf("%s: %s: %w", s.Name, strings.Join(command, " "), err)
	}
	if code == 0 {
		return nil
	}
	trouble, _ := io.ReadAll(out)
	return fmt.Errorf("%s: %s: exit code %d: %s", s.Name, strings.Join(command, " "), code, strings.TrimSpace(string(trouble)))
}

// Logs are the last lines the server wrote, for a failure's report.
func (s *Server) Logs(ctx context.Context) string {
	logs, err := s.ctr.Logs(ctx)
	if err != nil {
		return err.Error()
	}
	defer logs.Close()
	all, _ := io.ReadAll(logs)
	lines := strings.Split(string(all), "\n")
	return strings.Join(lines[max(0, len(lines)-30):], "\n")
}

// Read returns a file of the container.
func (s *Server) Read(ctx context.Context, path string) ([]byte, error) {
	r, err := s.ctr.CopyFileFromContainer(ctx, path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}
