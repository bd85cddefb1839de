// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/lab"
	"github.com/zklock-go/zklock/operate"
	"github.com/zklock-go/zklock/zktest"
)

// examined runs Examine on a server's members. found has the checks that have found a problem.
func examined(t *testing.T, srv *zktest.Server, opts zklock.Options) (r *operate.Report, found map[string]operate.Check) {
	t.Helper()
	if opts.Dialer == nil {
		opts.Dialer = srv.Dial
	}
	before := slices.Sorted(maps.Keys(srv.Tree()))
	r, err := operate.Examine(t.Context(), srv.Addrs(), &opts)
	require.NoError(t, err)
	assert.Equal(t, before, slices.Sorted(maps.Keys(srv.Tree())), "no node remains")
	found = map[string]operate.Check{}
	for _, c := range r.Checks {
		assert.NotEmpty(t, c.Summary, c.ID)
		assert.NotEmpty(t, c.Why, c.ID)
		assert.Equal(t, c.Status > operate.OK, c.Advice != "", c.ID)
		assert.Equal(t, c.Status == operate.Skipped, strings.HasPrefix(c.Summary, "not checked"), c.Summary)
		if c.Status > operate.OK {
			found[c.ID] = c
		}
	}
	return r, found
}

// statuses returns the status of each check that has found a problem.
func statuses(found map[string]operate.Check) map[string]operate.Status {
	all := map[string]operate.Status{}
	for id, c := range found {
		all[id] = c.Status
	}
	return all
}

// sound is an ensemble without a defect, of a version without one.
var sound = zktest.Options{Servers: 3, Flavor: zktest.ZooKeeper39}

//zklock:promise P19.12
func TestExamineFindsNothingInAHealthyEnsemble(t *testing.T) {
	virtual(t, sound, func(t *testing.T, srv *zktest.Server) {
		r, found := examined(t, srv, zklock.Options{})
		assert.Empty(t, found)
		require.NoError(t, r.Err())
		assert.Equal(t, 10*time.Second, r.SessionTimeout)
		assert.Equal(t, 2*time.Second, r.TickTime)
		require.Len(t, r.Servers, 3)
		assert.Equal(t, operate.Server{Addr: srv.Addrs()[0], Version: "3.9.3", Mode: "leader", MinSession: 4 * time.Second, MaxSession: 40 * time.Second, TickTime: 2 * time.Second}, r.Servers[0])
		assert.Equal(t, "follower", r.Servers[2].Mode)
		synctest.Wait()
		assert.Empty(t, srv.Sessions(), "its sessions are ended")
	})
}

//zklock:promise P19.12
func TestExamineFindsAMissingChroot(t *testing.T) {
	virtual(t, sound, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.PutNode("/prod", nil))
		for _, c := range []struct {
			chroot, summary string
			status          operate.Status
		}{
			{"/prod", "the chroot /prod exists", operate.OK},
			{"/Prod", "the chroot /Prod does not exist", operate.Warn},
			{"", "the list of servers has no chroot", operate.OK},
		} {
			servers := []string{strings.Join(srv.Addrs(), ",") + c.chroot}
			r, err := operate.Examine(t.Context(), servers, &zklock.Options{Dialer: srv.Dial, Root: "/locks"}) // which does not exist
			require.NoError(t, err)
			i := slices.IndexFunc(r.Checks, func(check operate.Check) bool { return check.ID == "chroot" })
			require.GreaterOrEqual(t, i, 0)
			assert.Equal(t, c.summary, r.Checks[i].Summary)
			assert.Equal(t, c.status, r.Checks[i].Status)
		}
		assert.NotContains(t, srv.Tree(), "/Prod", "the check does not create it")
	})
}

//zklock:promise P19.12
func TestExamineFindsEachDefect(t *testing.T) {
	const warn, fail = operate.Warn, operate.Fail
	slow := func(d time.Duration) func(*rand.Rand) time.Duration {
		return func(*rand.Rand) time.Duration { return d }
	}
	for name, c := range map[string]struct {
		servers zktest.Options
		client  zklock.Options
		want    map[string]operate.Status
		about   string // occurs in the summary of each finding
	}{
		"a check of a missing node succeeds": {servers: lab.With(zktest.Options{}, lab.Options{VoidChecks: true}), want: map[string]operate.Status{"guard": fail}},
		"no transactions":                    {servers: zktest.Options{UnknownOps: []zktest.Op{zktest.OpMulti}}, want: map[string]operate.Status{"multi": fail}},
		"no containers":                      {servers: zktest.Options{NoContainers: true}, want: map[string]operate.Status{"containers": warn}},
		"hangs up on containers":             {servers: zktest.Options{UnknownOps: []zktest.Op{zktest.OpCreateContainer}}, want: map[string]operate.Status{"containers": warn}},
		"forgets sessions":                   {servers: lab.With(zktest.Options{}, lab.Options{ForgetSessions: true}), want: map[string]operate.Status{"resume": warn}},
		"a Keeper":                           {servers: zktest.Options{Servers: 3, Flavor: zktest.Keeper}, want: map[string]operate.Status{"resume": warn, "containers": warn, "version": warn}},
		"an old version":                     {servers: zktest.Options{Flavor: zktest.ZooKeeper38}, want: map[string]operate.Status{"version": warn}, about: "3.8.0"},
		"a long tick at one server": {servers: zktest.Options{Servers: 3, TickTimes: []time.Duration{0, 8 * time.Second}}, client: zklock.Options{SessionTimeout: 4 * time.Second},
			want: map[string]operate.Status{"tick": fail, "timeout": warn}},
		"a tick above half of the timeout": {servers: zktest.Options{Servers: 3, TickTimes: []time.Duration{0, 8 * time.Second}}, want: map[string]operate.Status{"tick": fail, "timeout": warn}},
		"ticks that differ a little":       {servers: zktest.Options{Servers: 3, TickTimes: []time.Duration{0, time.Second}}, want: map[string]operate.Status{"tick": warn}},
		"TickTime below the largest tick": {servers: zktest.Options{Servers: 3, TickTimes: []time.Duration{0, 4 * time.Second}}, client: zklock.Options{TickTime: 2 * time.Second},
			want: map[string]operate.Status{"tick": fail}, about: "Options.TickTime 2s"},
		"a minimum below two ticks":    {servers: zktest.Options{MinSessionTimeout: time.Second}, want: map[string]operate.Status{"minimum": warn}},
		"such a minimum, and TickTime": {servers: zktest.Options{MinSessionTimeout: time.Second}, client: zklock.Options{TickTime: 2 * time.Second}},
		"too short for TickTime": {servers: zktest.Options{MinSessionTimeout: time.Second}, client: zklock.Options{SessionTimeout: time.Second, TickTime: 2 * time.Second},
			want: map[string]operate.Status{"timeout": fail}},
		"a timeout that is not granted": {client: zklock.Options{SessionTimeout: time.Second}, want: map[string]operate.Status{"timeout": warn}, about: "grants 4s instead of 1s"},
		"slow":                          {servers: zktest.Options{Latency: slow(600 * time.Millisecond)}, want: map[string]operate.Status{"latency": warn}},
		"too slow":                      {servers: zktest.Options{Latency: slow(700 * time.Millisecond)}, want: map[string]operate.Status{"latency": fail}},
		"refused login": {servers: zktest.Options{SASL: map[string]string{"joe": "secret"}, RequireSASL: true}, client: zklock.Options{Auth: []zklock.Auth{{Scheme: "sasl", Data: []byte("joe:wrong")}}},
			want: map[string]operate.Status{"login": fail}},
		"missing login": {servers: zktest.Options{SASL: map[string]string{"joe": "secret"}, RequireSASL: true}, want: map[string]operate.Status{"login": fail}},
		"accepted login": {servers: zktest.Options{SASL: map[string]string{"joe": "secret"}, RequireSASL: true},
			client: zklock.Options{Auth: []zklock.Auth{{Scheme: "sasl", Data: []byte("joe:secret")}}}},
		"an ACL that nobody has": {client: zklock.Options{ACL: zk.AuthACL(zk.PermAll)}, want: map[string]operate.Status{"access": fail}, about: "create nodes with Options.ACL"},
		"an ACL without reading": {client: zklock.Options{ACL: zk.WorldACL(zk.PermAll &^ zk.PermRead)}, want: map[string]operate.Status{"access": fail}, about: "read directories"},
		"an ACL without deleting": {client: zklock.Options{ACL: zk.WorldACL(zk.PermAll &^ zk.PermDelete)}, want: map[string]operate.Status{"access": fail},
			about: "delete contenders"},
		"a quota": {servers: lab.With(zktest.Options{}, lab.Options{OverQuota: func(path string, _ []byte) bool { return strings.Count(path, "/") > 1 }}), want: map[string]operate.Status{"access": fail}, about: "quota"},
	} {
		if c.servers.Flavor == zktest.ZooKeeper38 && name != "an old version" {
			c.servers.Flavor = zktest.ZooKeeper39
		}
		t.Run(name, func(t *testing.T) {
			virtual(t, c.servers, func(t *testing.T, srv *zktest.Server) {
				r, found := examined(t, srv, c.client)
				want := c.want
				if want == nil {
					want = map[string]operate.Status{}
				}
				assert.Equal(t, want, statuses(found), "%v", found)
				assert.Equal(t, slices.Contains(slices.Collect(maps.Values(want)), fail), r.Err() != nil)
				for _, check := range found {
					assert.Contains(t, check.Summary, c.about)
				}
			})
		})
	}
}

//zklock:promise P19.12
func TestExamineSuggestsOptionsThatAllServersGrant(t *testing.T) {
	for _, c := range []struct {
		ticks         []time.Duration
		asked         time.Duration
		timeout, tick time.Duration
	}{
		{[]time.Duration{2 * time.Second, 8 * time.Second, 2 * time.Second}, 4 * time.Second, 16 * time.Second, 8 * time.Second},
		{[]time.Duration{500 * time.Millisecond}, 30 * time.Second, 10 * time.Second, 500 * time.Millisecond},
	} {
		virtual(t, zktest.Options{Servers: len(c.ticks), TickTimes: c.ticks, Flavor: zktest.ZooKeeper39}, func(t *testing.T, srv *zktest.Server) {
			r, _ := examined(t, srv, zklock.Options{SessionTimeout: c.asked})
			assert.Equal(t, c.timeout, r.SessionTimeout)
			assert.Equal(t, c.tick, r.TickTime)
			r, found := examined(t, srv, zklock.Options{SessionTimeout: r.SessionTimeout, TickTime: r.TickTime})
			require.NoError(t, r.Err(), "%v", found)
		})
	}
}

//zklock:promise P19.12
func TestExamineReportsServersThatDoNotServe(t *testing.T) {
	for _, flavor := range []zktest.Flavor{zktest.ZooKeeper39, zktest.Keeper} {
		virtual(t, zktest.Options{Servers: 3, Flavor: flavor}, func(t *testing.T, srv *zktest.Server) {
			srv.Member(2).CutOff()
			time.Sleep(time.Minute)
			_, found := examined(t, srv, zklock.Options{})
			assert.Equal(t, operate.Warn, found["leader"].Status, "the others have a leader")
			assert.Equal(t, srv.Addrs()[2:], found["leader"].Servers)
			assert.Contains(t, found["leader"].Summary, "creates no session: it has no contact with the leader of the others")
			assert.Contains(t, found["leader"].Advice, "2888 and 3888")
			for i := range 2 {
				srv.Member(i).CutOff()
			}
			time.Sleep(time.Minute)
			r, found := examined(t, srv, zklock.Options{})
			assert.Equal(t, operate.Fail, found["leader"].Status)
			require.Error(t, r.Err())
			assert.Contains(t, found["leader"].Summary, "creates no session: it has no quorum")
		})
	}
}

//zklock:promise P19.12
func TestExamineReportsServersThatCannotBeReached(t *testing.T) {
	virtual(t, sound, func(t *testing.T, srv *zktest.Server) {
		down := srv.Addrs()[1]
		dial := func(network, address string, timeout time.Duration) (net.Conn, error) {
			if address == down || down == "all" {
				return nil, errors.New("refused")
			}
			return srv.Dial(network, address, timeout)
		}
		r, found := examined(t, srv, zklock.Options{Dialer: dial})
		require.Len(t, found, 1)
		assert.Equal(t, operate.Warn, found["reach"].Status)
		assert.Equal(t, []string{down}, found["reach"].Servers)
		require.NoError(t, r.Err())
		assert.Zero(t, r.SessionTimeout, "that server may have another tick")
		assert.Zero(t, r.TickTime)
		for _, c := range r.Checks {
			if c.ID == "tick" {
				assert.Equal(t, "tickTime is 2s; not checked at "+down, c.Summary)
			}
		}
		down = "all"
		r, found = examined(t, srv, zklock.Options{Dialer: dial})
		assert.Equal(t, operate.Fail, found["reach"].Status)
		for _, c := range r.Checks {
			want := operate.Skipped
			if c.ID == "reach" {
				want = operate.Fail
			} else if c.ID == "list" {
				want = operate.OK
			}
			assert.Equal(t, want, c.Status, c)
		}
		assert.Zero(t, r.SessionTimeout)
	})
}

//zklock:promise P19.12
func TestExamineDistinguishesTwoEnsembles(t *testing.T) {
	virtual(t, sound, func(t *testing.T, srv *zktest.Server) {
		other := zktest.Start(t, sound)
		stray := srv.Addrs()[2]
		for _, at := range []string{"zk1:2181", "zk3:2181"} {
			_, found := examined(t, srv, zklock.Options{Dialer: func(network, address string, timeout time.Duration) (net.Conn, error) {
				if address == stray {
					return other.Dial(network, at, timeout)
				}
				return srv.Dial(network, address, timeout)
			}})
			require.Len(t, found, 1)
			assert.Equal(t, operate.Fail, found["ensemble"].Status)
			assert.Contains(t, found["ensemble"].Servers, stray)
		}
	})
}

//zklock:promise P19.12
func TestExamineTriesALockBelowItsRoot(t *testing.T) {
	virtual(t, sound, func(t *testing.T, srv *zktest.Server) {
		client := rawClient(t, srv, term)
		_, err := client.Create("/locks", nil, 0, zk.DigestACL(zk.PermAll, "joe", "secret"))
		require.NoError(t, err)
		_, found := examined(t, srv, zklock.Options{Root: "/locks/app"})
		assert.Equal(t, operate.Fail, found["access"].Status)
		assert.Contains(t, found["access"].Summary, "/locks: ")
		joe := []zklock.Auth{{Scheme: "digest", Data: []byte("joe:secret")}}
		r, found := examined(t, srv, zklock.Options{Root: "/locks/app", Auth: joe, ACL: zk.AuthACL(zk.PermAll)})
		assert.Empty(t, found)
		require.NoError(t, r.Err())
		_, found = examined(t, srv, zklock.Options{Root: "/other"})
		assert.Empty(t, found, "missing directories are created")
	})
}

//zklock:promise P19.12
func TestExamineReadsTheLeadersClock(t *testing.T) {
	virtual(t, sound, func(t *testing.T, srv *zktest.Server) {
		r, _ := examined(t, srv, zklock.Options{})
		clock := r.Checks[len(r.Checks)-1]
		assert.Equal(t, "clock", clock.ID)
		assert.Regexp(t, `^the leader's clock is \S+ (ahead of|behind) this host's$`, clock.Summary)
	})
}

//zklock:promise P19.12
func TestExamineEndsWithItsContext(t *testing.T) {
	virtual(t, sound, func(t *testing.T, srv *zktest.Server) {
		srv.Member(1).Freeze()
		began := time.Now()
		r, err := operate.Examine(t.Context(), srv.Addrs(), &zklock.Options{Dialer: srv.Dial})
		require.NoError(t, err)
		assert.Equal(t, operate.Warn, r.Checks[2].Status, "a server that does not answer")
		assert.Contains(t, r.Checks[2].Summary, "accepts connections and answers nothing: it hangs, or is stopped")
		assert.Less(t, time.Since(began), time.Minute)
		srv.Member(0).Freeze()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began = time.Now()
		r, err = operate.Examine(ctx, srv.Addrs(), &zklock.Options{Dialer: srv.Dial})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, time.Second, time.Since(began))
		assert.Equal(t, operate.Fail, r.Checks[0].Status, "a report of what is known")
		assert.Contains(t, r.Checks[0].Summary, "has not answered everything in time")
		assert.Equal(t, "3.9.3", r.Servers[2].Version)
	})
}

// Three healthy servers far away took more than a minute, after which there was no report.
//
//zklock:promise P19.12
func TestExamineAsksServersFarAwayInTime(t *testing.T) {
	o := sound
	o.Latency = func(*rand.Rand) time.Duration { return 400 * time.Millisecond }
	virtual(t, o, func(t *testing.T, srv *zktest.Server) {
		began := time.Now()
		r, found := examined(t, srv, zklock.Options{SessionTimeout: 20 * time.Second})
		assert.Less(t, time.Since(began), 30*time.Second)
		assert.Empty(t, found)
		for _, c := range r.Checks {
			assert.Equal(t, operate.OK, c.Status, c)
		}
	})
}

//zklock:promise P19.12
func TestExamineChecksTheListOfServers(t *testing.T) {
	virtual(t, sound, func(t *testing.T, srv *zktest.Server) {
		one := srv.Addrs()[0]
		opts := &zklock.Options{Dialer: srv.Dial}
		r, err := operate.Examine(t.Context(), []string{one, one, one}, opts)
		require.NoError(t, err)
		require.NoError(t, r.Err(), "it is no second ensemble")
		require.Len(t, r.Servers, 1)
		require.Equal(t, operate.Warn, r.Checks[1].Status)
		require.Equal(t, one+" is one server of an ensemble (a leader); the others are not in the list", r.Checks[1].Summary)
		r, err = operate.Examine(t.Context(), append(srv.Addrs(), one), opts)
		require.NoError(t, err)
		require.Equal(t, one+" is in the list 2 times", r.Checks[1].Summary)
	})
	virtual(t, zktest.Options{Flavor: zktest.ZooKeeper39}, func(t *testing.T, srv *zktest.Server) {
		_, found := examined(t, srv, zklock.Options{})
		require.Empty(t, found, "a server of its own is no ensemble")
	})
}

//zklock:promise P19.12
func TestExamineComparesClocks(t *testing.T) {
	virtual(t, sound, func(t *testing.T, srv *zktest.Server) {
		srv.FastForward(30 * time.Second)
		_, found := examined(t, srv, zklock.Options{})
		assert.Empty(t, found)
		srv.FastForward(2 * time.Hour)
		r, found := examined(t, srv, zklock.Options{})
		require.Len(t, found, 1)
		assert.Equal(t, operate.Warn, found["clock"].Status)
		assert.Equal(t, "the leader's clock is 2h0m30s ahead of this host's", found["clock"].Summary)
		require.NoError(t, r.Err(), "locks work")
	})
}

//zklock:promise P19.12
func TestExamineRefusesInvalidOptions(t *testing.T) {
	for _, servers := range [][]string{nil, {"zk://a"}} {
		_, err := operate.Examine(t.Context(), servers, nil)
		require.ErrorIs(t, err, zklock.ErrInvalid)
	}
	_, err := operate.Examine(t.Context(), []string{"a:1"}, &zklock.Options{TickTime: -1})
	require.ErrorIs(t, err, zklock.ErrInvalid)
}
