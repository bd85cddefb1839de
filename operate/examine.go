// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/bridge"
	"github.com/zklock-go/zklock/internal/conn"
	"github.com/zklock-go/zklock/internal/escape"
	"github.com/zklock-go/zklock/internal/frames"
)

// examiner asks servers. Each step has its own connections and sessions, so a step that a server
// refuses does not affect the others.
type examiner struct {
	bridge.Target
	trial string // the name of the node that is tried to be made
}

func examine(ctx context.Context, servers []string, opts *zklock.Options) (*Report, error) {
	target, err := bridge.TargetOf(servers, opts)
	if err != nil {
		return nil, err
	}
	x := &examiner{target, "zklock-doctor-" + strings.ToLower(rand.Text())}
	listed := map[string]int{}
	var members []*member
	for _, addr := range target.Servers {
		if listed[addr]++; listed[addr] == 1 {
			members = append(members, &member{Server: Server{Addr: addr}})
		}
	}
	sideBySide(len(members), func(i int) { x.ask(ctx, members[i]) })
	s := site{listed: listed}
	sideBySide(2, func(i int) {
		if i == 0 {
			x.compare(ctx, members)
		} else {
			x.visit(ctx, members, &s)
		}
	})
	return report(target, members, s), context.Cause(ctx)
}

// sideBySide calls do with the numbers below n at the same time, and returns when all calls have.
func sideBySide(n int, do func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		// Owned by this call, which waits; ends with do, whose requests end with the context.
		all.Go(func() { do(i) })
	}
	all.Wait()
}

// Session timeouts to request: servers grant the nearest one that they allow.
const (
	shortest = time.Millisecond
	longest  = 24 * 24 * time.Hour // a little less than the protocol has room for
)

// ask determines the properties of one server.
func (x *examiner) ask(ctx context.Context, m *member) {
	m.said, m.unreached = conn.AskWord(ctx, x.Dial, m.Addr, "srvr")
	if m.unreached == nil {
		m.Version, m.Mode = parseSrvr(m.said)
		m.barred = x.askTimeouts(ctx, m)
	}
	if m.serves() {
		x.askRequests(ctx, m)
	}
	m.late = ctx.Err() != nil // an error does not concern the server then
}

// parseSrvr returns the values in a reply to the command srvr, or "" for missing ones.
func parseSrvr(text string) (version, mode string) {
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch name, ok := strings.CutSuffix(key, " version"); {
		case ok && strings.EqualFold(name, "zookeeper"):
			version, _, _ = strings.Cut(value, "-") // the commit and the date of the build follow
		case ok:
			version = name + " " + value
		case key == "Mode":
			mode = value
		}
	}
	return version, mode
}

// askTimeouts determines which session timeouts a server grants, and whether it resumes its own
// sessions.
func (x *examiner) askTimeouts(ctx context.Context, m *member) error {
	d, hello, err := x.dial(ctx, m.Addr, conn.Hello{Timeout: shortest})
	if err != nil {
		return err
	}
	d.End()
	m.MinSession = hello.Timeout
	d, hello, err = x.dial(ctx, m.Addr, conn.Hello{Timeout: x.SessionTimeout})
	if err != nil {
		return err
	}
	d.Leave()
	hello.Timeout = longest
	d, again, err := x.dial(ctx, m.Addr, hello)
	if err != nil {
		return err
	}
	d.End()
	m.MaxSession, m.forgets = again.Timeout, again.Session != hello.Session
	m.TickTime, _ = m.tick()
	return nil
}

// errRequiresLogin is the refusal of a server that requires a login.
var errRequiresLogin = errors.New("server requires a SASL login")

func (x *examiner) dial(ctx context.Context, addr string, ask conn.Hello) (*conn.Direct, conn.Hello, error) {
	return conn.DialDirect(ctx, x.Dial, addr, ask)
}

// begin returns a connection with a new session and the client's credentials.
func (x *examiner) begin(ctx context.Context, addr string) (*conn.Direct, error) {
	d, _, err := x.dial(ctx, addr, conn.Hello{Timeout: x.SessionTimeout})
	if err != nil {
		return nil, err
	}
	if err := d.LogIn(ctx, x.Login, x.Credentials); err != nil {
		d.End()
		return nil, err
	}
	return d, nil
}

// askRequests determines how a server handles the requests that locks depend on.
func (x *examiner) askRequests(ctx context.Context, m *member) {
	d, err := x.begin(ctx, m.Addr)
	if err != nil {
		m.refused = err
		return
	}
	defer d.End()
	missing := &zk.CheckVersionRequest{Path: "/" + x.trial, Version: -1}
	switch _, err := multi(d, missing); {
	case err == nil:
		m.void = true
	case errors.Is(err, zk.ErrAuthFailed):
		m.refused = err
		return
	case errors.Is(err, frames.ErrorOf(frames.CodeRequiresSASL)):
		m.refused = errRequiresLogin
		return
	case !errors.Is(err, zk.ErrNoNode):
		m.noMulti = err
		return
	}
	m.Sync = measure(func() error {
		_, err := d.Ask(frames.Sync("/"))
		return err
	})
	m.Write = measure(func() error {
		_, err := multi(d, &zk.CheckVersionRequest{Path: "/", Version: -1})
		return err
	})
	m.flat = !x.hasContainers(ctx, m.Addr)
}

// hasContainers reports whether a server knows container nodes. The node that it is asked for exists.
// The connection is not used for anything else, because some servers close it.
func (x *examiner) hasContainers(ctx context.Context, addr string) bool {
	d, err := x.begin(ctx, addr)
	if err != nil {
		return true
	}
	defer d.End()
	r, err := d.Ask(frames.Create("/zookeeper", nil, zk.FlagContainer, x.ACL))
	return err == nil && !errors.Is(frames.ErrorOf(r.Code), frames.ErrUnimplemented)
}

// Up to mostTrials requests are measured; when they have taken longer than trialTime, fewer, but leastTrials.
const (
	mostTrials  = 24
	leastTrials = 3
	trialTime   = 2 * time.Second
)

func measure(request func() error) Latency {
	var took []time.Duration
	for began := time.Now(); len(took) < leastTrials || len(took) < mostTrials && time.Since(began) < trialTime; {
		sent := time.Now()
		err := request()
		took = append(took, time.Since(sent))
		if err != nil {
			break
		}
	}
	slices.Sort(took)
	return Latency{took[len(took)/2], took[len(took)-1]}
}

// multi sends a transaction. It returns the results of its operations and the first refusal, or an
// error if there was no reply.
func multi(d *conn.Direct, ops ...any) ([]zk.MultiResponse, error) {
	r, err := d.Ask(frames.Multi(ops))
	if err != nil {
		return nil, err
	}
	if r.Code != frames.CodeOK {
		return nil, frames.ErrorOf(r.Code)
	}
	a := r.Answer()
	return a.Results()
}

// compare determines whether each server resumes a session of the one before it in the list.
func (x *examiner) compare(ctx context.Context, members []*member) {
	members = slices.DeleteFunc(slices.Clone(members), func(m *member) bool { return !m.serves() || m.forgets })
	sideBySide(len(members)-1, func(i int) {
		if before, m := members[i], members[i+1]; !x.resumes(ctx, before.Addr, m.Addr) {
			m.stranger = before.Addr
		}
	})
}

// resumes reports whether one server resumes a session that another one has created. If one of them
// does not answer, resumes reports true.
func (x *examiner) resumes(ctx context.Context, from, to string) bool {
	ask := conn.Hello{Timeout: x.SessionTimeout}
	d, hello, err := x.dial(ctx, from, ask)
	if err != nil {
		return true
	}
	d.Leave()
	e, again, err := x.dial(ctx, to, hello)
	if err != nil {
		return true
	}
	e.End()
	return again.Session == hello.Session
}

// visit tries below the root what a lock does there, at a server that answers.
func (x *examiner) visit(ctx context.Context, members []*member, s *site) {
	for _, m := range members {
		if !m.answers() || m.void {
			continue
		}
		d, err := x.begin(ctx, m.Addr)
		if err != nil {
			continue
		}
		defer d.End()
		s.path, s.unmade = x.nearest(d), x.lacksChroot(d)
		s.refused = x.tryLock(d, s.path)
		if s.refused == nil {
			s.ahead, s.timed = x.readClock(d, s.path)
		}
		s.tried = ctx.Err() == nil
		return
	}
}

// nearest returns the root, or the nearest node above it that exists.
func (x *examiner) nearest(d *conn.Direct) string {
	for at := path.Clean("/" + x.Root); at != "/"; at = path.Dir(at) {
		r, err := d.Ask(frames.Exists(at))
		if err != nil || r.Code != frames.CodeNoNode {
			return at
		}
	}
	return "/"
}

// lacksChroot reports whether the chroot does not exist.
func (x *examiner) lacksChroot(d *conn.Direct) bool {
	if x.Chroot == "" {
		return false
	}
	r, err := d.Ask(frames.Exists(x.Chroot))
	return err == nil && r.Code == frames.CodeNoNode
}

// steps describes the operations of tryLock, except for the last one.
var steps = []string{
	"create nodes with Options.ACL in %s", "read directories with Options.ACL below %s",
	"create contenders with Options.ACL below %s", "read contenders with Options.ACL below %s",
	"write contenders with Options.ACL below %s", "delete contenders with Options.ACL below %s",
}

// tryLock sends what a lock does in one transaction, whose last operation is refused so that nothing
// is done. It returns what else is refused.
func (x *examiner) tryLock(d *conn.Direct, at string) error {
	dir := path.Join(at, x.trial)
	own := path.Join(dir, "contender")
	results, err := multi(d,
		&zk.CreateRequest{Path: dir, Acl: x.ACL},
		&zk.CheckVersionRequest{Path: dir, Version: -1},
		&zk.CreateRequest{Path: own, Acl: x.ACL, Flags: zk.FlagEphemeral},
		&zk.CheckVersionRequest{Path: own, Version: -1},
		&zk.SetDataRequest{Path: own, Version: -1},
		&zk.DeleteRequest{Path: own, Version: -1},
		&zk.CreateRequest{Path: dir, Acl: x.ACL}, // exists
	)
	for i, r := range results[:min(len(results), len(steps))] {
		if r.Error != nil {
			return fmt.Errorf("cannot "+steps[i]+": %w", escape.Text(at), r.Error)
		}
	}
	if errors.Is(err, zk.ErrNodeExists) {
		return nil
	}
	return fmt.Errorf("trial below %s: %w", escape.Text(at), err)
}

// readClock returns by how much the leader's clock is ahead of this host's. It creates a node, writes
// it and deletes it in one transaction. ok is false if that is refused.
func (x *examiner) readClock(d *conn.Direct, at string) (ahead time.Duration, ok bool) {
	node := path.Join(at, x.trial)
	began := time.Now()
	results, err := multi(d,
		&zk.CreateRequest{Path: node, Acl: x.ACL},
		&zk.SetDataRequest{Path: node, Version: -1},
		&zk.DeleteRequest{Path: node, Version: -1},
	)
	if err != nil || len(results) < 3 || results[1].Stat == nil {
		return 0, false
	}
	return time.UnixMilli(results[1].Stat.Mtime).Sub(began.Add(time.Since(began) / 2)), true
}
