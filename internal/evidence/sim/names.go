// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/testnet"
)

// silentNet begins the addresses at which no host answers.
const silentNet = "192.0.2."

// named returns a network in which each server has a name, and the names of some servers. A name has Names addresses. No host answers at
// any of them but the last. With OneName the servers are the addresses of one name instead.
func (f *fleet) named(servers []string, dial zk.Dialer) (n *testnet.Net, names []string) {
	if f.plan.OneName {
		return &testnet.Net{Dial: dial, Resolve: func(context.Context, string) ([]string, error) { return testnet.Hosts(servers) }}, []string{"zk:2181"}
	}
	all := f.srv.Addrs()
	for _, server := range servers {
		names = append(names, fmt.Sprintf("zk%d:2181", slices.Index(all, server)+1))
	}
	return &testnet.Net{
		Dial: func(network, address string, timeout time.Duration) (net.Conn, error) {
			if strings.HasPrefix(address, silentNet) {
				time.Sleep(timeout)
				return nil, os.ErrDeadlineExceeded
			}
			return dial(network, address, timeout)
		},
		Resolve: func(_ context.Context, host string) (found []string, err error) {
			for i, server := range all {
				if host == fmt.Sprintf("zk%d", i+1) {
					for k := range f.plan.Names - 1 {
						found = append(found, fmt.Sprint(silentNet, k+1))
					}
					own, _, err := net.SplitHostPort(server)
					return append(found, own), err
				}
			}
			return nil, fmt.Errorf("sim: no host %q", host)
		},
	}, names
}
