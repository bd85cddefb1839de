package zkcontainer

import (
	"context"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock-go/zklock/zktest"
)

// backendEnv says what Test runs on.
const backendEnv = "ZKCONTAINER_BACKEND"

// Backend is an ensemble that a test runs on, in process or in containers.
type Backend interface {
	// Addrs are the members' addresses, for clients that dial with DialFrom.
	Addrs() []string
	// DialFrom returns a dialer for a client with a name.
	DialFrom(client string) func(network, address string, timeout time.Duration) (net.Conn, error)
	// Partition cuts a client from all members, HealClient ends that.
	Partition(client string)
	HealClient(client string)
	// Faults is what can be done to a member, from 0 on.
	Faults(member int) Faults
}

// Faults are what can be done to a member. Each has one that ends it.
type Faults interface {
	Stop() // as kill -9 does
	Start()
	Freeze() // as SIGSTOP does
	Thaw()
	CutOff() // from the other members
	Rejoin()
}

// Test runs a body on the backend that ZKCONTAINER_BACKEND names: "virtual" (also if it is not set), "process" or
// "container". In virtual time the body runs in a testing/synctest bubble and must close its clients. Options that only
// containers have skip the test elsewhere.
func Test(t *testing.T, opts Options, body func(t *testing.T, z Backend)) {
	t.Helper()
	switch kind := os.Getenv(backendEnv); kind {
	case "", "virtual":
		needsNoContainer(t, opts)
		synctest.Test(t, func(t *testing.T) { body(t, inProcess{zktest.Start(t, opts.inProcess())}) })
	case "process":
		needsNoContainer(t, opts)
		body(t, inProcess{zktest.Run(t, opts.inProcess())})
	case "container":
		body(t, inContainers{RunEnsemble(t.Context(), t, max(1, opts.Servers), opts), t})
	default:
		t.Fatalf("zkcontainer: %s=%s: it must be virtual, process or container", backendEnv, kind)
	}
}

func needsNoContainer(t *testing.T, o Options) {
	t.Helper()
	if o.TLS != nil || len(o.Config) > 0 || len(o.Files) > 0 || o.JVMFlags != "" {
		t.Skipf("zkcontainer: these options need containers: %s=container", backendEnv)
	}
}

// inProcess are the options of zktest that mean the same.
func (o Options) inProcess() zktest.Options {
	o = o.withDefaults()
	return zktest.Options{
		Servers: o.Servers, TickTime: o.TickTime, SyncLimit: o.SyncLimit,
		MinSessionTimeout: o.MinSessionTimeout, MaxSessionTimeout: o.MaxSessionTimeout,
		Super: o.Super, SASL: o.SASL, RequireSASL: o.RequireSASL,
	}
}

// inProcess is zktest's server as a Backend.
type inProcess struct{ *zktest.Server }

// Faults is what can be done to a member.
func (p inProcess) Faults(member int) Faults { return p.Member(member) }

// inContainers is an ensemble as a Backend: what fails, fails the test.
type inContainers struct {
	*Ensemble
	t *testing.T
}

// Faults is what can be done to a member.
func (c inContainers) Faults(member int) Faults { return containerFaults{c.Members[member], c.t} }

type containerFaults struct {
	m *Member
	t *testing.T
}

func (f containerFaults) Stop()   { f.do("stop", f.m.Kill) }
func (f containerFaults) Start()  { f.do("start", f.m.Restart) }
func (f containerFaults) Freeze() { f.do("freeze", f.m.Pause) }
func (f containerFaults) Thaw()   { f.do("thaw", f.m.Unpause) }
func (f containerFaults) CutOff() { f.do("cut off", f.m.CutFromPeers) }
func (f containerFaults) Rejoin() { f.do("rejoin", f.m.Heal) }

func (f containerFaults) do(what string, fn func(context.Context) error) {
	if err := fn(f.t.Context()); err != nil {
		f.t.Errorf("zkcontainer: %s %s: %v", what, f.m.Name, err)
	}
}
