// Package zoo runs ZooKeeper servers in containers, one or an ensemble on a private network, and breaks them on request.
package zoo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	tcnetwork "github.com/testcontainers/testcontainers-go/network"

	"github.com/zklock-go/zklock/integration/internal/engine"
)

// The ports inside the containers.
const (
	clientPort = "2181/tcp"
	securePort = "2281/tcp"
)

// Config describes an ensemble. The zero value is one server with short ticks.
type Config struct {
	Image     string
	Servers   int               // default 1
	Tick      time.Duration     // default 500ms: sessions of 1 s to 10 s
	SyncLimit int               // ticks a follower may be without its leader, default 5
	Lines     []string          // more lines of zoo.cfg
	Files     map[string][]byte // more files, by full path inside every container
	JVMFlags  string
	Secure    bool // publish the secure client port too
}

func (c Config) withDefaults() Config {
	if c.Servers == 0 {
		c.Servers = 1
	}
	if c.Tick == 0 {
		c.Tick = 500 * time.Millisecond
	}
	if c.SyncLimit == 0 {
		c.SyncLimit = 5
	}
	return c
}

// Ensemble is a running ensemble.
type Ensemble struct {
	Config  Config
	Servers []*Server

	engine *engine.Engine
	net    *testcontainers.DockerNetwork
}

// Server is one of its members.
type Server struct {
	Name   string // on the private network
	Addr   string // of its client port, from here
	Secure string // of its secure client port, from here

	api *client.Client
	all *Ensemble
	ctr *testcontainers.DockerContainer
}

// Start starts an ensemble and waits until every member serves.
func Start(ctx context.Context, e *engine.Engine, cfg Config) (*Ensemble, error) {
	z := &Ensemble{Config: cfg.withDefaults(), engine: e}
	var err error
	z.net, err = tcnetwork.New(ctx, tcnetwork.WithLabels(map[string]string{engine.Label: e.Run}))
	if err != nil {
		return nil, fmt.Errorf("network: %w", err)
	}
	for i := range z.Config.Servers {
		z.Servers = append(z.Servers, &Server{Name: "zk" + strconv.Itoa(i+1), api: e.API, all: z})
	}
	if err := z.each(func(s *Server) error { return s.create(ctx) }); err != nil {
		return nil, errors.Join(err, z.Stop(ctx))
	}
	if err := z.Healthy(ctx); err != nil {
		for _, s := range z.Servers {
			err = fmt.Errorf("%w\nthe last words of %s:\n%s", err, s.Name, s.Logs(ctx))
		}
		return nil, errors.Join(err, z.Stop(ctx))
	}
	return z, nil
}

// Stop removes the ensemble and its network.
func (z *Ensemble) Stop(ctx context.Context) error {
	err := z.each(func(s *Server) error {
		if s.ctr == nil {
			return nil
		}
		_, err := z.engine.API.ContainerRemove(ctx, s.ctr.GetContainerID(), client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		return err
	})
	return errors.Join(err, z.net.Remove(ctx))
}

// each runs do for all members at once.
func (z *Ensemble) each(do func(s *Server) error) error {
	errs := make([]error, len(z.Servers))
	var wg sync.WaitGroup
	for i, s := range z.Servers {
		wg.Add(1)
		// Ends when do does; each waits for it.
		go func() {
			defer wg.Done()
			if err := do(s); err != nil {
				errs[i] = fmt.Errorf("%s: %w", s.Name, err)
			}
		}()
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Addrs are the members' client addresses from here.
func (z *Ensemble) Addrs() []string {
	var addrs []string
	for _, s := range z.Servers {
		addrs = append(addrs, s.Addr)
	}
	return addrs
}

// Inside are the members' client addresses for containers on the private network.
func (z *Ensemble) Inside() []string {
	var addrs []string
	for _, s := range z.Servers {
		addrs = append(addrs, s.Name+":2181")
	}
	return addrs
}

// Network is the name of the private network.
func (z *Ensemble) Network() string { return z.net.Name }

// config is zoo.cfg. What a server with a disk promises after a power cut is not what is tested: no fsync.
func (z *Ensemble) config() []byte {
	lines := []string{
		fmt.Sprintf("tickTime=%d", z.Config.Tick.Milliseconds()),
		"initLimit=20",
		fmt.Sprintf("syncLimit=%d", z.Config.SyncLimit),
		"dataDir=/data", "clientPort=2181", "maxClientCnxns=0", "admin.enableServer=false",
		"4lw.commands.whitelist=*", "forceSync=no", "preAllocSize=1024",
		// A member that comes back gets the transactions that it missed, not a snapshot: the tests read its log.
		"snapCount=1000000", "commitLogCount=1000000",
	}
	if len(z.Servers) > 1 {
		for i, s := range z.Servers {
			lines = append(lines, fmt.Sprintf("server.%d=%s:2888:3888", i+1, s.Name))
		}
	}
	return []byte(strings.Join(append(lines, z.Config.Lines...), "\n") + "\n")
}

func (s *Server) create(ctx context.Context) error {
	z := s.all
	files := map[string][]byte{
		"/conf/zoo.cfg": z.config(),
		"/data/myid":    []byte(strings.TrimPrefix(s.Name, "zk") + "\n"),
	}
	maps.Copy(files, z.Config.Files)
	bindings := network.PortMap{}
	var err error
	if s.Addr, err = publish(bindings, clientPort); err != nil {
		return err
	}
	exposed := []string{clientPort}
	if z.Config.Secure {
		exposed = append(exposed, securePort)
		if s.Secure, err = publish(bindings, securePort); err != nil {
			return err
		}
	}
	s.ctr, err = testcontainers.Run(ctx, z.Config.Image,
		testcontainers.WithLabels(map[string]string{engine.Label: z.engine.Run}),
		testcontainers.WithEnv(map[string]string{"SERVER_JVMFLAGS": z.Config.JVMFlags, "ZK_SERVER_HEAP": "192"}),
		testcontainers.WithExposedPorts(exposed...),
		testcontainers.WithHostConfigModifier(func(h *container.HostConfig) {
			h.PortBindings = bindings
			h.CapAdd = []string{"NET_ADMIN"} // for cuts and slow links, which need no right on this machine then
		}),
		tcnetwork.WithNetwork([]string{s.Name}, z.net),
		testcontainers.WithFiles(asFiles(files)...),
	)
	return err
}

func asFiles(files map[string][]byte) []testcontainers.ContainerFile {
	var out []testcontainers.ContainerFile
	for _, path := range slices.Sorted(maps.Keys(files)) {
		out = append(out, testcontainers.ContainerFile{Reader: bytes.NewReader(files[path]), ContainerFilePath: path, FileMode: 0o644})
	}
	return out
}

// Ports are taken from below the range from which the kernel serves other sockets, so that none of them can take one while
// its container restarts. Processes start at different places.
const firstPort, ports = 20000, 12000

var tried atomic.Int64

// publish binds a container's port to a free one of the loopback address, which stays the same when the container restarts.
func publish(bindings network.PortMap, port string) (string, error) {
	loopback := netip.MustParseAddr("127.0.0.1")
	for range ports {
		candidate := firstPort + (int64(os.Getpid())*31+tried.Add(1))%ports
		l, err := net.Listen("tcp", net.JoinHostPort(loopback.String(), strconv.FormatInt(candidate, 10)))
		if err != nil {
			continue // taken
		}
		bindings[network.MustParsePort(port)] = []network.PortBinding{{HostIP: loopback, HostPort: strconv.FormatInt(candidate, 10)}}
		return l.Addr().String(), l.Close()
	}
	return "", errors.New("no free port on the loopback address")
}
