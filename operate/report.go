// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"errors"
	"fmt"
	"time"
)

// Report is the result of Examine.
type Report struct {
	Servers []Server
	Checks  []Check // always the same ones, in the same order
	// SessionTimeout and TickTime are the values to use in zklock.Options with these servers. They
	// satisfy all checks that depend on them, if possible. They are zero if they are not known: both if
	// a server could not be asked.
	SessionTimeout, TickTime time.Duration
}

// Err returns an error that names the checks that failed, or nil if none did.
func (r *Report) Err() error {
	var errs []error
	for _, c := range r.Checks {
		if c.Status == Fail {
			errs = append(errs, fmt.Errorf("%s: %s", c.ID, c.Summary))
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("zklock: servers are not fit for locks: %w", errors.Join(errs...))
}

// Server contains the properties of one server. A property that could not be determined is zero.
type Server struct {
	Addr          string
	Version, Mode string // as the command srvr shows them
	// MinSession and MaxSession are the shortest and the longest session timeout that the server
	// grants.
	MinSession, MaxSession time.Duration
	TickTime               time.Duration // as it follows from MinSession and MaxSession
	Sync, Write            Latency       // of requests that wait for the leader, or for a quorum
}

// Latency is the duration of requests that were sent one after the other.
type Latency struct{ Median, Worst time.Duration }

// Check is one result of Examine.
type Check struct {
	ID      string // identifies the check; does not change between versions
	Status  Status
	Servers []string // the servers that have the problem, if it is a problem of some of them
	Summary string   // what was found
	Why     string   // why it matters for locks
	Advice  string   // what to do; empty if Status is OK or Skipped
}

// Status is the outcome of a check.
type Status uint8

const (
	// Skipped means that nothing was checked, because no server could be asked.
	Skipped Status = iota
	// OK means that the check found no problem.
	OK
	// Warn means that locks work, but not as well as they could.
	Warn
	// Fail means that locks do not work, or that two clients can hold the same one.
	Fail
)

// String returns -, OK, WARN or FAIL.
func (s Status) String() string { return [...]string{"-", "OK", "WARN", "FAIL"}[s] }

// member is the state of one server.
type member struct {
	Server
	said      string // its reply to the word srvr
	late      bool   // the context ended before it had answered everything
	unreached error  // it cannot be reached
	barred    error  // it creates no session
	refused   error  // it refuses the credentials
	noMulti   error  // it does not execute transactions
	void      bool   // a check of a missing node succeeds
	flat      bool   // it has no container nodes
	forgets   bool   // it does not resume its own sessions
	stranger  string // a server whose session it does not resume
}

// serves reports whether the server creates sessions.
func (m *member) serves() bool { return !m.late && m.unreached == nil && m.barred == nil }

// answers reports whether all of the server's properties are known.
func (m *member) answers() bool { return m.serves() && m.refused == nil && m.noMulti == nil }

// site is the state of the path for locks.
type site struct {
	listed  map[string]int // how often each address is in the list of servers
	path    string         // the nearest existing node
	unmade  bool           // the chroot does not exist
	tried   bool
	refused error         // what a lock needs and the servers refuse
	ahead   time.Duration // by how much the leader's clock is ahead of ours
	timed   bool          // ahead is known
}

// tick returns the largest tickTime that a server can have by the session timeouts that it grants:
// from two to twenty ticks by default. known is false if one of the limits was set to something else.
func (m *member) tick() (largest time.Duration, known bool) {
	low, high := m.MinSession/2, m.MaxSession/20
	return max(low, high), low == high
}
