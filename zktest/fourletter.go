package zktest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

func (st *connStats) note(r *call) {
	st.received++
	st.lastOp, st.lastXid = r.op, r.xid
}

var words = map[string]func(s *Server, m *Member, b *strings.Builder){
	"ruok": func(_ *Server, _ *Member, b *strings.Builder) { b.WriteString("imok") },
	"isro": func(_ *Server, _ *Member, b *strings.Builder) { b.WriteString("rw") },
	"srvr": (*Server).wordSrvr,
	"stat": (*Server).wordStat,
	"cons": (*Server).wordCons,
	"conf": (*Server).wordConf,
	"mntr": (*Server).wordMntr,
	"envi": (*Server).wordEnvi,
	"dump": (*Server).wordDump,
	"dirs": (*Server).wordDirs,
	"wchs": (*Server).wordWchs,
	"wchc": (*Server).wordWchc,
	"wchp": (*Server).wordWchp,
	"srst": (*Server).wordSrst,
	"crst": (*Server).wordCrst,
}

func isWord(head []byte) bool {
	_, ok := words[string(head)]
	return ok
}

// version is what the server says it is.
func (s *Server) version() string {
	number := "3.8.0"
	if s.opts.Flavor == ZooKeeper39 {
		number = "3.9.3"
	}
	return number + "-zktest, built on 01/01/2000 00:00 UTC"
}

func (s *Server) mode(m *Member) string {
	switch {
	case len(s.members) == 1:
		return "standalone"
	case m == s.leader:
		return "leader"
	}
	return "follower"
}

func (s *Server) wordSrvr(m *Member, b *strings.Builder) {
	fmt.Fprintf(b, "Zookeeper version: %s\n", s.version())
	s.srvrBody(m, b)
}

func (s *Server) srvrBody(m *Member, b *strings.Builder) {
	fmt.Fprintf(b, "Latency min/avg/max: 0/0.0/0\nReceived: %d\nSent: %d\nConnections: %d\nOutstanding: %d\nZxid: 0x%x\nMode: %s\nNode count: %d\n",
		m.received, m.sent, len(m.conns), m.outstanding(), m.tree.zxid, s.mode(m), m.tree.count())
}

// outstanding counts the requests that wait for their answers.
func (m *Member) outstanding() int {
	total := 0
	for c := range m.conns {
		total += len(c.pending)
	}
	return total
}

func (s *Server) wordStat(m *Member, b *strings.Builder) {
	fmt.Fprintf(b, "Zookeeper version: %s\nClients:\n", s.version())
	for _, c := range m.sortedConns() {
		fmt.Fprintf(b, " /%s[%d](queued=%d,recved=%d,sent=%d)\n", c.remote, c.interest(), len(c.pending), c.stats.received, c.stats.sent)
	}
	b.WriteString("\n")
	s.srvrBody(m, b)
}

func (s *Server) wordCons(m *Member, b *strings.Builder) {
	for _, c := range m.sortedConns() {
		fmt.Fprintf(b, " /%s[%d](queued=%d,recved=%d,sent=%d", c.remote, c.interest(), len(c.pending), c.stats.received, c.stats.sent)
		if c.sess != nil {
			fmt.Fprintf(b, ",sid=0x%x,lop=%s,est=%d,to=%d,lcxid=0x%x,lzxid=0x%x,lresp=%d,llat=0,minlat=0,avglat=0,maxlat=0",
				uint64(c.sess.id), c.stats.word(), c.stats.established.UnixMilli(), c.timeout.Milliseconds(),
				uint32(c.stats.lastXid), m.tree.zxid, s.now().Milliseconds())
		}
		b.WriteString(")\n")
	}
	b.WriteString("\n")
}

// word is the last request's type as cons writes it: four capital letters.
func (st *connStats) word() string {
	if st.received == 0 {
		return "SESS"
	}
	name := strings.ToUpper(st.lastOp.String())
	return name[:min(4, len(name))]
}

// interest is the selection key's, as Java shows it: 1 for a client's
// connection, 0 for the one that asks.
func (c *conn) interest() int {
	if c.sess == nil {
		return 0
	}
	return 1
}

func (m *Member) sortedConns() []*conn {
	var list []*conn
	for c := range m.conns {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b *conn) int { return strings.Compare(a.remote, b.remote) })
	return list
}

func (s *Server) wordConf(m *Member, b *strings.Builder) {
	_, port, _ := strings.Cut(m.address, ":")
	tick := s.opts.TickTime.Milliseconds()
	fmt.Fprintf(b, "clientPort=%s\ndataDir=\ndataLogDir=\ntickTime=%d\nmaxClientCnxns=0\nminSessionTimeout=%d\nmaxSessionTimeout=%d\nserverId=%d\n",
		port, tick, s.opts.MinSessionTimeout.Milliseconds(), s.opts.MaxSessionTimeout.Milliseconds(), m.id+1)
	if len(s.members) > 1 {
		fmt.Fprintf(b, "initLimit=10\nsyncLimit=%d\n", s.opts.SyncLimit)
	}
}

func (s *Server) wordMntr(m *Member, b *strings.Builder) {
	line := func(key string, value any) { fmt.Fprintf(b, "zk_%s\t%v\n", key, value) }
	line("version", s.version())
	line("server_state", s.mode(m))
	line("ephemerals_count", m.tree.ephemeralCount())
	line("num_alive_connections", len(m.conns))
	line("avg_latency", 0.0)
	line("outstanding_requests", m.outstanding())
	line("znode_count", m.tree.count())
	line("global_sessions", len(s.sessions))
	line("packets_received", m.received)
	line("packets_sent", m.sent)
	line("watch_count", m.watches.data.count()+m.watches.children.count())
	line("approximate_data_size", m.tree.dataSize())
	if m == s.leader && len(s.members) > 1 {
		line("synced_followers", s.followers()-1)
		line("learners", s.followers()-1)
	}
}

// count is ZooKeeper's, which keeps its root under two names.
func (t *tree) count() int { return len(t.nodes) + 1 }

func (t *tree) ephemeralCount() int {
	total := 0
	for _, own := range t.ephemerals {
		total += len(own)
	}
	return total
}

func (t *tree) dataSize() int {
	total := 0
	for path, n := range t.nodes {
		total += len(path) + len(n.data)
	}
	return total
}

func (s *Server) wordEnvi(_ *Member, b *strings.Builder) {
	fmt.Fprintf(b, "Environment:\nzookeeper.version=%s\nhost.name=localhost\n", s.version())
}

func (s *Server) wordDump(m *Member, b *strings.Builder) {
	s.dumpSessions(b)
	owners := make([]int64, 0, len(m.tree.ephemerals))
	for id := range m.tree.ephemerals {
		owners = append(owners, id)
	}
	slices.Sort(owners)
	fmt.Fprintf(b, "ephemeral nodes dump:\nSessions with Ephemerals (%d):\n", len(owners))
	for _, id := range owners {
		fmt.Fprintf(b, "0x%x:\n", uint64(id))
		for _, path := range m.tree.ephemeralsOf(id, "") {
			fmt.Fprintf(b, "\t%s\n", path)
		}
	}
}

// dumpSessions lists the sessions by the moment they expire.
func (s *Server) dumpSessions(b *strings.Builder) {
	buckets := make(map[time.Duration][]int64)
	s.pump(s.now())
	for id, sess := range s.sessions {
		at := s.expiryOf(sess)
		buckets[at] = append(buckets[at], id)
	}
	fmt.Fprintf(b, "SessionTracker dump:\nSession Sets (%d)/(%d):\n", len(buckets), len(s.sessions))
	for _, at := range slices.Sorted(maps.Keys(buckets)) {
		ids := buckets[at]
		slices.Sort(ids)
		fmt.Fprintf(b, "%d expire at %s:\n", len(ids), s.base.Add(at).Format(time.UnixDate))
		for _, id := range ids {
			fmt.Fprintf(b, "\t0x%x\n", uint64(id))
		}
	}
}

func (s *Server) wordDirs(_ *Member, b *strings.Builder) {
	b.WriteString("datadir_size: 0\nlogdir_size: 0\n")
}

// The three watch words tell of data watches only, as ZooKeeper's do; mntr
// counts the child watches too.

func (s *Server) wordWchs(m *Member, b *strings.Builder) {
	w := &m.watches.data
	fmt.Fprintf(b, "%d connections watching %d paths\nTotal watches:%d\n", len(w.byConn), len(w.byPath), w.count())
}

func (s *Server) wordWchc(m *Member, b *strings.Builder) {
	byID := make(map[string][]string)
	for c, paths := range m.watches.data.byConn {
		for path := range paths {
			byID[hex(c.sess.id)] = append(byID[hex(c.sess.id)], path)
		}
	}
	writeGroups(b, byID)
}

func (s *Server) wordWchp(m *Member, b *strings.Builder) {
	byPath := make(map[string][]string)
	for path, conns := range m.watches.data.byPath {
		for c := range conns {
			byPath[path] = append(byPath[path], hex(c.sess.id))
		}
	}
	writeGroups(b, byPath)
}

func writeGroups(b *strings.Builder, groups map[string][]string) {
	keys := make([]string, 0, len(groups))
	for key := range groups {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		b.WriteString(key + "\n")
		slices.Sort(groups[key])
		for _, item := range groups[key] {
			b.WriteString("\t" + item + "\n")
		}
	}
	b.WriteString("\n")
}

func (s *Server) wordSrst(m *Member, b *strings.Builder) {
	m.received, m.sent = 0, 0
	b.WriteString("Server stats reset.\n")
}

func (s *Server) wordCrst(m *Member, b *strings.Builder) {
	for c := range m.conns {
		c.stats.received, c.stats.sent = 0, 0
	}
	b.WriteString("Connection stats reset.\n")
}
