// SPDX-License-Identifier: Apache-2.0

package zktest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// wordReport builds a member's reply to a four-letter word.
type wordReport struct {
	strings.Builder
	opts    *Options
	ens     *ensemble
	r       *replica
	address string
}

var words = map[string]func(w *wordReport){
	"ruok": func(w *wordReport) { w.WriteString("imok") },
	"isro": func(w *wordReport) { w.WriteString("rw") },
	"srvr": (*wordReport).srvr,
	"stat": (*wordReport).stat,
	"cons": (*wordReport).cons,
	"conf": (*wordReport).conf,
	"mntr": (*wordReport).mntr,
	"envi": (*wordReport).envi,
	"dump": (*wordReport).dump,
	"dirs": func(w *wordReport) { w.WriteString("datadir_size: 0\nlogdir_size: 0\n") },
	"wchs": (*wordReport).wchs,
	"wchc": (*wordReport).wchc,
	"wchp": (*wordReport).wchp,
	"srst": (*wordReport).srst,
	"crst": (*wordReport).crst,
}

func isWord(head string) bool {
	_, ok := words[head]
	return ok
}

// answer returns the reply to a word.
func (w *wordReport) answer(word string) string {
	if !w.r.serving && word != "ruok" {
		return "This ZooKeeper instance is not currently serving requests\n"
	}
	words[word](w)
	return w.String()
}

func (w *wordReport) printf(format string, args ...any) { fmt.Fprintf(w, format, args...) }

func (w *wordReport) srvr() {
	w.printf("Zookeeper version: %s\n", w.opts.version())
	w.srvrBody()
}

func (w *wordReport) srvrBody() {
	r := w.r
	w.printf("Latency min/avg/max: 0/0.0/0\nReceived: %d\nSent: %d\nConnections: %d\nOutstanding: %d\nZxid: 0x%x\nMode: %s\nNode count: %d\n",
		r.received, r.sent, len(r.clients), w.outstanding(), r.tree.zxid, w.ens.peers.mode(r), r.tree.count())
}

// outstanding returns the number of unanswered requests.
func (w *wordReport) outstanding() int {
	total := 0
	for c := range w.r.clients {
		total += c.info().queued
	}
	return total
}

// clients returns the connections, ordered by address.
func (w *wordReport) clients() []client {
	return slices.SortedFunc(maps.Keys(w.r.clients), func(a, b client) int {
		return strings.Compare(a.info().remote, b.info().remote)
	})
}

// traffic writes the part of a connection's line that stat and cons share.
func (w *wordReport) traffic(c client) {
	info := c.info()
	interest := 0 // the interest set of Java's selection key: 1 for a client's connection, 0 for the one that sent the word
	if c.sessionID() != 0 {
		interest = 1
	}
	w.printf(" /%s[%d](queued=%d,recved=%d,sent=%d", info.remote, interest, info.queued, info.received, info.sent)
}

func (w *wordReport) stat() {
	w.printf("Zookeeper version: %s\nClients:\n", w.opts.version())
	for _, c := range w.clients() {
		w.traffic(c)
		w.WriteString(")\n")
	}
	w.WriteString("\n")
	w.srvrBody()
}

func (w *wordReport) cons() {
	for _, c := range w.clients() {
		w.traffic(c)
		if sess, timeout := c.session(); sess != nil {
			info := c.info()
			w.printf(",sid=%s,lop=%s,est=%d,to=%d,lcxid=0x%x,lzxid=0x%x,lresp=%d,llat=0,minlat=0,avglat=0,maxlat=0",
				hex(sess.id), info.word(), info.established.UnixMilli(), timeout.Milliseconds(),
				uint32(info.lastXid), w.r.tree.zxid, w.ens.clock.now().Milliseconds())
		}
		w.WriteString(")\n")
	}
	w.WriteString("\n")
}

func (w *wordReport) conf() {
	_, port, _ := strings.Cut(w.address, ":")
	o := w.opts
	w.printf("clientPort=%s\ndataDir=\ndataLogDir=\ntickTime=%d\nmaxClientCnxns=0\nminSessionTimeout=%d\nmaxSessionTimeout=%d\nserverId=%d\n",
		port, o.ticks[w.r.id].Milliseconds(), o.minSession(w.r.id).Milliseconds(), o.maxSession(w.r.id).Milliseconds(), w.r.id+1)
	if o.Servers > 1 {
		w.printf("initLimit=10\nsyncLimit=%d\n", o.SyncLimit)
	}
}

func (w *wordReport) mntr() {
	r, peers := w.r, &w.ens.peers
	line := func(key string, value any) { w.printf("zk_%s\t%v\n", key, value) }
	line("version", w.opts.version())
	line("server_state", peers.mode(r))
	line("ephemerals_count", r.tree.ephemeralCount())
	line("num_alive_connections", len(r.clients))
	line("avg_latency", 0.0)
	line("outstanding_requests", w.outstanding())
	line("znode_count", r.tree.count())
	line("global_sessions", len(w.ens.sessions.byID))
	line("packets_received", r.received)
	line("packets_sent", r.sent)
	line("watch_count", r.watches.count())
	line("approximate_data_size", r.tree.dataSize())
	if r == peers.leader && !peers.alone() {
		line("synced_followers", peers.votes()-1)
		line("learners", peers.learners())
	}
}

func (w *wordReport) envi() {
	w.printf("Environment:\nzookeeper.version=%s\nhost.name=localhost\n", w.opts.version())
}

func (w *wordReport) dump() {
	w.dumpSessions()
	t := w.r.tree
	owners := t.owners()
	w.printf("ephemeral nodes dump:\nSessions with Ephemerals (%d):\n", len(owners))
	for _, id := range owners {
		w.printf("%s:\n", hex(id))
		for _, path := range t.ephemeralsOf(id, "") {
			w.printf("\t%s\n", path)
		}
	}
}

// dumpSessions lists the sessions by expiry time.
func (w *wordReport) dumpSessions() {
	buckets := make(map[time.Duration][]int64)
	all := w.ens.listSessions()
	for _, sess := range all {
		at := w.ens.sessions.expiryOf(sess)
		buckets[at] = append(buckets[at], sess.id)
	}
	w.printf("SessionTracker dump:\nSession Sets (%d)/(%d):\n", len(buckets), len(all))
	for _, at := range slices.Sorted(maps.Keys(buckets)) {
		w.printf("%d expire at %s:\n", len(buckets[at]), w.ens.clock.date(at).Format(time.UnixDate))
		for _, id := range buckets[at] {
			w.printf("\t%s\n", hex(id))
		}
	}
}

// wchs, wchc and wchp report only data watches, as in ZooKeeper. mntr also counts
// child watches.

func (w *wordReport) wchs() {
	set := &w.r.watches.data
	w.printf("%d connections watching %d paths\nTotal watches:%d\n", len(set.byWatcher), len(set.byPath), set.count())
}

func (w *wordReport) wchc() {
	byID := make(map[string][]string)
	for c, paths := range w.r.watches.data.byWatcher {
		for path := range paths {
			byID[hex(c.sessionID())] = append(byID[hex(c.sessionID())], path)
		}
	}
	w.groups(byID)
}

func (w *wordReport) wchp() {
	byPath := make(map[string][]string)
	for path, watchers := range w.r.watches.data.byPath {
		for c := range watchers {
			byPath[path] = append(byPath[path], hex(c.sessionID()))
		}
	}
	w.groups(byPath)
}

func (w *wordReport) groups(groups map[string][]string) {
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		w.WriteString(key + "\n")
		slices.Sort(groups[key])
		for _, item := range groups[key] {
			w.WriteString("\t" + item + "\n")
		}
	}
	w.WriteString("\n")
}

func (w *wordReport) srst() {
	w.r.received, w.r.sent = 0, 0
	w.WriteString("Server stats reset.\n")
}

func (w *wordReport) crst() {
	for c := range w.r.clients {
		c.resetCounts()
	}
	w.WriteString("Connection stats reset.\n")
}
