// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/evidence/wire"
)

// players is the number of sessions in a random sequence.
const players = 3

// Steps that are not requests.
const (
	stepReattach int32 = -1000 - iota // the same session on a new connection
	stepRenew                         // the session is closed and another one opened
)

// Step is one request of a random sequence. Paths are below a root that Play chooses.
type Step struct {
	Player  int
	Op      int32
	Path    string
	Data    []byte
	ACL     int // index into acls
	Flags   int32
	Version int32
	TTL     int64
	Watch   bool
	Back    int64       // setWatches: how many zxids ago the client was cut off
	Lists   [5][]string // setWatches
	Subs    []Step      // multi
}

var acls = [][]acl{
	world,
	{{1 | 2, "world", "anyone"}, {31, "digest", "joe:qBhuBXrzq/uf7C2EPK6ZSiXnFHs="}},
	{{31, "auth", ""}},
	{{31, "nonsense", "x"}},
	nil,
}

var (
	paths = []string{"/a", "/a/b", "/a/b/c", "/d", "/d/e", "/f", "/a/x", "/d/e/g", "/a/b/n-0000000001", "/d/n-0000000000", ""}
	odd   = []string{"/a/", "/a/../b", "//a", "/\x01", "/é", "/\x00", "/a\x00b", "/\U0001f512", "/…", "/" + strings.Repeat("long", 300)}
)

// Random returns n steps for a seed. The same seed gives the same steps.
func Random(seed uint64, n int) []Step {
	g := generator{rand.New(rand.NewPCG(seed, 0))}
	steps := make([]Step, 0, n)
	for range n {
		s := g.step()
		s.Player = g.IntN(players)
		g.tame(&s)
		steps = append(steps, s)
	}
	return steps
}

type generator struct{ *rand.Rand }

func (g generator) path() string {
	if g.IntN(25) == 0 {
		return odd[g.IntN(len(odd))]
	}
	return paths[g.IntN(len(paths))]
}

func (g generator) version() int32 {
	if g.IntN(2) == 0 {
		return -1
	}
	return int32(g.IntN(3))
}

func (g generator) step() Step {
	switch k := g.IntN(100); {
	case k < 40:
		return g.write()
	case k < 62:
		ops := []int32{opExists, opGetData, opGetChildren, opGetChildren2}
		return Step{Op: ops[g.IntN(4)], Path: g.path(), Watch: g.IntN(2) == 0}
	case k < 66:
		return Step{Op: opSetACL, Path: g.path(), ACL: g.IntN(len(acls)), Version: g.version()}
	case k < 78:
		return g.multi()
	case k < 84:
		return g.setWatches()
	case k < 88:
		ops := []int32{opRemoveWatches, opAddWatch, opCheckWatches}
		return Step{Op: ops[g.IntN(3)], Path: g.path(), Flags: int32(1 + g.IntN(3))}
	case k < 96:
		ops := []int32{opSync, opGetACL, opGetEphemerals, opAllChildren, opMultiRead, opWhoAmI, opAuth, opPing}
		return Step{Op: ops[g.IntN(len(ops))], Path: g.path()}
	case k < 98:
		return Step{Op: stepReattach}
	}
	return Step{Op: stepRenew}
}

func (g generator) write() Step {
	switch g.IntN(10) {
	case 0, 1, 2:
		return Step{Op: opDelete, Path: g.path(), Version: g.version()}
	case 3, 4:
		return Step{Op: opSetData, Path: g.path(), Data: g.data(), Version: g.version()}
	}
	return g.create()
}

func (g generator) data() []byte {
	if g.IntN(4) == 0 {
		return nil // differs from empty data
	}
	return []byte(strings.Repeat("x", g.IntN(4)))
}

func (g generator) create() Step {
	s := Step{Op: opCreate, Path: g.path(), Data: g.data(), Flags: int32(g.IntN(5)), TTL: -1}
	switch g.IntN(6) {
	case 0:
		s.Op = opCreate2
	case 1:
		s.Op, s.Flags = opCreateContainer, container
	case 2:
		s.Op, s.Flags, s.TTL = opCreateTTL, ttl+int32(g.IntN(2)), 1000000
	}
	if g.IntN(4) == 0 {
		s.ACL = g.IntN(len(acls))
	}
	if s.Flags == sequential || s.Flags == ephSeq || s.Flags == ttlSeq {
		s.Path += "/n-"
	}
	return s
}

func (g generator) multi() Step {
	m := Step{Op: opMulti}
	for range g.IntN(4) {
		s := g.write()
		if g.IntN(4) == 0 {
			s = Step{Op: opCheck, Path: g.path(), Version: g.version()}
		}
		m.Subs = append(m.Subs, s)
	}
	return m
}

func (g generator) setWatches() Step {
	s := Step{Op: opSetWatches, Back: int64(g.IntN(12))}
	if g.IntN(2) == 0 {
		s.Op = opSetWatches2
	}
	for i := range 3 {
		for range g.IntN(3) {
			s.Lists[i] = append(s.Lists[i], paths[g.IntN(len(paths))])
		}
	}
	return s
}

// tame changes a step so that no player mixes persistent and one-shot watches: the
// last player has only persistent ones, with one mode per path. Mixed watches on
// one path did not work before 3.9 (ZOOKEEPER-4466).
func (g generator) tame(s *Step) {
	last := s.Player == players-1
	switch {
	case s.Op == opAddWatch && !last:
		s.Op = opRemoveWatches
	case s.Op == opAddWatch:
		s.Flags = int32(len(s.Path) % 2)
	case s.Op == opCheckWatches: // any type, because the types of a persistent watch depend on the version
		s.Flags = 3
	case last && s.Op == opRemoveWatches:
		s.Flags = 3
	case last && (s.Op == opSetWatches || s.Op == opSetWatches2):
		s.Op = opPing
	case last:
		s.Watch = false
	}
}

// game is one run of a sequence against a server.
type game struct {
	t       testing.TB
	root    string
	players [players]*client
	names   map[int64]string // of sessions
	base    int64            // the first zxid
	zxid    int64            // the last zxid
}

// Play runs the steps one after the other and returns a line for each, with its
// reply and the events that it caused. Session IDs, zxids and paths are relative
// to the run, times are omitted, and lists without an order are sorted, so servers
// with the same behavior give the same lines. There must be no other writes to the
// server meanwhile, including the removal of empty containers.
func Play(t testing.TB, dial Dial, steps []Step) []string {
	g := &game{t: t, root: uniqueRoot(), names: make(map[int64]string)}
	for i := range g.players {
		g.join(i, connect(t, dial))
	}
	g.base = g.players[0].ok(opCreate, createBody(g.root, nil, world, persistent)).zxid
	g.zxid = g.base
	var lines []string
	at := ""
	defer func() {
		if t.Failed() {
			t.Logf("at %s, after\n%s", at, strings.Join(lines[max(0, len(lines)-10):], "\n"))
		}
	}()
	for i, s := range steps {
		at = fmt.Sprintf("%d p%d %s", i, s.Player, s.describe())
		lines = append(lines, fmt.Sprintf("%s: %s%s", at, g.run(s), g.events(s)))
	}
	at = "the end"
	for _, p := range g.players {
		p.close()
	}
	return lines
}

func (g *game) join(i int, c *client) {
	g.players[i] = c
	g.names[c.sess.ID] = fmt.Sprintf("s%d", len(g.names))
}

func (s Step) describe() string {
	d := fmt.Sprintf("%s(%s data=%d acl=%d flags=%d version=%d watch=%v", opName(s.Op), s.Path, len(s.Data), s.ACL, s.Flags, s.Version, s.Watch)
	if s.Op == opSetWatches || s.Op == opSetWatches2 {
		d += fmt.Sprintf(" back=%d %v", s.Back, s.Lists[:3])
	}
	for _, sub := range s.Subs {
		d += " " + sub.describe()
	}
	return d + ")"
}

func opName(op int32) string {
	names := map[int32]string{
		opCreate: "create", opDelete: "delete", opExists: "exists", opGetData: "getData", opSetData: "setData", opGetACL: "getACL",
		opSetACL: "setACL", opGetChildren: "getChildren", opSync: "sync", opPing: "ping", opGetChildren2: "getChildren2",
		opCheck: "check", opMulti: "multi", opCreate2: "create2", opRemoveWatches: "removeWatches",
		opCreateContainer: "createContainer", opCreateTTL: "createTTL", opMultiRead: "multiRead", opAuth: "auth",
		opSetWatches: "setWatches", opGetEphemerals: "getEphemerals", opAllChildren: "getAllChildrenNumber",
		opAddWatch: "addWatch", opSetWatches2: "setWatches2", opCheckWatches: "checkWatches", opWhoAmI: "whoAmI", stepReattach: "reattach", stepRenew: "renew",
	}
	return names[op]
}

func (g *game) run(s Step) string {
	p := g.players[s.Player]
	switch s.Op {
	case stepReattach:
		p.reattach()
		return "ok"
	case stepRenew:
		end := p.close()
		g.zxid = end + 1 // for the new session
		g.join(s.Player, connect(g.t, p.dial))
		return fmt.Sprintf("zxid %d", end-g.base)
	}
	r := p.do(s.Op, g.body(s))
	if r.zxid > 0 {
		g.zxid = r.zxid
	}
	out := fmt.Sprintf("code %d zxid %d ", r.err, g.rel(r.zxid))
	if r.err == 0 {
		out += g.show(s, r.p)
	}
	require.NoError(g.t, r.p.Err, "%s", out)
	return out + fmt.Sprintf(" rest %d", r.p.Left())
}

func (g *game) at(path string) string {
	if path == "relative" {
		return path
	}
	return g.root + path
}

func (g *game) body(s Step) *wire.Body {
	path := g.at(s.Path)
	switch s.Op {
	case opCreate, opCreate2, opCreateContainer:
		return createBody(path, s.Data, acls[s.ACL], s.Flags)
	case opCreateTTL:
		return createBody(path, s.Data, acls[s.ACL], s.Flags).Long(s.TTL)
	case opDelete, opCheck:
		return deleteBody(path, s.Version)
	case opSetData:
		return setBody(path, s.Data, s.Version)
	case opSetACL:
		return putACL(wire.NewBody().Str(path), acls[s.ACL]).Int(s.Version)
	case opExists, opGetData, opGetChildren, opGetChildren2:
		return readBody(path, s.Watch)
	case opRemoveWatches, opAddWatch, opCheckWatches:
		return wire.NewBody().Str(path).Int(s.Flags)
	case opSync, opGetACL, opGetEphemerals, opAllChildren:
		return wire.NewBody().Str(path)
	case opMultiRead:
		return multiBody(sub{opGetData, readBody(path, false)}, sub{opGetChildren, readBody(path, false)})
	case opAuth:
		return authBody("digest", joe)
	case opMulti:
		return g.multiBody(s)
	case opSetWatches, opSetWatches2:
		return g.setWatchesBody(s)
	}
	return nil
}

func (g *game) multiBody(s Step) *wire.Body {
	var subs []sub
	for _, one := range s.Subs {
		subs = append(subs, sub{one.Op, g.body(one)})
	}
	return multiBody(subs...)
}

func (g *game) setWatchesBody(s Step) *wire.Body {
	b := wire.NewBody().Long(g.zxid - s.Back)
	for _, list := range s.Lists[:3] {
		full := []string{}
		for _, path := range list {
			full = append(full, g.at(path))
		}
		b.Strs(full)
	}
	if s.Op == opSetWatches2 {
		b.Strs(nil).Strs(nil)
	}
	return b
}

func (g *game) show(s Step, p *wire.Parser) string {
	switch s.Op {
	case opCreate, opSync:
		return g.short(p.Str())
	case opCreate2, opCreateContainer, opCreateTTL:
		return g.short(p.Str()) + " " + g.stat(p.Stat())
	case opExists, opSetData, opSetACL:
		return g.stat(p.Stat())
	case opGetData:
		data := p.Buf()
		return fmt.Sprintf("%q null=%v ", data, data == nil) + g.stat(p.Stat())
	case opGetChildren:
		return g.list(p.Strs())
	case opGetChildren2:
		return g.list(p.Strs()) + " " + g.stat(p.Stat())
	case opGetACL:
		return g.acl(p) + " " + g.stat(p.Stat())
	case opGetEphemerals:
		return g.list(p.Strs())
	case opAllChildren, opAddWatch:
		return fmt.Sprint(p.Int())
	case opMulti, opMultiRead:
		return g.results(parseMulti(p))
	case opWhoAmI:
		return g.ids(p)
	}
	return ""
}

func (g *game) rel(zxid int64) int64 {
	if zxid <= 0 {
		return zxid
	}
	return zxid - g.base
}

func (g *game) short(path string) string { return strings.TrimPrefix(path, g.root) }

func (g *game) list(names []string) string {
	for i := range names {
		names[i] = g.short(names[i])
	}
	slices.Sort(names)
	return fmt.Sprint(names)
}

func (g *game) stat(s wire.Stat) string {
	owner := "nobody"
	if s.EphemeralOwner != 0 {
		owner = g.names[s.EphemeralOwner]
	}
	return fmt.Sprintf("{c=%d m=%d p=%d v=%d cv=%d av=%d owner=%s data=%d children=%d times=%v}", g.rel(s.Czxid), g.rel(s.Mzxid),
		g.rel(s.Pzxid), s.Version, s.Cversion, s.Aversion, owner, s.DataLength, s.NumChildren, s.Ctime > 0 && s.Mtime >= s.Ctime)
}

func (g *game) acl(p *wire.Parser) string {
	var list []string
	for n := p.Int(); n > 0 && p.Err == nil; n-- {
		list = append(list, fmt.Sprintf("%d:%s:%s", p.Int(), p.Str(), p.Str()))
	}
	slices.Sort(list)
	return fmt.Sprint(list)
}

func (g *game) results(list []subResult) string {
	var b strings.Builder
	for _, r := range list {
		slices.Sort(r.names)
		fmt.Fprintf(&b, "[%d %d %d %s %q %v", r.op, r.err, r.code, g.short(r.path), r.data, r.names)
		if r.stat != (wire.Stat{}) {
			b.WriteString(g.stat(r.stat))
		}
		b.WriteString("]")
	}
	return b.String()
}

// ids returns the identities without the address, which does not depend on the server.
func (g *game) ids(p *wire.Parser) string {
	var list []string
	for n := p.Int(); n > 0 && p.Err == nil; n-- {
		if scheme, user := p.Str(), p.Str(); scheme != "ip" {
			list = append(list, scheme+":"+user)
		}
	}
	slices.Sort(list)
	return fmt.Sprint(list)
}

// events returns the events that the players received because of a step. It sorts
// them if the step ends a session, whose nodes are deleted in no particular order.
func (g *game) events(s Step) string {
	var b strings.Builder
	for i, p := range g.players {
		list := p.seen()
		if s.Op == stepRenew {
			slices.SortFunc(list, func(x, y event) int { return strings.Compare(fmt.Sprint(x.path, x.kind), fmt.Sprint(y.path, y.kind)) })
		}
		for _, e := range list {
			fmt.Fprintf(&b, " | p%d receives event %d of %s", i, e.kind, g.short(e.path))
		}
	}
	return b.String()
}
