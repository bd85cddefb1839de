package mutants

import "fmt"

// Table is every mutant.
var Table = []Mutant{
	{
		Name: "sessions are not compared", After: "go-zookeeper Lock takes a lock of the session before",
		Edits: []Edit{
			{"internal/conn/link.go", "return l.session == s && !s.IsOver()", "return s != nil"},
		},
	},
	{
		Name: "another session id goes unnoticed", After: "go-zookeeper Conn on servers that do not restore sessions",
		Edits: []Edit{{"internal/conn/link.go", "same := l.session != nil && l.session.ID == id && !l.session.IsOver()", "same := l.session != nil && id != 0 && !l.session.IsOver()"}},
		Seeds: 80,
	},
	{
		Name: "a create without an answer is not looked for", After: "CreateProtectedEphemeralSequential, CURATOR-45",
		Edits: []Edit{{"create.go", `if t.name != "" || wasNotSent(t.createErr) {`, "if t.createErr != nil || true {"}},
	},
	{
		Name: "a create without an answer is looked for on a server that lags", After: "CreateProtectedEphemeralSequential scans without a sync",
		Edits: []Edit{{"request.go", "if err := r.askQuorum(ctx, s); err != nil {", "if err := ctx.Err(); err != nil {"}},
		Seeds: 120,
	},
	{
		Name: "the queue is in the order of the names", After: "guids come before the number (C1, ZooKeeper's own recipe)",
		Edits: []Edit{{"order.go", "e.name != own.name && order(e, own) < 0", "e.name != own.name && e.name < own.name"}},
	},
	{
		Name: "saturated numbers are compared", After: "go-zookeeper, Curator, kazoo after 2^31 creates",
		Edits: []Edit{{"order.go", "{ return rank(a.seq) == rank(b.seq) }", "{ return a.seq == b.seq && a.seq > math.MaxInt32 }"}},
	},
	{
		Name: "negative numbers are the smallest", After: "go-zookeeper Lock where the counter runs over",
		Edits: []Edit{{"order.go", "cmp.Or(cmp.Compare(rank(a.seq), rank(b.seq)),", "cmp.Or(cmp.Compare(a.seq, b.seq),"}},
	},
	{
		Name: "everybody waits for the one before the last", After: "off by one in the predecessor",
		Edits: []Edit{{"rules.go", "{ return len(ahead) - 1 }", "{ return len(ahead) - 2 }"}},
	},
	{
		Name: "foreign nodes stand in the queue", After: "go-zookeeper Lock, Curator's semaphore count every child",
		Edits: []Edit{{"names.go", "if e, ok := parseEntry(name); ok {", "if e, ok := parseEntry(name); ok || func() bool { e.name = name; return true }() {"}},
	},
	{
		Name: "the predecessor has gone, so it is our turn", After: "a waiter before us may have given up",
		Edits: []Edit{{"handoff.go", "\tt.drop(left)\n", "\tt.drop(left)\n\tt.ahead = slices.Clone(behind)\n"}},
	},
	{
		Name: "whoever leaves writes a note that it held", After: "the note's one condition",
		Edits: []Edit{{"cleanup.go", "if t.held && t.note.may &&", "if t.note.may &&"}},
		Seeds: 80,
	},
	{
		Name: "every predecessor was a holder", After: "the note's reader",
		Edits: []Edit{{"note.go", "if named >= 0 && t.isTimely(dir.stat) {", "if named = i; ours {"}},
	},
	{
		Name: "the one before the last was the last", After: "looking ahead and forgetting whom one waits for",
		Edits: []Edit{{"handoff.go", "slices.Clone(t.ahead[:i]), slices.Clone(t.ahead[i+1:])\n", "slices.Clone(t.ahead[:i]), t.ahead[:0]\n\tt.ahead = t.ahead[:i+1]\n"}},
	},
	{
		Name: "a look without an answer saw nothing", After: "an error taken for a missing node",
		Edits: []Edit{{"handoff.go", "\tif errors.Is(err, zk.ErrNoNode) {\n\t\tt.drop(e)", "\tif err != nil && !t.sess.IsOver() {\n\t\tt.drop(e)"}},
		Seeds: 120,
	},
	{
		Name: "a note is believed to name all ahead", After: "the note's reader",
		Edits: []Edit{{"note.go", "t.ahead = slices.Delete(t.ahead, 0, named+1)", "t.ahead = t.ahead[:0]"}},
	},
	{
		Name: "pings renew the lease", After: "every client that trusts its connection's state",
		Edits: []Edit{{"internal/conn/tap.go", "s.Lease.Note(asked.sent, of)", "s.Lease.Note(asked.sent, of)\n\ts.Lease.Begun(asked.sent)"}},
		Seeds: 120,
	},
	{
		Name: "whoever takes a session back vouches for it", After: "a leader that was cut off takes back its clients' sessions, on real servers",
		Edits: []Edit{{"internal/lease/lease.go", "l.last, l.claimed = Instant{}, sent", "l.last = Instant{}\n\tl.prove(sent)"}},
		Seeds: 120,
	},
	{
		Name: "only the first of all is next in line", After: "a reader behind readers did not watch its own node",
		Edits: []Edit{{"handoff.go", "first := t.recipe.rule(t.ahead[:i]) < 0", "first := i == 0"}},
		Focus: "rw", Seeds: 200,
	},
	{
		Name: "the lease counts from the receipt of an answer", After: "redsync, redisson and others",
		Edits: []Edit{
			{"internal/lease/lease.go", "\t\tl.proven = sent\n", "\t\tl.proven = l.now()\n"},
		},
		Seeds:   120,
		Trouble: "streams,short",
		Faults:  "cut off|late streams|one way",
	},
	{
		Name: "what was answered has reached the leader with the next write", After: "our own first argument, for more than a cold start",
		Edits:   []Edit{{"internal/lease/lease.go", "\t\tl.guess(touch, got)\n\t}\n}", "\t\tl.prove(touch)\n\t}\n}"}},
		Seeds:   120,
		Trouble: "streams,short",
		Faults:  "late streams|one way|cut off",
	},
	{
		Name: "one sync proves that the leader has pinged", After: "a leader that paused",
		Edits:   []Edit{{"internal/lease/lease.go", "l.upstream.newest(sent.Mono)", "l.synced.newest(sent.Mono)"}},
		Seeds:   120,
		Trouble: "streams,short",
		Faults:  "late streams|one way|freeze|cut off",
	},
	{
		Name: "the leader's ping is never late", After: "design: half a tick is needed",
		Edits:   []Edit{{"internal/lease/lease.go", "l.pairs.newest(sent.Mono.Add(-l.lag()))", "l.pairs.newest(sent.Mono)"}},
		Seeds:   120,
		Trouble: "streams,short",
		Faults:  "late streams|one way|cut off",
	},
	{
		Name: "a touch is never lost", After: "LearnerSessionTracker swaps its table after it was serialised",
		Edits:   []Edit{{"internal/lease/lease.go", "l.pairs.add(l.last, got.Mono, l.grain())", "l.pairs.add(sent, got.Mono, l.grain())"}},
		Seeds:   120,
		Trouble: "streams,short",
		Faults:  "late streams|one way|cut off",
	},
	{
		Name: "a lease that ran out revives at once", After: "the expirer takes a whole bucket",
		Edits:   []Edit{{"internal/lease/lease.go", "unbroken := l.leftOf(l.proven, got) > 0", "unbroken := true"}},
		Seeds:   120,
		Trouble: "streams,short",
		Faults:  "partition|delays|cut off|late streams",
	},
	{
		Name: "a full proof rests on a cold one", After: "our own first version: the cold one assumed more",
		Edits:   []Edit{{"internal/lease/lease.go", "unbroken := l.leftOf(l.proven, got) > 0", "unbroken := l.left(got) > 0"}},
		Seeds:   120,
		Trouble: "streams,short",
		Faults:  "partition|delays|cut off|late streams",
	},
	{
		Name: "an idle client rests however short its session is", After: "our own first version: no proof comes in time once there is none",
		Edits:   []Edit{{"internal/lease/rhythm.go", "return l.lag()+l.pause()+l.settling() <= l.timeout*3/4", "return true"}},
		Seeds:   120,
		Trouble: "short",
		Faults:  "nothing", // what is lost shows only where nothing is broken
	},
	{
		Name: "a longer timeout stretches old evidence", After: "our own first version",
		Edits: []Edit{{"internal/lease/lease.go", "l.timeout = min(l.timeout, timeout)", "l.timeout = timeout"}},
		Seeds: 200,
	},
	{
		Name: "the lease lasts half as long again", After: "Curator's LOST after 4/3 of the timeout",
		Edits: []Edit{{"internal/lease/lease.go", "(1-maxDrift)) - now", "(1+10*maxDrift)) - now"}},
	},
	{
		Name: "no timer ends a hold", After: "go-zookeeper, kazoo, Curator: only an event does",
		Edits: []Edit{
			{"holding.go", "timer := time.NewTimer(sess.Lease.Remaining())", "timer := time.NewTimer(1000 * time.Hour)"},
		},
	},
	{
		Name: "nothing keeps the lease fresh", After: "heartbeats forgotten",
		Edits: []Edit{{"heartbeat.go", "next := b.s.Lease.NextBeat(b.last, b.touched)", "next := now.Add(never)"}},
	},
	{
		Name: "a grant needs no fresh lease", After: "etcd's lock returned without a look at its own lease",
		Edits: []Edit{{"recipe.go", "\tif t.sess.Lease.Fresh() {\n\t\treturn nil", "\tif !t.sess.IsOver() {\n\t\treturn nil"}},
		Seeds: 120,
	},
	{
		Name: "holders do not watch their own node", After: "Curator, kazoo, go-zookeeper",
		Edits: []Edit{{"sentinel.go", "\tdefer g.show(nil)\n\tvar p pace\n", "\tg.show(&nodeWatch{seen: seen{stat: &zk.Stat{}}})\n\tvar p pace\n\tif true {\n\t\treturn\n\t}\n"}},
	},
	{
		Name: "the clean-up dies with the caller's context", After: "etcd, vitess, CURATOR-45",
		Edits: []Edit{{"acquire.go", "\t\toutcomes = append(outcomes, c.remove(x))", "\t\tif ctx.Err() == nil {\n\t\t\toutcomes = append(outcomes, c.remove(x))\n\t\t}"}},
	},
	{
		Name: "a failed delete is not repeated", After: "go-zookeeper Lock after an error, CURATOR-315",
		Edits: []Edit{{"cleanup.go", "case isRefusal(err) || ctx.Err() != nil:", "default:"}},
	},
	{
		Name: "a try leaves its node behind", After: "kazoo #732",
		Edits: []Edit{{"acquire.go", "\t\toutcomes = append(outcomes, c.remove(x))", "\t\tif !errors.Is(err, ErrLocked) {\n\t\t\toutcomes = append(outcomes, c.remove(x))\n\t\t}"}},
	},
	{
		Name: "whose session is over has no node", After: "the old session may live on where servers do not restore it",
		Edits: []Edit{{"cleanup.go", "if t.sess.HasExpired() && t.entered {", "if t.sess.IsOver() {"}},
		Seeds: 80,
	},
	{
		Name: "a parent that vanished ends the acquire", After: "CURATOR-724, kazoo #563",
		Edits: []Edit{{"recipe.go", "if err := t.c.makeDir(ctx, s, t.dir, t.recipe.depth()); err != nil {", "if err := t.createErr; err != nil && s != nil && t.c.makeDir(ctx, s, t.dir, t.recipe.depth()) != t.createErr {"}},
	},
	{
		Name: "who lost its place does not queue again", After: "CURATOR-518, twitter-commons #20",
		Edits: []Edit{{"acquire.go", "if ctx.Err() != nil || !errors.Is(err, errSessionOver) && !errors.Is(err, errGone) {", "if ctx.Err() != nil || !errors.Is(err, errGone) {"}},
	},
	{
		Name: "who lost its node does not queue again", After: "an operator's delete ends the acquire",
		Edits: []Edit{{"acquire.go", "if ctx.Err() != nil || !errors.Is(err, errSessionOver) && !errors.Is(err, errGone) {", "if ctx.Err() != nil || !errors.Is(err, errSessionOver) {"}},
	},
	{
		Name: "a waiter does not notice the end of its session", After: "kazoo #282, etcd #19597",
		Edits: []Edit{
			{"watch.go", "\tcase <-s.Over():\n\t\treturn 0, errSessionOver\n\tcase <-ctx.Done():\n\t\treturn 0, context.Cause(ctx)\n\t}\n}\n", "\tcase <-ctx.Done():\n\t\treturn 0, context.Cause(ctx)\n\t}\n}\n"},
			{"watch.go", "\t\tcase <-s.Over():\n\t\t\treturn nodeChanged\n", ""},
			{"watch.go", "\t\tif s.IsOver() {\n\t\t\treturn 0, errSessionOver\n\t\t}\n\t\treturn w.saw", "\t\treturn w.saw"},
			{"watch.go", "\tcase <-s.Over():\n\t\treturn errSessionOver\n", ""},
		},
		Seeds: 120,
	},
	{
		Name: "the token is the sequence number", After: "it starts anew with the directory",
		Edits: []Edit{{"recipe.go", "t.token = l.stat.Pzxid", "t.token = own.seq + 1"}},
	},
	{
		Name: "the directory's last change is everybody's token", After: "those in the middle of the queue are older",
		Edits: []Edit{{"recipe.go", "if t.token == 0 && len(t.ahead) == len(entries)-1 {", "if t.token == 0 {"}},
	},
	{
		Name: "a transaction goes without its guard", After: "a stopped process that wakes up",
		Edits: []Edit{{"hold.go", "guard := h.Guard()\n", "guard := h.Guard()[:0]\n"}},
	},
	{
		Name: "the acquirer's deadline ends the hold", After: "vitess #11794, etcd",
		Edits: []Edit{{"acquire.go", "h := c.hold(ctx, w.recipe, w.path, granted)\n\tev :=", "h := c.hold(ctx, w.recipe, w.path, granted)\n\tcontext.AfterFunc(ctx, func() { h.of.cancel(context.Cause(ctx)) })\n\tev :="}},
	},
	{
		Name: "an exists watch on what is gone", After: "go-zookeeper registers it for good",
		Edits: []Edit{{"request.go", "names, stat, events, err := r.conn.ChildrenW(dir)\n\t", "_, _, _, err := r.conn.(*zk.Conn).ExistsW(dir + \"/_c_missing\")\n\tnames, stat, events, err := r.conn.ChildrenW(dir)\n\t"}},
		Focus: "election",
	},
	{
		Name: "the outermost hold ends with an inner level", After: "etcd: one Unlock frees two mutexes",
		Edits: []Edit{{"holding.go", "if g.levels > 0 {", "if g.levels > 100 {"}},
		Focus: "reentrant",
	},
	{
		Name: "who enters a lost lock again is let in", After: "Curator counts up whatever has happened",
		Edits: []Edit{{"reentrant.go", "case cause != nil:", "case cause == context.Canceled:"}},
		Focus: "reentrant",
		Seeds: 120,
	},
	{
		Name: "entering again queues again", After: "a lock that is not reentrant",
		Edits: []Edit{{"reentrant.go", "return h == nil && err == nil\n", "h = nil\n\t\treturn err == nil\n"}},
		Focus: "reentrant",
	},
	{
		Name: "a leader resigns while its function is at work", After: "client-go's ReleaseOnCancel",
		Edits: []Edit{{"election.go", "\t\tfn(inside)\n", "\t\tcontext.AfterFunc(inside, func() { hold.Unlock(context.Background()) })\n\t\tfn(inside)\n"}},
		Focus: "election",
	},
	{
		Name: "readers wait for nobody", After: "a reader overtakes the writer that waits",
		Edits: []Edit{{"rules.go", "if !ahead[i].shared {", "if !ahead[i].shared && i == 0 {"}},
		Focus: "rw",
	},
	{
		Name: "readers wait for readers", After: "no sharing: kazoo #649 waited for the wrong one",
		Edits: []Edit{{"rules.go", "if !ahead[i].shared {", "if len(ahead) > 0 {"}},
		Focus: "rw",
	},
	{
		Name: "a writer waits for writers only", After: "CURATOR-621: a writer beside a reader",
		Edits: []Edit{{"rwmutex.go", "infix: writerInfix, rule: afterAll}", "infix: writerInfix, rule: afterExclusive}"}},
		Focus: "rw",
	},
	{
		Name: "readers do not notice a downgrade", After: "they wait until the writer is gone",
		Edits: []Edit{{"rwmutex.go", "rule: afterExclusive, shared: true, passes: isDowngraded}", "rule: afterExclusive, shared: true}"}},
		Focus: "rw",
	},
	{
		Name: "a downgrade leaves its place", After: "Curator before CURATOR-621",
		Edits: []Edit{{"rwmutex.go", "\to.Shared = true\n\treturn h.rewrite(ctx, o.encode())", "\to.Shared = true\n\treturn h.of.c.delete(ctx, h.of.nodes[0].sess, h.of.nodes[0].path())"}},
		Focus: "rw",
	},
	{
		Name: "one permit too many", After: "off by one in the limit",
		Edits: []Edit{{"semaphore.go", "return len(leases.ahead)+k <= limit, err", "return len(leases.ahead)+k <= limit+1, err"}},
		Focus: "semaphore",
	},
	{
		Name: "permits of one acquire are made one after the other", After: "Curator's semaphore, our own first version",
		Edits: []Edit{{"batch.go", "answers, err := transact(t.c.conn, ops)\n", "var answers []zk.MultiResponse\n\tvar err error\n\tfor i := 0; i < len(ops) && err == nil; i++ {\n\t\tvar one []zk.MultiResponse\n\t\tone, err = t.c.conn.Multi(ops[i])\n\t\tanswers = append(answers, one...)\n\t}\n"}},
		Focus: "semaphore",
		Seeds: 120,
	},
	{
		Name: "of several permits one is given up", After: "each node has an owner until it is gone (C7)",
		Edits: []Edit{{"batch.go", "left := slices.DeleteFunc(t.whole(), func", "left := slices.DeleteFunc([]*contender{t}, func"}},
		Focus: "semaphore",
	},
	{
		Name: "permits of an acquire that failed stay", After: "CURATOR-315, CURATOR-335",
		Edits: []Edit{{"acquire.go", "\t\tc.discard(ctx, err, t)\n\t\tif ctx.Err() != nil ||", "\t\tif t == nil || !t.recipe.limited {\n\t\t\tc.discard(ctx, err, t)\n\t\t}\n\t\tif ctx.Err() != nil ||"}},
		Focus: "semaphore",
	},
	{
		Name: "the place among those who ask stays", After: "CURATOR-462",
		Edits: []Edit{{"semaphore.go", "defer s.c.remove(&gate.contender)", "defer s.c.unkeep(&gate.ownNode)"}},
		Focus: "semaphore",
	},
	{
		Name: "a new number of permits wakes nobody", After: "the directory's watch does not see its data",
		Edits: []Edit{
			{"semaphore.go", "stir := leases", "_ = leases"},
			{"semaphore.go", "\t\t\t\t&zk.CreateRequest{Path: stir, Acl: s.c.acl},\n\t\t\t\t&zk.DeleteRequest{Path: stir, Version: -1})", ")"},
		},
		Focus: "semaphore",
	},
	{
		Name: "who waits keeps to the number of permits that it said", After: "Curator's semaphore believes each caller",
		Edits: []Edit{{"semaphore.go", "again(ctx, func() (int, error) { return s.limitThat(ctx, leases.sess, dir, enough) })", "s.permits, enough(s.permits)"}},
		Focus: "semaphore",
	},
	{
		Name: "a create that counts others is granted all the same", After: "the one condition of an acquire without a listing",
		Edits: []Edit{{"recipe.go", "t.counted.dir == nil || t.counted.dir.NumChildren != 1 {", "t.counted.dir == nil {"}},
	},
	{
		Name: "a look at our own node does not grow old", After: "our own first version: a slow read came between",
		Edits: []Edit{{"recipe.go", "if unwatched && time.Since(t.looked) > aloneGrace {", "if unwatched && t.c == nil {"}},
		Focus: "semaphore", Seeds: 200,
	},
	{
		Name: "a number of permits is believed that a lagging server tells", After: "our own first version",
		Edits: []Edit{{"semaphore.go", "upToDate(ctx, s.c.requests, sess, func() (int, error) { return s.limit(ctx, sess, dir) })", "s.limit(ctx, sess, dir)"}},
		Focus: "semaphore", Seeds: 120,
	},
	{
		Name: "several locks are taken in the caller's order", After: "Curator's multi lock",
		Edits: []Edit{{"multi.go", "ordered = slices.SortedFunc(slices.Values(lockers), comparePlaces)", "ordered = slices.Clone(lockers)"}},
		Focus: "mutex",
	},
	{
		Name: "LockAll under a hold of one of its locks waits for itself", After: "our own first version",
		Edits: []Edit{{"multi.go", "c.holdsUnder(ctx, is.path, is.enters) {", "c.holdsUnder(ctx, is.path, is.enters) && c == nil {"}},
		Focus: "mutex",
	},
	{
		Name: "several locks are not given up when one fails", After: "Curator's multi lock goes on",
		Edits: []Edit{{"multi.go", "h.Unlock(ctx) // if", "_ = h // if"}},
		Focus: "mutex",
	},
	{
		Name: "where a writer of Curator's has gone, nobody is left", After: "our own first version, in all branches but one",
		Edits: []Edit{{"handoff.go", "t.unsure = t.unsure || mayStay(t.ahead[i])", "t.unsure = false"}},
		Focus: "rw", Seeds: 120,
	},
	{
		Name: "who was ahead has gone, so we were there", After: "our own first version: two goroutines saw the two events",
		Edits: []Edit{{"sentinel.go", "quiet, renewed = w.isQuiet(); quiet && !n.isGone()", "quiet, renewed = w.isQuiet(); (quiet || w != nil) && !n.isGone()"}},
		Seeds: 120,
	},
	{
		Name: "a sync is the quorum's word", After: "our own first version: a leader that was replaced answers it",
		Edits:   []Edit{{"request.go", "if err := r.askQuorum(ctx, s); err != nil {", "if _, err := ask(ctx, r, s, isRead, func(conn wire) (string, error) { return conn.Sync(\"/\") }); err != nil {"}},
		Seeds:   120,
		Trouble: "streams",
	},
	{
		Name: "what is not there now was never made", After: "our own first version: the create was still on its way to the leader",
		Edits:   []Edit{{"create.go", "t.recognise(genuine)\n\tif t.name == \"\" {", "t.recognise(genuine)\n\tif t.name == \"\" && t.c == nil {"}},
		Seeds:   120,
		Trouble: "streams",
	},
	{
		Name: "a lease that ran out waits for its proof on the same connection", After: "the steps take longer than sessions hardly longer than a tick",
		Edits: []Edit{{"internal/conn/link.go", "if stale && s.Lease", "if stale && l.bare != nil && s.Lease"}},
		Seeds: 120,
	},
	{
		Name: "one heartbeat waits for the answer to the other", After: "where answers are slow, each proves too late what the last has touched",
		Edits: []Edit{{"heartbeat.go", "const maxBeats = 4", "const maxBeats = 1"}},
		Seeds: 120,
	},
	{
		Name: "what the end of a hold cuts off was not done", After: "our own first version: the transaction had committed",
		Edits: []Edit{{"hold.go", "\t\tif errors.Is(err, end) {\n\t\t\treturn fmt.Errorf(\"%w: %v\", ErrUncertain, err)", "\t\tif errors.Is(err, end) {\n\t\t\treturn err"}},
		Seeds: 120,
	},
}

// Named returns the mutant of that name.
func Named(name string) (Mutant, error) {
	for _, m := range Table {
		if m.Name == name {
			return m, nil
		}
	}
	return Mutant{}, fmt.Errorf("no mutant %q", name)
}
