// SPDX-License-Identifier: Apache-2.0

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

// backendEnv selects the backend of Test.
const backendEnv = "ZKCONTAINER_BACKEND"

// Backend is an ensemble for a test, in process or in containers.
type Backend interface {
	// Addrs returns the members' addresses, for clients that dial with DialFrom.
	Addrs() []string
	// DialFrom returns a dialer for a named client.
	DialFrom(client string) func(network, address string, timeout time.Duration) (net.Conn, error)
	// Partition cuts a client off from all members. HealClient ends the partition.
	Partition(client string)
	HealClient(client string)
	// Faults returns the faults of a member, counting from 0.
	Faults(member int) Faults
}

// Faults are the faults that can be injected into a member. The methods are those of zktest.Member and Member. Each is followed
// by the one that ends it. In containers, Start waits until the member serves clients, and a fault that cannot be injected fails
// the test.
type Faults interface {
	Stop() // ends the member at once, like kill -9
	Start()
	Freeze() // suspends the member, like SIGSTOP; its connections stay open
	Thaw()
	CutOff() // cuts the member off from the other members, not from clients
	Rejoin()
}

// Test runs body on the backend that ZKCONTAINER_BACKEND selects: "virtual" (the default), "process" or "container". In
// virtual time, body runs in a testing/synctest bubble and must close its clients. If opts contains options that only
// containers support, other backends skip the test.
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
		t.Skipf("zkcontainer: these options require containers: set %s=container", backendEnv)
	}
}

// inProcess returns the corresponding options of zktest.
func (o Options) inProcess() zktest.Options {
	o = o.withDefaults()
	return zktest.Options{
		Servers: o.Servers, TickTime: o.TickTime, SyncLimit: o.SyncLimit,
		MinSessionTimeout: o.MinSessionTimeout, MaxSessionTimeout: o.MaxSessionTimeout,
		Super: o.Super, SASL: o.SASL, RequireSASL: o.RequireSASL,
	}
}

// inProcess implements Backend with a zktest server.
type inProcess struct{ *zktest.Server }

// Faults returns the faults of a member.
func (p inProcess) Faults(member int) Faults { return p.Member(member) }

// inContainers implements Backend with containers. If a fault cannot be injected, it fails the test.
type inContainers struct {
	*Ensemble
	t *testing.T
}

// Faults returns the faults of a member.
func (c inContainers) Faults(member int) Faults { return containerFaults{c.Members[member], c.t} }

type containerFaults struct {
	m *Member
	t *testing.T
}

func (f containerFaults) Stop()   { f.do("stop", f.m.Stop) }
func (f containerFaults) Start()  { f.do("start", f.m.Start) }
func (f containerFaults) Freeze() { f.do("freeze", f.m.Freeze) }
func (f containerFaults) Thaw()   { f.do("thaw", f.m.Thaw) }
func (f containerFaults) CutOff() { f.do("cut off", f.m.CutOff) }
func (f containerFaults) Rejoin() { f.do("rejoin", f.m.Rejoin) }

func (f containerFaults) do(what string, fn func(context.Context) error) {
	if err := fn(f.t.Context()); err != nil {
		f.t.Errorf("zkcontainer: %s %s: %v", what, f.m.Name, err)
	}
}
