// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math/rand/v2"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/lab"
	"github.com/zklock-go/zklock/zktest"
)

// options returns the options of the ensemble.
func (p *Plan) options() zktest.Options {
	o := lab.With(zktest.Options{Servers: p.Servers, TickTime: p.Tick, SyncLimit: p.SyncLimit, Seed: p.Seed, Latency: p.delay, NoContainers: p.NoContainers, Flavor: p.Flavor, UnknownOps: p.UnknownOps, MinSessionTimeout: p.MinSession}, lab.Options{WrapCounter: p.WrapCounter, ForgetSessions: p.ForgetSessions, ContainerCheck: p.ContainerCheck, ExpiryGap: p.ExpiryGap, ExpiryTogether: p.expiryTogether(), LoseTouches: p.LoseTouches, LatePing: p.LatePing, MinSessionTimeouts: p.MinSessions})
	if p.Ticks != nil {
		o.TickTimes, o.MaxSessionTimeout = p.Ticks, 20*p.Tick // so that all servers grant the same longest timeout
	}
	if p.Logins {
		o.SASL, o.RequireSASL = map[string]string{"fleet": "secret"}, true
	}
	return o
}

// credentials returns the credentials that clients need.
func (p *Plan) credentials() []zklock.Auth {
	switch {
	case p.Logins:
		return []zklock.Auth{{Scheme: "sasl", Data: []byte("fleet:secret")}}
	case p.Restricted:
		return []zklock.Auth{{Scheme: "digest", Data: []byte("fleet:secret")}}
	}
	return nil
}

// acl returns the ACL of the clients' nodes; nil means no restrictions.
func (p *Plan) acl() []zk.ACL {
	if p.Restricted {
		return zk.AuthACL(zk.PermAll)
	}
	return nil
}

// slowdown is the factor by which a chunk of bytes is sometimes slower than usual.
const slowdown = 5

// delay draws the one-way delay of a chunk of bytes.
func (p *Plan) delay(r *rand.Rand) time.Duration {
	d := time.Duration(r.Int64N(int64(p.Latency)))
	if r.IntN(200) == 0 {
		d *= slowdown
	}
	return d + time.Duration(r.IntN(1000))
}
