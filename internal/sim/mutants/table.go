package mutants

// Table is every mutant.
var Table = []Mutant{
	{
		Name: "sessions are not compared", After: "go-zookeeper Lock takes a lock of the session before",
		Edits: []Edit{
			{"session.go", "return l.session == s && !s.isOver()", "return s != nil"},
		},
	},
	{
		Name: "another session id goes unnoticed", After: "go-zookeeper Conn on servers that do not restore sessions",
		Edits: []Edit{{"session.go", "l.session != nil && l.session.id == id && !l.session.isOver()", "l.session != nil && id != 0 && !l.session.isOver()"}},
		Seeds: 80,
	},
	{
		Name: "a create without an answer is not looked for", After: "CreateProtectedEphemeralSequential, CURATOR-45",
		Edits: []Edit{{"recipe.go", `if t.name != "" || wasNotSent(t.createErr) {`, "if t.createErr != nil || true {"}},
	},
	{
		Name: "a create without an answer is looked for on a server that lags", After: "CreateProtectedEphemeralSequential scans without a sync",
		Edits: []Edit{{"recipe.go", "if err := t.c.sync(ctx, s, t.dir); err != nil {", "if err := ctx.Err(); err != nil {"}},
		Seeds: 120,
	},
	{
		Name: "the queue is in the order of the names", After: "guids come before the number (C1, ZooKeeper's own recipe)",
		Edits: []Edit{{"recipe.go", "e.name != own.name && before(e, own) < 0", "e.name != own.name && e.name < own.name"}},
	},
	{
		Name: "saturated numbers are compared", After: "go-zookeeper, Curator, kazoo after 2^31 creates",
		Edits: []Edit{{"recipe.go", "0 <= seq && seq < math.MaxInt32", "seq <= math.MaxInt32"}},
	},
	{
		Name: "negative numbers are the smallest", After: "go-zookeeper Lock where the counter runs over",
		Edits: []Edit{{"recipe.go", "if plain && a.seq != b.seq {", "if a.seq != b.seq {"}},
	},
	{
		Name: "everybody waits for the one before the last", After: "off by one in the predecessor",
		Edits: []Edit{{"recipe.go", "{ return len(ahead) - 1 }", "{ return len(ahead) - 2 }"}},
	},
	{
		Name: "foreign nodes stand in the queue", After: "go-zookeeper Lock, Curator's semaphore count every child",
		Edits: []Edit{{"recipe.go", "if e, ok := parseEntry(name); ok {", "if e, ok := parseEntry(name); ok || func() bool { e.name = name; return true }() {"}},
	},
	{
		Name: "the predecessor has gone, so it is our turn", After: "a waiter before us may have given up",
		Edits: []Edit{{"recipe.go", "\tt.ahead = t.ahead[:i]\n\tnext :=", "\tt.ahead = t.ahead[:0]\n\tnext :="}},
	},
	{
		Name: "whoever leaves writes a note that it held", After: "the note's one condition",
		Edits: []Edit{{"note.go", "if t.held && t.note.may &&", "if t.note.may &&"}},
		Seeds: 80,
	},
	{
		Name: "every predecessor was a holder", After: "the note's reader",
		Edits: []Edit{{"recipe.go", "if held, err := t.readNote(ctx, front); held || err != nil {", "if held, err := t.readNote(ctx, front); held || err == nil {\n\t\theld = true"}},
	},
	{
		Name: "pings renew the lease", After: "every client that trusts its connection's state",
		Edits: []Edit{{"session.go", "s.lease.note(sent.sent, isQuorumOp(sent.op) && isVerdict(code))", "s.lease.note(sent.sent, true)"}},
		Seeds: 120,
	},
	{
		Name: "whoever takes a session back vouches for it", After: "a leader that was cut off takes back its clients' sessions, on real servers",
		Edits: []Edit{{"lease.go", "l.timeout, l.claimed = timeout, sent", "l.timeout = timeout\n\tl.prove(sent)"}},
		Seeds: 120,
	},
	{
		Name: "only the first of all is next in line", After: "a reader behind readers did not watch its own node",
		Edits: []Edit{{"recipe.go", "if t.recipe.rule(t.ahead[:i]) < 0 {", "if i == 0 {"}},
		Focus: "rw", Seeds: 200,
	},
	{
		Name: "the lease counts from the receipt of an answer", After: "redsync, redisson and others",
		Edits: []Edit{
			{"lease.go", "\t\tl.proven = sent\n", "\t\tl.proven = l.now()\n"},
			{"lease.go", "\t\t\tl.doubt = got.mono.Add(l.lag)\n", ""}, // however long it took
		},
		Seeds: 300,
	},
	{
		Name: "the lease lasts half as long again", After: "Curator's LOST after 4/3 of the timeout",
		Edits: []Edit{{"lease.go", "(1 - maxDrift))", "(1 + 10*maxDrift))"}},
	},
	{
		Name: "no timer ends a hold", After: "go-zookeeper, kazoo, Curator: only an event does",
		Edits: []Edit{
			{"hold.go", "timer := time.NewTimer(t.sess.lease.remaining())", "timer := time.NewTimer(1000 * time.Hour)"},
		},
	},
	{
		Name: "nothing keeps the lease fresh", After: "heartbeats forgotten",
		Edits: []Edit{{"sentinel.go", "return s.lease.untilBeat()", "return never"}},
	},
	{
		Name: "a grant needs no fresh lease", After: "etcd's lock returned without a look at its own lease",
		Edits: []Edit{{"recipe.go", "\tif t.sess.lease.fresh() {\n\t\treturn nil", "\tif !t.sess.isOver() {\n\t\treturn nil"}},
		Seeds: 120,
	},
	{
		Name: "holders do not watch their own node", After: "Curator, kazoo, go-zookeeper",
		Edits: []Edit{{"sentinel.go", "\tdefer look.Do(func() { close(g.armed) })\n\tif !t.linger(after) {", "\tdefer look.Do(func() { close(g.armed) })\n\tif true {"}},
	},
	{
		Name: "the clean-up dies with the caller's context", After: "etcd, vitess, CURATOR-45",
		Edits: []Edit{{"zklock.go", "\t\toutcomes = append(outcomes, c.remove(t))", "\t\tif ctx.Err() == nil {\n\t\t\toutcomes = append(outcomes, c.remove(t))\n\t\t}"}},
	},
	{
		Name: "a failed delete is not repeated", After: "go-zookeeper Lock after an error, CURATOR-315",
		Edits: []Edit{{"cleanup.go", "case isRefusal(err) || ctx.Err() != nil:", "default:"}},
	},
	{
		Name: "a try leaves its node behind", After: "kazoo #732",
		Edits: []Edit{{"zklock.go", "\t\toutcomes = append(outcomes, c.remove(t))", "\t\tif !errors.Is(err, ErrLocked) {\n\t\t\toutcomes = append(outcomes, c.remove(t))\n\t\t}"}},
	},
	{
		Name: "whose session is over has no node", After: "the old session may live on where servers do not restore it",
		Edits: []Edit{{"cleanup.go", "if t.sess.isOver() && t.sess.expired && t.entered {", "if t.sess.isOver() {"}},
		Seeds: 80,
	},
	{
		Name: "a parent that vanished ends the acquire", After: "CURATOR-724, kazoo #563",
		Edits: []Edit{{"recipe.go", "if err := t.c.makeDir(ctx, s, t.dir); err != nil {", "if err := t.createErr; err != nil && s.again != nil && t.c.makeDir(ctx, s, t.dir) != t.createErr {"}},
	},
	{
		Name: "who lost its place does not queue again", After: "CURATOR-518, twitter-commons #20",
		Edits: []Edit{{"zklock.go", "if ctx.Err() != nil || !errors.Is(err, errSessionOver) && !errors.Is(err, errGone) {", "if ctx.Err() != nil || !errors.Is(err, errGone) {"}},
	},
	{
		Name: "who lost its node does not queue again", After: "an operator's delete ends the acquire",
		Edits: []Edit{{"zklock.go", "if ctx.Err() != nil || !errors.Is(err, errSessionOver) && !errors.Is(err, errGone) {", "if ctx.Err() != nil || !errors.Is(err, errSessionOver) {"}},
	},
	{
		Name: "a waiter does not notice the end of its session", After: "kazoo #282, etcd #19597",
		Edits: []Edit{
			{"watch.go", "\tcase <-s.over:\n\t\treturn 0, errSessionOver\n\tcase <-ctx.Done():\n\t\treturn 0, context.Cause(ctx)\n\t}\n}\n", "\tcase <-ctx.Done():\n\t\treturn 0, context.Cause(ctx)\n\t}\n}\n"},
			{"watch.go", "\t\tcase <-s.over:\n\t\t\treturn nodeChanged\n", ""},
			{"watch.go", "\t\tif s.isOver() {\n\t\t\treturn 0, errSessionOver\n\t\t}\n\t\treturn w.saw", "\t\treturn w.saw"},
			{"watch.go", "\tcase <-s.over:\n\t\treturn nil, known, errSessionOver\n", ""},
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
		Edits: []Edit{{"zklock.go", "h := c.newHold(ctx, r.name, path, t)\n\tev :=", "h := c.newHold(ctx, r.name, path, t)\n\tcontext.AfterFunc(ctx, func() { h.cancel(context.Cause(ctx)) })\n\tev :="}},
	},
	{
		Name: "an exists watch on what is gone", After: "go-zookeeper registers it for good",
		Edits: []Edit{{"request.go", "names, stat, events, err := c.conn.ChildrenW(dir)\n\t", "_, _, _, err := c.conn.ExistsW(dir + \"/_c_missing\")\n\tnames, stat, events, err := c.conn.ChildrenW(dir)\n\t"}},
		Focus: "election",
	},
	{
		Name: "the outermost hold ends with an inner level", After: "etcd: one Unlock frees two mutexes",
		Edits: []Edit{{"hold.go", "if g.levels > 0 {", "if g.levels > 100 {"}},
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
		Edits: []Edit{{"election.go", "\tfn(inside)\n", "\tcontext.AfterFunc(inside, func() { hold.Unlock(context.Background()) })\n\tfn(inside)\n"}},
		Focus: "election",
	},
	{
		Name: "readers wait for nobody", After: "a reader overtakes the writer that waits",
		Edits: []Edit{{"recipe.go", "if !ahead[i].shared {", "if !ahead[i].shared && i == 0 {"}},
		Focus: "rw",
	},
	{
		Name: "readers wait for readers", After: "no sharing: kazoo #649 waited for the wrong one",
		Edits: []Edit{{"recipe.go", "if !ahead[i].shared {", "if len(ahead) > 0 {"}},
		Focus: "rw",
	},
	{
		Name: "a writer waits for writers only", After: "CURATOR-621: a writer beside a reader",
		Edits: []Edit{{"rwmutex.go", "infix: writerInfix, rule: afterAll}", "infix: writerInfix, rule: afterExclusive}"}},
		Focus: "rw",
	},
	{
		Name: "readers do not notice a downgrade", After: "they wait until the writer is gone",
		Edits: []Edit{{"rwmutex.go", "rule: afterExclusive, passes: isDowngraded}", "rule: afterExclusive}"}},
		Focus: "rw",
	},
	{
		Name: "a downgrade leaves its place", After: "Curator before CURATOR-621",
		Edits: []Edit{{"rwmutex.go", "\to.Shared = true\n\treturn h.rewrite(ctx, o.encode())", "\to.Shared = true\n\treturn h.c.delete(ctx, h.parts[0].sess, h.parts[0].path())"}},
		Focus: "rw",
	},
	{
		Name: "one permit too many", After: "off by one in the limit",
		Edits: []Edit{{"semaphore.go", "return len(last.ahead) < limit, err", "return len(last.ahead) <= limit, err"}},
		Focus: "semaphore",
	},
	{
		Name: "permits of an acquire that failed stay", After: "CURATOR-315, CURATOR-335",
		Edits: []Edit{{"semaphore.go", "\t\ts.c.discard(ctx, err, leases...)\n\t\tif ctx.Err() != nil ||", "\t\tif ctx.Err() != nil ||"}},
		Focus: "semaphore",
	},
	{
		Name: "the place among those who ask stays", After: "CURATOR-462",
		Edits: []Edit{{"semaphore.go", "defer s.c.remove(gate)", "defer s.c.unkeep(gate)"}},
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
		Edits: []Edit{{"semaphore.go", "again(ctx, func() (int, error) { return s.limitThat(ctx, last.sess, dir, enough) })", "s.permits, enough(s.permits)"}},
		Focus: "semaphore",
	},
	{
		Name: "a number of permits is believed that a lagging server tells", After: "our own first version",
		Edits: []Edit{{"semaphore.go", "if err := s.c.sync(ctx, sess, dir+leasesDir); err != nil {", "if err != nil {"}},
		Focus: "semaphore", Seeds: 120,
	},
	{
		Name: "several locks are taken in the caller's order", After: "Curator's multi lock",
		Edits: []Edit{{"multi.go", "ordered = slices.SortedFunc(slices.Values(lockers), comparePlaces)", "ordered = slices.Clone(lockers)"}},
		Focus: "mutex",
	},
	{
		Name: "several locks are not given up when one fails", After: "Curator's multi lock goes on",
		Edits: []Edit{{"multi.go", "h.Unlock(ctx) // what", "_ = h // what"}},
		Focus: "mutex",
	},
}
