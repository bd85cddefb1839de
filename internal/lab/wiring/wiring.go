// SPDX-License-Identifier: Apache-2.0

// Package wiring gives package lab access to the unexported parts of package zktest, which sets the
// functions.
package wiring

import (
	"math/rand/v2"
	"time"
)

// Options are the options of a zktest.Server that only this project's tests need.
type Options struct {
	// MinSessionTimeouts overrides MinSessionTimeout for individual members, by
	// index; 0 means no override. The member that a client connects to clamps the
	// requested timeout.
	MinSessionTimeouts []time.Duration
	// ExpiryGap is the time that the leader takes between closing two sessions that
	// expire on the same tick. A session that is active before its turn comes is
	// served, but closed nevertheless.
	ExpiryGap time.Duration
	// ExpiryTogether is how long the leader may take to close all of them; zero means no limit.
	ExpiryTogether time.Duration
	// LatePing is the longest delay, drawn from the seed, with which the leader sends
	// the PINGs that were due while it was frozen. Whatever results from requests that
	// waited for it is sent before them.
	LatePing time.Duration
	// LoseTouches is the probability that a touch which a follower records never
	// reaches the leader. Two consecutive touches of a session are never both lost. In
	// ZooKeeper, a touch is lost if it enters the touch table while that is being sent.
	LoseTouches float64
	// LatencyOf is like zktest.Options.Latency, for a client and a member. The client is its DialFrom
	// name or, over a socket, its address. The two delays are added.
	LatencyOf func(r *rand.Rand, client string, member int) time.Duration
	// FIPS rejects the first token of DIGEST-MD5, as ZooKeeper 3.9.6 and later do by default.
	FIPS bool
	// NoTTL rejects every createTTL with CodeUnimplemented, as ZooKeeper does unless
	// TTL nodes are enabled.
	NoTTL bool
	// WrapCounter selects the sequence counter of ZooKeeper before 3.6, which
	// overflows into negative numbers. The newer counter stops at 2147483647.
	WrapCounter bool
	// OverQuota reports whether data that a create or setData writes to a node exceeds
	// a quota that the servers enforce; nil means no quota. It must not block or call
	// the server.
	OverQuota func(path string, data []byte) bool
	// VoidChecks makes a check of a missing node succeed, as zetcd does: a transaction
	// that depends on the node commits without it.
	VoidChecks bool
	// ForgetSessions gives each reconnecting client a new session without
	// telling it that the old one is gone, as ClickHouse Keeper does.
	ForgetSessions bool
	// LoseLastEvents makes the server close the connection of a session that it ends,
	// and that the client did not close, before it sends the events of the session's own
	// nodes. ZooKeeper's default connections lose these events in most cases; those over
	// Netty send them.
	LoseLastEvents bool
	// ContainerCheck is the interval at which the server looks for empty containers
	// and expired TTL nodes; 0 means 60s.
	ContainerCheck time.Duration
	// UnusedContainers is the age at which the server removes a container that never had
	// a child; 0 means that it never does. It is five minutes in ZooKeeper 3.10.
	UnusedContainers time.Duration
}

// Package zktest sets these. A member is a *zktest.Member, a server is a *zktest.Server, a request is a *zktest.Request, and opts is
// a *zktest.Options.
var (
	OptionsOf       func(opts any) *Options
	CutStreams      func(member any, down, up bool)
	DelayStreams    func(member any, down, up time.Duration)
	HoldForwards    func(member any) (release func())
	SetTickTime     func(member any, d time.Duration)
	StandStill      func(member any) (resume func())
	Shows           func(member any, zxid int64) bool
	StopExpirer     func(server any) (resume func())
	LimitUpload     func(server any, clientName string, bytesPerSecond int)
	SetChildCounter func(server any, path string, creates int32)
	Waited          func(request any) time.Duration
	HostOf          func(server any, clientName string) string
)
