package mutants

import "fmt"

// Table is every mutant.
var Table = []Mutant{
	{
		Name: "sessions are not compared", After: "go-zookeeper Lock takes a lock of the session before",
		Edits: []Edit{
			{"internal/conn/link.go", "return l.session == s && !s.IsOver()", "return s != nil"},
		},
		Focus: "mutex", Faults: "expire|partition",
	},
	{
		Name: "another session id goes unnoticed", After: "go-zookeeper Conn on servers that do not restore sessions",
		Edits: []Edit{{"internal/conn/link.go", "same := l.session != nil && l.session.ID == id && !l.session.IsOver()", "same := l.session != nil && id != 0 && !l.session.IsOver()"}},
		Test:  Test{".", "TestASessionReplacedWithoutAnEventEndsEveryHold"},
	},
	{
		Name: "an operator evicts from the front", After: "who stands behind is granted, and then removed as a holder",
		Edits:   []Edit{{"operate/evict.go", "range slices.Backward(who)", "range slices.All(who)"}},
		Trouble: "evicts",
	},
	{
		Name: "Inspect shows one reader", After: "the first in line is not the only one who holds",
		Edits: []Edit{{"operate/inspect.go", "= i == 0 || f.Shared && !exclusive", "= i == 0"}},
		Focus: "rw", Trouble: "looks",
	},
	{
		Name: "Inspect believes a server that lags", After: "a queue is shown as it was",
		Edits:   []Edit{{"operate/inspect.go", "l, err := c.FreshList(ctx, s, c.Root+path)", "l, err := c.List(ctx, s, c.Root+path)"}},
		Trouble: "looks",
	},
	{
		Name: "a loss is told twice", After: "whoever counts holds by events counts one too few",
		Edits: []Edit{{"holding.go", "\t\tg.tell(observe.Lost, why)\n", "\t\tg.tell(observe.Lost, why)\n\t\tg.tell(observe.Lost, why)\n"}},
	},
	{
		Name: "an observer believes what another's watch has shown", After: "its event was withheld",
		Edits: []Edit{{"internal/session/watch.go", "err != nil || now.Mzxid == w.Stat.Mzxid {", "err != nil || now != nil {"}},
		Test:  Test{".", "TestANewObserverIsShownNothingThatWas"},
	},
	{
		Name: "a leader is asked for on a server that lags", After: "whoever asks gets the leader before",
		Edits: []Edit{{"election.go", "l, err := e.c().engine.FreshList(ctx, s, dir)", "l, err := e.c().engine.List(ctx, s, dir)"}},
		Focus: "election",
	},
	{
		Name: "a leader's value is the one of its first day", After: "values are read when a leader is new",
		Edits: []Edit{{"watch.go", "\tsaw, err := w.Await(ctx, nil)\n\tif err == nil &&", "\tsaw, err := w.Await(ctx, nil)\n\tfor err == nil && saw == session.NodeChanged {\n\t\tif w, err = o.lookAt(ctx, s, o.dir+\"/\"+first.Name); err == nil {\n\t\t\tsaw, err = w.Await(ctx, nil)\n\t\t}\n\t}\n\tif err == nil &&"}},
		Focus: "election",
	},
	{
		Name: "a connection request says only what the client library has seen", After: "a server that lags would take the session",
		Edits: []Edit{{"internal/conn/link.go", "return frames.SawRequest(p, l.session.seen.Load())", "return p"}},
		Test:  Test{"internal/conn", "TestAConnectionRequestSaysWhatOurAnswersHaveShown"},
	},
	{
		Name: "requests are sent before the credentials", After: "a server answers what it reads first",
		Edits: []Edit{
			{"internal/conn/link.go", "ready, changed := l.open, l.changed", "ready, changed := l.carried.Load() == s, l.changed"},
			{"internal/conn/link.go", "case !l.open || !l.conn.send(r, by):", "case !l.conn.send(r, by):"},
			{"internal/conn/tap.go", "if t.ended || !t.open {", "if t.ended {"},
		},
		Test: Test{"internal/conn", "TestNothingIsSentBeforeTheCredentials"},
	},
	{
		Name: "the client library keeps the numbers of its requests", After: "two that count for themselves meet",
		Edits: []Edit{{"internal/conn/tap.go", "t.enter(r, nil)", "t.waiting[r.Xid()] = sentRequest{now, r.Op(), nil, r.Xid()}"}},
		Test:  Test{"internal/conn", "TestTwoSpeakOnOneConnectionAndEachGetsItsAnswers"},
	},
	{
		Name: "the end of a connection answers nobody", After: "a request that is waited for on the next connection",
		Edits: []Edit{{"internal/conn/tap.go", "\t\t\tby.Answered(frames.Reply{}, zk.ErrConnectionClosed)\n\t\t}\n\t}\n}", "\t\t\t_ = zk.ErrConnectionClosed\n\t\t}\n\t}\n}"}},
		Test:  Test{"internal/conn", "TestTheEndOfAConnectionAnswersWhatWasAsked"},
	},
	{
		Name: "the server's proof of the password is not looked at", After: "clients that take a code of OK for the end of a login",
		Edits: []Edit{{"internal/conn/login.go", "case !bytes.Equal(token, proof):", "case bytes.Equal(token, proof) && token == nil:"}},
		Test:  Test{".", "TestAServerThatCannotProveThePasswordIsRefused"},
	},
	{
		Name: "a session whose login is refused is asked for again and again", After: "each request for a session renews it on the servers",
		Edits: []Edit{{"internal/conn/link.go", "(unknown && l.serves || l.gate.isShut())", "unknown"}},
		Test:  Test{".", "TestASessionWhoseLoginIsRefusedEnds"},
	},
	{
		Name: "a refusal that came after a login is final", After: "one server may not have heard of a password yet",
		Edits: []Edit{{"internal/conn/tap.go", "\tt.link.gate.admit()\n", ""}},
		Test:  Test{".", "TestASessionWhoseLoginIsRefusedEnds"},
	},
	{
		Name: "a connection that is there already goes on without a login", After: "Attach comes after the connection",
		Edits: []Edit{{"internal/conn/link.go", "if conn != nil {\n\t\tconn.Close()\n\t}\n}\n\n// IsDenied", "_ = conn\n}\n\n// IsDenied"}},
		Test:  Test{".", "TestAConnectionThatIsThereAlreadyLogsInWhenItComesBack"},
	},
	{
		Name: "only the first connection logs in", After: "credentials belong to a connection, not to a session",
		Edits:   []Edit{{"internal/conn/tap.go", "login != nil && id != 0", "login != nil && id != 0 && t.link.Latest() == nil"}},
		Trouble: "logins",
	},
	{
		Name: "a create without an answer is not looked for", After: "CreateProtectedEphemeralSequential, CURATOR-45",
		Edits: []Edit{{"internal/queue/create.go", `if t.Name != "" || outcome.WasNotSent(t.creation.err) {`, "if t.creation.err != nil || true {"}},
	},
	{
		Name: "a create without an answer is looked for on a server that lags", After: "CreateProtectedEphemeralSequential scans without a sync",
		Edits: []Edit{{"internal/session/request.go", "if err := r.askQuorum(ctx, s); err != nil {", "if err := ctx.Err(); err != nil {"}},
		Test:  Test{".", "TestInspectIsNotFooledByALaggingServer"},
	},
	{
		Name: "the queue is in the order of the names", After: "guids come before the number (C1, ZooKeeper's own recipe)",
		Edits: []Edit{{"internal/node/order.go", "e.Name != own.Name && Compare(e, own) < 0", "e.Name != own.Name && e.Name < own.Name"}},
	},
	{
		Name: "saturated numbers are compared", After: "go-zookeeper, Curator, kazoo after 2^31 creates",
		Edits: []Edit{{"internal/node/order.go", "{ return rank(a.Seq) == rank(b.Seq) }", "{ return a.Seq == b.Seq && a.Seq > math.MaxInt32 }"}},
	},
	{
		Name: "negative numbers are the smallest", After: "go-zookeeper Lock where the counter runs over",
		Edits: []Edit{{"internal/node/order.go", "ranks := cmp.Compare(rank(a.Seq), rank(b.Seq));", "ranks := cmp.Compare(a.Seq, b.Seq);"}},
	},
	{
		Name: "equal numbers stand as they are listed", After: "sorting by number alone where the counter has ended",
		Edits: []Edit{{"internal/node/order.go", "if tied {", "if tied = false; tied {"}},
	},
	{
		Name: "everybody waits for the one before the last", After: "off by one in the predecessor",
		Edits: []Edit{{"internal/node/rules.go", "{ return len(ahead) - 1 }", "{ return len(ahead) - 2 }"}},
	},
	{
		Name: "foreign nodes stand in the queue", After: "go-zookeeper Lock, Curator's semaphore count every child",
		Edits: []Edit{{"internal/node/names.go", "if e, ok := ParseEntry(name); ok {", "if e, ok := ParseEntry(name); ok || func() bool { e.Name = name; return true }() {"}},
	},
	{
		Name: "the predecessor has gone, so it is our turn", After: "a waiter before us may have given up",
		Edits: []Edit{{"internal/queue/handoff.go", "\tt.drop(left)\n", "\tt.drop(left)\n\tt.ahead = slices.Clone(behind)\n"}},
	},
	{
		Name: "a waiter counts those that it knows by name only", After: "the event of a waiter for permits",
		Edits: []Edit{{"internal/queue/turn.go", "Node: t.Name, Behind: t.seen}", "Node: t.Name, Behind: len(t.ahead)}"}},
		Test:  Test{".", "TestEveryKindTellsHowManyAreBefore"},
	},
	{
		Name: "all that leave write a note that they held", After: "the note's one condition",
		Edits: []Edit{{"internal/queue/contender.go", "return t.held && t.note != nil &&", "return t.note != nil &&"}},
		Seeds: 320,
	},
	{
		Name: "every predecessor was a holder", After: "the note's reader",
		Edits: []Edit{{"internal/queue/note.go", "if named >= 0 && t.isTimely(dir.Stat) {", "if named = i; ours {"}},
	},
	{
		Name: "the one before the last was the last", After: "looking ahead and forgetting whom one waits for",
		Edits: []Edit{{"internal/queue/handoff.go", "slices.Clone(t.ahead[:i]), slices.Clone(t.ahead[i+1:])\n", "slices.Clone(t.ahead[:i]), t.ahead[:0]\n\tt.ahead = t.ahead[:i+1]\n"}},
	},
	{
		Name: "a look without an answer saw nothing", After: "an error taken for a missing node",
		Edits: []Edit{{"internal/queue/handoff.go", "\tif errors.Is(err, zk.ErrNoNode) {\n\t\tt.drop(e)", `	if err != nil && !t.Sess.IsOver() {
		t.drop(e)`}},
		Test: Test{".", "TestACohortThroughAnyFault"},
	},
	{
		Name: "a note is believed to name all ahead", After: "the note's reader",
		Edits: []Edit{{"internal/queue/nearest.go", "n.ahead, n.beyond = slices.Delete(n.ahead, 0, i+1), 0", "n.ahead, n.beyond = n.ahead[:0], 0"}},
	},
	{
		Name: "those beyond the nearest are forgotten", After: "a waiter that keeps the nearest only",
		Edits: []Edit{{"internal/queue/nearest.go", "n.beyond = i + 1", "n.beyond = 0"}},
		Test:  Test{".", "TestThoseBeyondTheNearestAreWaitedFor"},
	},
	{
		Name: "one that knows nobody any more is the first", After: "a waiter that keeps the nearest only",
		Edits: []Edit{{"internal/queue/handoff.go", "case t.unsure || t.beyond > 0:", "case t.unsure:"}},
		Test:  Test{".", "TestThoseBeyondTheNearestAreWaitedFor"},
	},
	{
		Name: "a note that names one beyond the nearest tells of all beyond", After: "the note's reader, who does not know how many are between",
		Edits: []Edit{{"internal/queue/note.go", "\tif named >= 0 && t.isTimely(dir.Stat) {\n", "\tif ours {\n\t\tt.beyond = 0\n\t}\n\tif named >= 0 && t.isTimely(dir.Stat) {\n"}},
		Test:  Test{".", "TestThoseBeyondTheNearestAreWaitedFor"},
	},
	{
		Name: "a listing leaves as many names as the last, which were of no use", After: "a loop of listings where many readers' writers let pass",
		Edits: []Edit{{"internal/queue/nearest.go", "n.window = min(2*n.window, math.MaxInt32)", "n.window = min(n.window, math.MaxInt32)"}},
		Test:  Test{"internal/queue", "TestAPlaceThatIsUsedUpKeepsMore"},
	},
	{
		Name: "the nearest that was met tells of the one that does not stand in the record", After: "a waiter that keeps what the lock-delay needs",
		Edits: []Edit{{"internal/queue/nearest.go", "\t\tif isUnrecorded(e) {\n\t\t\ti = j\n", "\t\tif isUnrecorded(e) {\n\t\t\ti = max(i, j)\n"}},
		Test:  Test{"internal/queue", "TestThoseMetTellTheUnrecorded"},
	},
	{
		Name: "a listing that is under way is taken by one that asks for it later", After: "single flight as caches do it",
		Edits: []Edit{{"internal/session/listing.go", "\t\treturn running.next\n", "\t\treturn running\n"}},
		Test:  Test{"internal/session", "TestAListingIsAskedForAfterTheCall"},
	},
	{
		Name: "everybody lists for itself", After: "our own first version: the time of a long queue's arrival was its length squared",
		Edits: []Edit{{"internal/session/listing.go", "running := f.running[key]; running != nil {", "running := f.running[key]; running != nil && running.next != nil {"}},
		Test:  Test{"internal/session", "TestAListingIsAskedForAfterTheCall"},
	},
	{
		Name: "long listings fill the wire", After: "heartbeats behind them come too late",
		Edits: []Edit{{"internal/session/listing.go", "\t\troom <- struct{}{}\n\t\tdefer func() { <-room }()\n", "\t\t_ = room\n"}},
		Test:  Test{"internal/session", "TestFewLongListingsAreUnderWay"},
	},
	{
		Name: "numbers tell the order of all", After: "a counter that has ended, and two nodes of one number",
		Edits: []Edit{{"internal/node/line.go", "return l.Entries[:from:from], known\n", "return l.Entries[:from:from], known || len(l.Entries) > 0\n"}},
		Test:  Test{"internal/node", "FuzzOrder"},
	},
	{
		Name: "an event that is withheld is waited for", After: "every client: a watch is used up also where its event may not be told",
		Edits:   []Edit{{"internal/session/watch.go", "\t\t\tif !comparing {\n", "\t\t\tif comparing {\n"}},
		Trouble: "blind", Faults: "^blind$",
	},
	{
		Name: "a try does not look again where Curator's writer has left", After: "a list in which the writer's reader is missing",
		Edits: []Edit{{"internal/queue/turn.go", "\tfor t.unsure {\n", "\tfor t == nil {\n"}},
		Test:  Test{".", "TestATryIsRefusedWhereCuratorsWriterBecomesAReader"},
	},
	{
		Name: "Curator's reader stands where its number is, though the counter has ended", After: "a place that is told by a number, or by the age of a node",
		Edits: []Edit{{"internal/queue/place.go", "\tt.replaceFormer(tied)\n", ""}},
		Test:  Test{".", "TestNobodyIsGrantedBesideCuratorsDowngradedReader"},
	},
	{
		Name: "a number that only counts is an epoch", After: "servers of another make",
		Edits: []Edit{{"internal/session/pending.go", "return s == g.Sess && IsClosed(g.Moved) && ", "return "}},
		Test:  Test{"internal/session", "TestAnEpochCountsAfterAReconnectOnly"},
	},
	{
		Name: "a waiter for permits has to know their new number", After: "our own first version: it agreed anew in each session",
		Edits: []Edit{{"internal/queue/permits.go", `		if !agreed {
`, `		if agreed = false; !agreed {
`}},
		Test: Test{".", "TestAWaiterWhoseSessionExpiresAfterAResizeQueuesAgain"},
	},
	{
		Name: "a node of ours that is leaving counts as another's", After: "our own first version: a permit cost a listing more now and then",
		Edits: []Edit{{"internal/queue/alone.go", "return !c.leaving.from(dir) && ", "return "}},
		Test:  Test{"internal/queue", "TestADirectoryThatANodeOfOursIsLeavingIsNotExpectedEmpty"},
	},
	{
		Name: "one that gives up leaves a note", After: "the note's one condition, where a holder stays",
		Edits: []Edit{{"internal/queue/contender.go", "return t.held && t.note != nil &&", "return t.note != nil &&"}},
		Test:  Test{".", "TestWhoGivesUpAfterAReleaseLeavesNoNote"},
	},
	{
		Name: "a note from before the listing is news", After: "half of what makes a note timely",
		Edits: []Edit{{"internal/queue/note.go", "return dir.Mzxid > t.listed && dir.Mzxid <= dir.Pzxid", "return dir.Mzxid <= dir.Pzxid"}},
		Test:  Test{".", "TestAForgedNoteGrantsNothing"},
	},
	{
		Name: "a note that was written by itself is believed", After: "the other half",
		Edits: []Edit{{"internal/queue/note.go", "return dir.Mzxid > t.listed && dir.Mzxid <= dir.Pzxid", "return dir.Mzxid > t.listed"}},
		Test:  Test{".", "TestAForgedNoteGrantsNothing"},
	},
	{
		Name: "a client that trusts nobody believes a note", After: "an option with two places to be asked at",
		Edits:   []Edit{{"internal/queue/note.go", "\tif t.c.untrusted {\n", "\tif t == nil {\n"}},
		Trouble: "forged", Faults: "forged|delete",
	},
	{
		Name: "the leader of a batch stands for all", After: "one node of several is looked for",
		Edits: []Edit{{"internal/queue/batch.go", "\t\tif !line.Has(x.Name) {\n", "\t\tif x == &t.member && !line.Has(x.Name) {\n"}},
		Test:  Test{".", "TestABatchOfWhichAListingShowsAPartIsNotGranted"},
	},
	{
		Name: "what was seen of a directory is known for hours", After: "a directory that is made anew has the same versions",
		Edits: []Edit{{"internal/queue/memory.go", "recentLife  = 10 * time.Second", "recentLife  = 10 * time.Hour"}},
		Test:  Test{".", "TestADirectoryThatWasMadeAnewKeepsItsData"},
	},
	{
		Name: "the first in line for permits does not hear that its place is gone", After: "two nodes, of which one is watched",
		Edits: []Edit{{"internal/queue/permits.go", "inside, stop := untilGone(ctx, &gate.OwnNode)", "inside, stop := session.Either(ctx, ctx)"}},
		Test:  Test{".", "TestTheFirstInLineForPermitsWhosePlaceIsGoneLetsOthersPass"},
	},
	{
		Name: "a lost create is looked for once", After: "most of them never run",
		Edits: []Edit{{"internal/session/pending.go", "if looks++; looks < 2 || err != nil", "if looks++; err != nil"}},
		Test:  Test{".", "TestALostCreateIsLookedForOnceMore"},
	},
	{
		Name: "a lost create is forgotten a session timeout after its session", After: "a new leader gives every session a whole timeout",
		Edits: []Edit{{"internal/session/pending.go", "> 2*g.Sess.Lease.Term()", "> g.Sess.Lease.Term()"}},
		Test:  Test{".", "TestALostCreateIsLookedForUntilNoServerHasItsSession"},
	},
	{
		Name: "a try for permits passes one that is just asking", After: "who asks has no permit yet",
		Edits: []Edit{{"internal/queue/permits.go", "for _, sub := range []string{node.LeasesDir, node.GateDir} {", "for _, sub := range []string{node.LeasesDir} {"}},
		Test:  Test{".", "TestATryForPermitsPassesNobodyWhoIsJustAsking"},
	},
	{
		Name: "pings renew the lease", After: "every client that trusts its connection's state",
		Edits: []Edit{{"internal/lease/lease.go", "\tr.touch(sent, got)\n\tl.rtt", "\tl.prove(sent)\n\tr.touch(sent, got)\n\tl.rtt"}},
		Test:  Test{".", "TestEveryHoldEndsBeforeAnyoneElseHolds"},
	},
	{
		Name: "a server that takes a session back vouches for it", After: "a leader that was cut off takes back its clients' sessions, on real servers",
		Edits: []Edit{{"internal/lease/lease.go", "\tl.run = &Run{l: l}\n", "\tl.prove(sent)\n\tl.run = &Run{l: l}\n"}},
		Test:  Test{"internal/lease", "TestBeingTakenBackCountsFromWhenTheLeaderHasAnsweredOnThatConnection"},
	},
	{
		Name: "a run counts across connections", After: "design: a deposed leader keeps a run without a gap while the next one lets the session run out",
		Edits: []Edit{{"internal/lease/lease.go", "\tl.run = &Run{l: l}\n", "\told := l.run\n\tl.run = &Run{l: l}\n\tif old != nil {\n\t\tl.run.heard, l.run.since = old.heard, old.since\n\t}\n"}},
		Test:  Test{"internal/lease", "TestARunExtendsNoProofAcrossConnections"},
	},
	{
		Name: "a session that was taken back was heard by the answer to that", After: "design: the answer can be that to an earlier request",
		Edits: []Edit{{"internal/lease/lease.go", "\tl.run = &Run{l: l}\n", "\tl.run = &Run{l: l, heard: sent, since: got}\n"}},
		Test:  Test{"internal/lease", "TestATakeBackIsNotHeardByItsOwnAnswer"},
	},
	{
		Name: "a gap begins no other run", After: "design: the leader may have taken the session to end it",
		Edits: []Edit{{"internal/lease/lease.go", "if r.l.leftOf(r.heard, got) <= 0 {", "if r.since.Mono.IsZero() {"}},
		Test:  Test{"internal/lease", "TestAfterAGapATransactionProvesOnlyWhenTheRunHasSettled"},
	},
	{
		Name: "a run has settled when the transaction is answered", After: "sent for answered",
		Edits: []Edit{{"internal/lease/lease.go", "\t\tr.conclude(sent)\n", "\t\tr.conclude(got)\n"}},
		Test:  Test{"internal/lease", "TestAfterAGapATransactionProvesOnlyWhenTheRunHasSettled"},
	},
	{
		Name: "what an earlier connection answers late counts", After: "design: the steps belong to one connection",
		Edits: []Edit{{"internal/lease/lease.go", "\tif l.run != r {", "\tif l.run == nil {"}},
		Test:  Test{"internal/lease", "TestEveryStepOfAProofIsNeeded"},
	},
	{
		Name: "only the first of all is next in line", After: "a reader behind readers did not watch its own node",
		Edits: []Edit{{"internal/queue/handoff.go", "if others == 0 {\n\t\tt.watchSelf(0)", "if others == 0 && t.seen == 1 {\n\t\tt.watchSelf(0)"}},
		Test:  Test{".", "TestAReaderThatLostItsNodeIsGrantedNothing"},
	},
	{
		Name: "the lease counts from the receipt of an answer", After: "redsync, redisson and others",
		Edits: []Edit{{"internal/lease/lease.go", "\t\tl.proven = touch\n", "\t\tl.proven = l.now()\n"}},
		Seeds: 480,
		Test:  Test{"internal/lease", "TestAProofDatesFromTheOlderOfTwoTouches"},
	},
	{
		Name: "what was answered has reached the leader with the next write", After: "our own first argument",
		Edits: []Edit{{"internal/lease/lease.go", "\tif ok && (r.joins()", "\tif t, answered := r.pairs.peek(sent.Mono.Add(-r.l.halfTick())); answered {\n\t\ttouch, ok = t, true\n\t}\n\tif ok && (r.joins()"}},
		Test:  Test{".", "TestALatePingLeavesOneHolder"},
	},
	{
		Name: "one sync proves that the leader has pinged", After: "a leader that paused",
		Edits: []Edit{{"internal/lease/lease.go", "r.synced.add(touch, got.Mono, 1)", "r.upstream.add(touch, got.Mono, 1)"}},
		Test:  Test{"internal/lease", "TestEveryStepOfAProofIsNeeded"},
	},
	{
		Name: "the leader's ping is never late", After: "design: half a tick is needed",
		Edits: []Edit{{"internal/lease/lease.go", "r.pairs.newest(sent.Mono.Add(-r.l.lag()))", "r.pairs.newest(sent.Mono)"}},
		Test:  Test{"internal/lease", "TestEveryStepOfAProofIsNeeded"},
	},
	{
		Name: "a touch is never lost", After: "LearnerSessionTracker swaps its table after it was serialised",
		Edits: []Edit{{"internal/lease/lease.go", "r.pairs.add(r.last, got.Mono, r.l.grain())", "r.pairs.add(sent, got.Mono, r.l.grain())"}},
		Test:  Test{"internal/lease", "TestAProofDatesFromTheOlderOfTwoTouches"},
	},
	{
		Name: "a lease that ran out revives at once", After: "the expirer takes a whole bucket",
		Edits: []Edit{{"internal/lease/lease.go", "r.joins() || !r.settled().After(sent.Mono)", "r.joins() || !r.since.Mono.After(sent.Mono)"}},
		Test:  Test{"internal/lease", "TestAfterAGapATransactionProvesOnlyWhenTheRunHasSettled"},
	},
	{
		Name: "each touch has a heartbeat of its own", After: "our own first version: sixty-five reads in a session of one tick",
		Edits: []Edit{{"internal/lease/rhythm.go", "\tif l.isShort() {\n\t\treturn l.coarse()\n\t}\n", ""}},
		Test:  Test{".", "TestAShortSessionHasFewHeartbeats"},
	},
	{
		Name: "a longer timeout stretches old evidence", After: "our own first version",
		Edits: []Edit{{"internal/lease/lease.go", "l.timeout = min(l.timeout, timeout)", "l.timeout = timeout"}},
		Focus: "mutex", Trouble: "minimums", Faults: "^elect|partition",
	},
	{
		Name: "the lease lasts half as long again", After: "Curator's LOST after 4/3 of the timeout",
		Edits: []Edit{{"internal/lease/lease.go", "(1-maxDrift)) - now", "(1+10*maxDrift)) - now"}},
	},
	{
		Name: "no timer ends a hold", After: "go-zookeeper, kazoo, Curator: only an event does",
		Edits: []Edit{
			{"holding.go", "timer.Reset(min(left, sess.Lease.Glance()))", "timer.Reset(1000 * time.Hour)"},
		},
	},
	{
		Name: "nothing keeps the lease fresh", After: "heartbeats forgotten",
		Edits: []Edit{{"internal/session/heartbeat.go", "\treturn b.s.Lease.NextBeat(b.last, b.touched)", "\treturn now.Add(never)"}},
	},
	{
		Name: "a silent server is waited for as long as the client library does", After: "two thirds of the timeout, when short leases have ended",
		Edits: []Edit{{"internal/session/heartbeat.go", `	b.h.requests.Link.Abandon(b.s)
`, ""}},
		Test: Test{".", "TestAFollowerThatFailsCostsNoHold"},
	},
	{
		Name: "what has taken long takes no longer the next time", After: "our own: where disks are slow, each server was left before it could answer",
		Edits: []Edit{{"internal/lease/rhythm.go", "max(l.timeout/5, 2*l.slow)", "l.timeout/5"}},
		Test:  Test{".", "TestServersThatAreAllSlowKeepNobodyWaitingForEver"},
	},
	{
		Name: "a server is silent until a whole answer has come", After: "our own: a long listing takes its time",
		Edits: []Edit{{"internal/conn/tap.go", "\t\ti.hear()\n", ""}},
		Test:  Test{"internal/conn", "TestAServerThatAnswersUsIsNotSilentForTheClientLibrary"},
	},
	{
		Name: "the client library's deadline counts its own answers", After: "our own, once most answers passed it by",
		Edits: []Edit{{"internal/conn/tap.go", "if i.bound > 0 {", "if i.bound < 0 {"}},
		Test:  Test{"internal/conn", "TestAServerThatAnswersUsIsNotSilentForTheClientLibrary"},
	},
	{
		Name: "a server that has not been asked yet is asked nothing", After: "our own: it was left a heartbeat later than it could be",
		Edits: []Edit{{"internal/session/heartbeat.go", "\t\treturn patience // a heartbeat", "\t\treturn never // a heartbeat"}},
		Test:  Test{".", "TestAFollowerThatFailsCostsNoHold"},
	},
	{
		Name: "a server that fails has as long as the lease", After: "our own: a third of the timeout left a command no time to end",
		Edits: []Edit{{"internal/lease/rhythm.go", "max(l.timeout/5, 2*l.slow)", "max(l.timeout/3, 2*l.slow)"}},
		Test:  Test{".", "TestAFollowerThatFailsCostsNoHold"},
	},
	{
		Name: "only a heartbeat asks the quorum", After: "our own: who becomes the next in line waited long without asking",
		Edits: []Edit{{"internal/queue/handoff.go", `	t.watchSelf(0)
	t.c.Keep(&t.OwnNode)
`, `	t.watchSelf(0)
`}, {"internal/queue/handoff.go", `		t.c.Keep(&t.OwnNode) // or the grant would wait for the quorum
`, ""}, {"internal/queue/place.go", "t.Sess.Lease.IsAmple; !isEnough()", "t.Sess.Lease.Fresh; !isEnough()"}},
		Test: Test{".", "TestAHoldThatNobodyExpectedHasFourTenthsOfTheTimeoutLeft"},
	},
	{
		Name: "the next in line asks no quorum while it waits", After: "our own: its grant waited for an answer",
		Edits: []Edit{{"internal/queue/handoff.go", `		t.c.Keep(&t.OwnNode) // or the grant would wait for the quorum
`, ""}},
		Test: Test{".", "TestEveryHandOffTakesOneRoundTrip"},
	},
	{
		Name: "who becomes the next in line asks the quorum later", After: "our own: its grant waited for an answer",
		Edits: []Edit{{"internal/queue/handoff.go", `	t.watchSelf(0)
	t.c.Keep(&t.OwnNode)
`, `	t.watchSelf(0)
`}},
		Test: Test{".", "TestEveryHandOffTakesOneRoundTrip"},
	},
	{
		Name: "a grant needs no fresh lease", After: "etcd's lock returned without a look at its own lease",
		Edits: []Edit{{"internal/queue/place.go", "for isEnough := t.Sess.Lease.IsAmple; !isEnough(); isEnough = t.Sess.Lease.Fresh {", "for isEnough := t.Sess.Lease.IsAmple; !isEnough() && t.Sess.IsOver(); {"}, {"internal/queue/place.go", "return !t.isUnseen() && t.Sess.Lease.Fresh() && ", "return !t.isUnseen() && "}},
		Test:  Test{".", "TestAGrantOnStaleEvidenceIsConfirmedByTheQuorum"},
	},
	{
		Name: "holders do not watch their own node", After: "Curator, kazoo, go-zookeeper",
		Edits: []Edit{{"internal/queue/selfwatch.go", `func (g *selfWatch) watchOver() {
	var p session.Pace
`, `func (g *selfWatch) watchOver() {
	standing := new(session.NodeWatch)
	standing.Stat = new(zk.Stat)
	g.show(standing)
	var p session.Pace
	if true {
		return
	}
`}},
	},
	{
		Name: "the clean-up dies with the caller's context", After: "etcd, vitess, CURATOR-45",
		Edits: []Edit{{"internal/queue/turn.go", "\toutcomes := []<-chan error{c.remove(t.contender)}\n", "\tvar outcomes []<-chan error\n\tif ctx.Err() == nil {\n\t\toutcomes = append(outcomes, c.remove(t.contender))\n\t}\n"}},
	},
	{
		Name: "a failed delete is not repeated", After: "go-zookeeper Lock after an error, CURATOR-315",
		Edits: []Edit{{"internal/queue/cleanup.go", "case outcome.IsRefusal(err) || ctx.Err() != nil:", "default:"}},
	},
	{
		Name: "a try leaves its node behind", After: "kazoo #732",
		Edits: []Edit{{"internal/queue/turn.go", "\toutcomes := []<-chan error{c.remove(t.contender)}\n", "\tvar outcomes []<-chan error\n\tif !errors.Is(err, outcome.ErrLocked) {\n\t\toutcomes = append(outcomes, c.remove(t.contender))\n\t}\n"}},
	},
	{
		Name: "whose session is over has no node", After: "the old session may live on where servers do not restore it",
		Edits: []Edit{{"internal/queue/cleanup.go", "case t.creation == nil && t.Sess.HasExpired():", "case t.Sess != nil && t.Sess.IsOver():"}},
		Seeds: 320,
	},
	{
		Name: "a parent that vanished ends the acquire", After: "CURATOR-724, kazoo #563",
		Edits: []Edit{{"internal/queue/place.go", "err = t.c.MakeDir(ctx, s, t.Dir, t.recipe.depth())", "err = a.err"}},
	},
	{
		Name: "who lost its place does not queue again", After: "CURATOR-518, twitter-commons #20",
		Edits: []Edit{{"internal/queue/turn.go", "if ctx.Err() != nil || !errors.Is(err, outcome.ErrSessionOver) && !errors.Is(err, outcome.ErrGone) {", "if ctx.Err() != nil || !errors.Is(err, outcome.ErrGone) {"}},
	},
	{
		Name: "who lost its node does not queue again", After: "an operator's delete ends the acquire",
		Edits: []Edit{{"internal/queue/turn.go", "if ctx.Err() != nil || !errors.Is(err, outcome.ErrSessionOver) && !errors.Is(err, outcome.ErrGone) {", "if ctx.Err() != nil || !errors.Is(err, outcome.ErrSessionOver) {"}},
	},
	{
		Name: "a waiter does not notice the end of its session", After: "kazoo #282, etcd #19597",
		Edits: []Edit{
			{"internal/session/watch.go", "\t\tcase <-s.Over():\n\t\tcase", "\t\tcase"},
			{"internal/session/nodewatch.go", `	case w.key.sess.IsOver():
		return 0, outcome.ErrSessionOver
	case ctx`, `	case ctx`},
			{"internal/session/nodewatch.go", `	case <-s.Over():
		return outcome.ErrSessionOver
`, ""},
		},
		Seeds: 480,
	},
	{
		Name: "the token is the sequence number", After: "it starts anew with the directory",
		Edits: []Edit{{"internal/queue/contender.go", "t.Name, t.czxid = node.BaseName(path), czxid", "own, _ := node.ParseEntry(node.BaseName(path))\n\t\tt.Name, t.czxid = own.Name, int64(own.Seq)+1"}},
	},
	{
		Name: "the directory's last change is everybody's token", After: "those in the middle of the queue are older",
		Edits: []Edit{{"internal/queue/place.go", "t.listed, t.looked = l.Stat.Mzxid, l.At\n", "t.listed, t.looked, t.czxid = l.Stat.Mzxid, l.At, l.Stat.Pzxid\n"}},
	},
	{
		Name: "a transaction goes without its guard", After: "a stopped process that wakes up",
		Edits: []Edit{{"hold.go", "guard := h.Guard()\n", "guard := h.Guard()[:0]\n"}},
	},
	{
		Name: "the end of a client reaches no waiter", After: "it listens to its caller and to its watch only",
		Edits: []Edit{{"internal/session/watch.go", "\t\tcase <-t.requests.Life.Done():\n", "\t\tcase <-t.requests.Afterlife.Done():\n"}},
		Test:  Test{".", "TestCloseEndsEveryWaitAtOnce"},
	},
	{
		Name: "the end of a client waits until watches can be set anew", After: "which it does not while no server takes its credentials",
		Edits: []Edit{{"internal/session/watch.go", "t.requests.Ready(t.requests.Life, s)", "t.requests.Ready(t.requests.Afterlife, s)"}},
		Test:  Test{".", "TestCloseEndsEveryWaitAtOnce"},
	},
	{
		Name: "a call that has asked nobody goes on in a client that has ended", After: "its two contexts are joined by nobody",
		Edits: []Edit{{"internal/session/wait.go", "return c.Context.Done(), c.life.Done()", "return c.Context.Done(), nil"}},
		Test:  Test{".", "TestCloseEndsEveryWaitAtOnce"},
	},
	{
		Name: "every call joins its contexts", After: "half a kilobyte of each waiter",
		Edits: []Edit{{"internal/session/wait.go", "return c.Context.Done(), c.life.Done()", "return c.Done(), nil"}},
		Test:  Test{".", "TestAWaiterTakesTwoKilobytes"},
	},
	{
		Name: "a connection keeps the room of its longest listing", After: "it is as long as the queue",
		Edits: []Edit{{"internal/frames/reader.go", "cap(r.buf) > short", "cap(r.buf) > 16*chunk"}},
		Test:  Test{".", "TestAWaiterTakesTwoKilobytes"},
	},
	{
		Name: "a waiter stays away from the queue when its node is gone", After: "only those who are next look at their nodes, so the others are told by nobody",
		Edits: []Edit{{"internal/queue/member.go", "\treturn m.Gone.Done()\n", "\treturn nil\n"}},
		Test:  Test{".", "TestAWaiterWhoseNodeWasDeletedQueuesAgainAtOnce"},
	},
	{
		Name: "the acquirer's deadline ends the hold", After: "vitess #11794, etcd",
		Edits: []Edit{{"recipe.go", "h := c.hold(ctx, w.recipe, w.path, granted)\n", "h := c.hold(ctx, w.recipe, w.path, granted)\n\tcontext.AfterFunc(ctx, func() { h.of().cancel(context.Cause(ctx)) })\n"}},
	},
	{
		Name: "an exists watch on what is gone", After: "go-zookeeper registers it for good",
		Edits: []Edit{{"internal/session/watch.go", `request, read := w.key.request()
`, `request, read := w.key.request()
	if w.key.children {
		missing := frames.Exists(w.key.path + "/_c_missing")
		missing[len(missing)-1] = 1
		begin(t.requests, w.key.sess, missing, readStat, nil)
	}
`}},
		Focus: "election",
	},
	{
		Name: "the outermost hold ends with an inner level", After: "etcd: one Unlock frees two mutexes",
		Edits: []Edit{{"holding.go", "if g.levels > 0 && !all {", "if g.levels > 100 && !all {"}},
		Focus: "reentrant",
	},
	{
		Name: "who enters a lost lock again is let in", After: "Curator counts up whatever has happened",
		Edits: []Edit{{"reentrant.go", "case cause != nil:", "case cause == context.Canceled:"}},
		Test:  Test{".", "TestEnteringALostHoldFails"},
	},
	{
		Name: "entering again queues again", After: "a lock that is not reentrant",
		Edits: []Edit{{"reentrant.go", "return h == nil && err == nil\n", "h = nil\n\t\treturn err == nil\n"}},
		Focus: "reentrant",
	},
	{
		Name: "a leader resigns while its function is at work", After: "client-go's ReleaseOnCancel",
		Edits: []Edit{{"failstop.go", "\terr := fn(inside)\n", "\tcontext.AfterFunc(inside, func() { h.Unlock(context.Background()) })\n\terr := fn(inside)\n"}},
		Focus: "election",
	},
	{
		Name: "readers wait for nobody", After: "a reader overtakes the writer that waits",
		Edits: []Edit{{"internal/node/rules.go", "if !ahead[i].Shared {", "if !ahead[i].Shared && i == 0 {"}},
		Focus: "rw",
	},
	{
		Name: "readers wait for readers", After: "no sharing: kazoo #649 waited for the wrong one",
		Edits: []Edit{{"internal/node/rules.go", "if !ahead[i].Shared {", "if len(ahead) > 0 {"}},
		Focus: "rw",
	},
	{
		Name: "a writer waits for writers only", After: "CURATOR-621: a writer beside a reader",
		Edits: []Edit{{"rwmutex.go", "Infix: node.WriterInfix, Rule: node.AfterAll}", "Infix: node.WriterInfix, Rule: node.AfterExclusive}"}},
		Focus: "rw",
	},
	{
		Name: "readers do not notice a downgrade", After: "they wait until the writer is gone",
		Edits: []Edit{{"rwmutex.go", "Rule: node.AfterExclusive, Shared: true, Passes: node.IsDowngraded}", "Rule: node.AfterExclusive, Shared: true}"}},
		Test:  Test{".", "TestReadersBesideADowngradedWriterDoNotWaitForTheLockDelay"},
	},
	{
		Name: "a downgrade leaves its place", After: "Curator before CURATOR-621",
		Edits: []Edit{{"rwmutex.go", `	o.Shared = true
	return h.rewrite(ctx, o.Encode())`, `	o.Shared = true
	return h.of().c.Delete(ctx, h.of().nodes[0].Sess, h.of().nodes[0].Path(), -1)`}},
		Focus: "rw",
	},
	{
		Name: "a downgrade says done when it is asked for", After: "what needs no answer is not waited for",
		Edits: []Edit{{"rwmutex.go", `	o.Shared = true
	return h.rewrite(ctx, o.Encode())`, `	o.Shared = true
	go func() { _ = h.rewrite(ctx, o.Encode()) }()
	return nil`}},
		Focus: "rw",
	},
	{
		Name: "a touch is judged by when its request was sent", After: "the clock stands while an answer is on its way",
		Edits: []Edit{{"internal/lease/lease.go", "if r.l.leftOf(r.heard, got) <= 0 {", "if r.l.leftOf(r.heard, sent) <= 0 {"}},
		Test:  Test{"internal/lease", "TestATouchWhoseAnswerComesWhenTheLastRanOutBeginsARun"},
	},
	{
		Name: "a tick that is not known is none", After: "half of zero",
		Edits: []Edit{{"internal/lease/lease.go", "if l.tick > 0 {", "if l.tick >= 0 {"}},
		Test:  Test{"internal/lease", "TestATickThatIsNotKnownIsTakenForHalfTheTimeout"},
	},
	{
		Name: "one permit too many", After: "off by one in the limit",
		Edits: []Edit{{"internal/queue/permits.go", "return made.seen+k <= limit, err", "return made.seen+k <= limit+1, err"}},
		Focus: "semaphore",
	},
	{
		Name: "permits of one acquire are made one after the other", After: "Curator's semaphore, our own first version",
		Edits: []Edit{
			{"internal/queue/batch.go", "\t\tops = append(ops, t.creationOf(x, data))\n\t}\n\tcreated :=", `		if x == &t.member {
			ops = append(ops, t.creationOf(x, data))
			continue
		}
		path, _ := t.c.Create(t.c.Life, t.Sess, t.nameless(x), data, zk.FlagEphemeralSequential, t.c.ACL)
		x.Name = node.BaseName(path)
	}
	created :=`},
			{"internal/queue/batch.go", "\t\tmembers := t.members()\n", "\t\tmembers := []*member{&t.member}\n"},
		},
		Test: Test{".", "TestPermitsAreTakenAndGivenUpTogether"},
	},
	{
		Name: "of several permits one is given up", After: "each node has an owner until it is gone (C7)",
		Edits: []Edit{{"internal/queue/batch.go", "left := slices.DeleteFunc(t.members(), func", "left := slices.DeleteFunc([]*member{&t.member}, func"}},
		Focus: "semaphore",
	},
	{
		Name: "of several permits that were given up all but one are asked for on and on", After: "our own first version: a batch was removed node by node, and the removal of all but its leader's was forgotten",
		Edits: []Edit{{"internal/queue/cleanup.go", "defer t.unkeep()", "defer c.Unkeep(&t.OwnNode)"}},
		Test:  Test{".", "TestPermitsThatAreGivenUpAreNotAskedForAnyMore"},
	},
	{
		Name: "permits of an acquire that failed stay", After: "CURATOR-315, CURATOR-335",
		Edits: []Edit{{"internal/queue/turn.go", "\t\tc.discard(ctx, err, t)\n\t\tif ctx.Err() != nil ||", "\t\tif t == nil || !t.recipe.limited {\n\t\t\tc.discard(ctx, err, t)\n\t\t}\n\t\tif ctx.Err() != nil ||"}},
		Focus: "semaphore",
	},
	{
		Name: "the place among those who ask stays", After: "CURATOR-462",
		Edits: []Edit{{"internal/queue/permits.go", "defer s.Engine.remove(gate.contender)", "defer s.Engine.Unkeep(&gate.OwnNode)"}},
		Focus: "semaphore",
	},
	{
		Name: "a new number of permits wakes nobody", After: "the directory's watch does not see its data",
		Edits: []Edit{
			{"internal/queue/permits.go", "resized := dir", "_ = dir"},
			{"internal/queue/permits.go", `				&zk.CreateRequest{Path: resized, Acl: s.Engine.ACL},
				&zk.DeleteRequest{Path: resized, Version: -1})`, ")"},
		},
		Focus: "semaphore",
	},
	{
		Name: "who waits keeps to the number of permits that it said", After: "Curator's semaphore believes each caller",
		Edits: []Edit{{"internal/queue/permits.go", "session.Again(ctx, func() (int, error) { return s.limitThat(ctx, made.Sess, enough) })", "s.Total, enough(s.Total)"}},
		Focus: "semaphore",
	},
	{
		Name: "a create that counts others is granted all the same", After: "the one condition of an acquire without a listing",
		Edits: []Edit{{"internal/queue/place.go", "counted.dir == nil || counted.dir.NumChildren != 1 {", "counted.dir == nil {"}},
	},
	{
		Name: "a look at our own node does not grow old", After: "our own first version: a slow read came between",
		Edits: []Edit{{"internal/queue/place.go", "return time.Since(t.looked) > aloneGrace", "return time.Since(t.looked) > aloneGrace && t.c == nil"}},
		Test:  Test{".", "TestPermitsThatVanishBeforeTheGrantAreNotGranted"},
	},
	{
		Name: "a number of permits is believed that a lagging server tells", After: "our own first version",
		Edits: []Edit{{"internal/queue/permits.go", "session.UpToDate(ctx, s.Engine.Requests, sess, func() (int, error) { return s.limit(ctx, sess) })", "s.limit(ctx, sess)"}},
		Test:  Test{".", "TestALaggingServerMakesNobodyDisagreeAboutTheLimit"},
	},
	{
		Name: "permits are granted before the place among those who ask is looked at", After: "our own first version: the look waited for a reconnect, and the permits were gone by then",
		Edits: []Edit{
			{"internal/queue/permits.go", `		err = made.grant(ctx, gate)
`, `		if err = made.grant(ctx, nil); err == nil && gate != nil {
			err = gate.isThere(ctx)
		}
`},
		},
		Test: Test{".", "TestWhatWasMadeSureOfFirstIsLookedAtAgain"},
	},
	{
		Name: "one of several nodes may go while another is being made sure of", After: "our own first version: permits were looked at one after the other",
		Edits: []Edit{{"internal/queue/place.go", "if t.standsWhole() && (gate == nil || gate.stands()) {", "if t.Sess != nil {"}},
		Test:  Test{".", "TestWhatWasMadeSureOfFirstIsLookedAtAgain"},
	},
	{
		Name: "several locks are taken in the caller's order", After: "Curator's multi lock",
		Edits: []Edit{{"multi.go", "ordered = slices.SortedFunc(slices.Values(lockers), comparePaths)", "ordered = slices.Clone(lockers)"}},
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
		Edits: []Edit{{"internal/queue/nearest.go", "\tn.noticeFormer(n.ahead[i])\n", ""}},
		Test:  Test{".", "TestNobodyIsGrantedBesideCuratorsDowngradedReader"},
	},
	{
		Name: "who was ahead has gone, so we were there", After: "our own first version: two goroutines saw the two events",
		Edits: []Edit{
			{"internal/queue/selfwatch.go", "quiet, renewed = w.IsQuiet(); quiet && !n.IsGone()", "quiet, renewed = w.IsQuiet(); (quiet || w != nil) && !n.IsGone()"},
			{"internal/queue/selfwatch.go", "	return quiet\n", "	return quiet || !g.node.IsGone()\n"},
		},
		Test: Test{".", "TestAWaiterWhoseOwnNodeWasDeletedFirstIsNotGranted"},
	},
	{
		Name: "a sync is the quorum's word", After: "our own first version: a leader that was replaced answers it",
		Edits: []Edit{{"internal/session/request.go", "if err := r.askQuorum(ctx, s); err != nil {", `if err := r.Sync(ctx, s, "/"); err != nil {`}},
		Seeds: 480,
		Test:  Test{".", "TestALookAtTheQueueIsTheQuorums"},
	},
	{
		Name: "what is not there now was never made", After: "our own first version: the create was still on its way to the leader",
		Edits: []Edit{{"internal/queue/create.go", `t.recognise(genuine)
	if t.Name == "" {`, `t.recognise(genuine)
	if t.Name == "" && t.c == nil {`}},
		Seeds: 480,
		Test:  Test{".", "TestACreateThatRunsLateIsRemovedWhenItAppears"},
	},
	{
		Name: "one heartbeat waits for the answer to the other", After: "where answers are slow, each proves too late what the last has touched",
		Edits: []Edit{{"internal/session/heartbeat.go", "const maxBeats = 4", "const maxBeats = 1"}},
		Test:  Test{".", "TestAHoldFarFromItsServersIsCertainAllTheTime"},
	},
	{
		Name: "what the end of a hold cuts off was not done", After: "our own first version: the transaction had committed",
		Edits: []Edit{{"hold.go", "\t\tif errors.Is(err, end) {\n\t\t\treturn fmt.Errorf(\"%w: %v\", ErrUncertain, err)", "\t\tif errors.Is(err, end) {\n\t\t\treturn err"}},
		Test:  Test{".", "TestAGuardedTransactionSaysWhatWasDone"},
	},
	{
		Name: "of many slots the last in time are forgotten", After: "marks kept in the order of marking: the newest was marked first",
		Edits: []Edit{{"slots/marks.go", "slices.SortFunc(p.Done, func(a, b mark) int { return strings.Compare(a.Slot, b.Slot) })", "_ = strings.Compare"}},
		Test:  Test{".", "TestASlotThatIsForgottenIsNotDone"},
	},
	{
		Name: "a mark is settled before its hold's node is gone", After: "a transaction stays in a server that the client has left",
		Edits: []Edit{{"slots/slots.go", "if errors.Is(err, zk.ErrNoNode) {\n\t\t\tfound, err", "if err == nil || errors.Is(err, zk.ErrNoNode) {\n\t\t\tfound, err"}},
		Test:  Test{".", "TestAMarkWaitsUntilItsHoldsNodeIsGone"},
	},
	{
		Name: "a host whose clock is ahead marks the slots of others", After: "our own first version: no run for fifty minutes",
		Edits: []Edit{{"slots/slots.go", "case err != nil || s.cut.period == 0 || s.name <= s.latest(n):", "case err != nil || s.cut.period >= 0:"}},
		Test:  Test{".", "TestAClockThatIsAheadSilencesNobody"},
	},
	{
		Name: "marks of the future count as the last sixteen", After: "the servers' clock was ahead, too",
		Edits: []Edit{{"slots/marks.go", "return d.Slot > latest })", "return d.Slot > latest && false })"}},
		Test:  Test{".", "TestMarksOfServersWhoseClockWasAheadSilenceNobody"},
	},
	{
		Name: "a slot that is forgotten counts as done", After: "our own first version: nobody was told that it was not done",
		Edits: []Edit{{"slots/marks.go", "return mark{}, ErrForgotten", "return mark{}, ErrDone"}},
		Test:  Test{".", "TestASlotThatIsForgottenIsNotDone"},
	},
	{
		Name: "finished work is not marked when its caller has gone", After: "our own first version: the next host did it again",
		Edits: []Edit{{"slots/slots.go", "context.WithTimeout(context.WithoutCancel(ctx), 2*", "context.WithTimeout(ctx, 2*"}},
		Test:  Test{".", "TestFinishedWorkIsMarkedThoughItsContextHasEnded"},
	},
	{
		Name: "a day has 24 hours", After: "our own first version: a run was skipped when the clocks changed",
		Edits: []Edit{{"slots/marks.go", "if c.period <= time.Hour {", "if c.period > 0 {"}},
		Test:  Test{".", "TestADayIsOneOfTheCalendar"},
	},
	{
		Name: "holders are evicted before those that wait", After: "our own first version: each next one was granted for an instant",
		Edits: []Edit{{"operate/evict.go", "return append(waiting, holding...)", "return append(holding, waiting...)"}},
		Test:  Test{".", "TestEvictingEverybodyGrantsNobodyAndLeavesNobody"},
	},
	{
		Name: "an evicted waiter queues again", After: "our own first version",
		Edits: []Edit{{"internal/queue/turn.go", "slices.Contains(b.Evicted, x.guid) {", "slices.Contains(b.Evicted, x.guid) && t.c == nil {"}},
		Test:  Test{".", "TestAnEvictedWaiterIsToldHoweverLongItWaits"},
	},
	{
		Name: "Close of a client counts as a loss for FailStop", After: "the two ends of a hold are not told apart",
		Edits: []Edit{{"failstop.go", "if !errors.Is(why, ErrLost) {", "if !errors.Is(why, ErrLost) && h.of().c.FailStop == nil {"}},
		Test:  Test{".", "TestASuddenLossLeavesAFunctionTimeToReturn"},
	},
	{
		Name: "a function that returns at once is too late for FailStop", After: "our own first version: an eviction ended its process",
		Edits: []Edit{{"failstop.go", "time.NewTimer(grace - time.Since(told))", "time.NewTimer(-time.Since(told))"}},
		Test:  Test{".", "TestASuddenLossLeavesAFunctionTimeToReturn"},
	},
	{
		Name: "one that holds without knowing it is evicted without a mark", After: "our own first version: it queued again and did its work",
		Edits: []Edit{{"operate/evict.go", `if guid == "" || !c.MayNote`, `if who.Holds || guid == "" || !c.MayNote`}},
		Test:  Test{".", "TestOneThatHoldsWithoutKnowingItIsToldThatItWasEvicted"},
	},
	{
		Name: "one that was stopped looks for no mark when its session is over", After: "our own first version: it queued again and did its work",
		Edits: []Edit{{"internal/queue/turn.go", "!errors.Is(err, outcome.ErrGone) && !errors.Is(err, outcome.ErrSessionOver) || t.guid", "!errors.Is(err, outcome.ErrGone) || t.guid"}},
		Test:  Test{".", "TestOneThatHoldsWithoutKnowingItIsToldThatItWasEvicted"},
	},
	{
		Name: "a node with children cannot be evicted", After: "our own first version: who may create can block a lock for good",
		Edits: []Edit{{"operate/evict.go", `if errors.Is(err, zk.ErrNotEmpty) {
			_, err = session.Persist`, `if errors.Is(err, zk.ErrNotEmpty) && c.Engine == nil {
			_, err = session.Persist`}},
		Test: Test{".", "TestANodeWithChildrenCanBeEvicted"},
	},
	{
		Name: "permits that left with an evicted one are not held", After: "our own first version, where the operator is slow",
		Edits: []Edit{{"operate/evict.go", "errors.Is(err, zklock.ErrNotHeld) && evicted[group]", "errors.Is(err, zklock.ErrNotHeld) && evicted[group] && c.Engine == nil"}},
		Test:  Test{".", "TestASlowOperatorEvictsAllPermits"},
	},
	{
		Name: "what no session ends is evicted for any session", After: "our own first version: session 0 was anybody's",
		Edits: []Edit{{"operate/evict.go", "err == nil && n.Stat.EphemeralOwner != who.Session {", "err == nil && (who.Session == 0 || n.Stat.EphemeralOwner != who.Session) {"}},
		Test:  Test{".", "TestWhatNoSessionEndsCanBeEvicted"},
	},
	{
		Name: "a function that has returned waits for a server", After: "our own first version",
		Edits: []Edit{{"holding.go", "\t\t\treturn errUnanswered\n", "\t\t\tleft = time.Second\n"}},
		Test:  Test{".", "TestDoReturnsThoughThereIsNoServer"},
	},
	{
		Name: "a try waits for another connection", After: "our own first version: the lost create was looked for",
		Edits: []Edit{{"internal/queue/turn.go", "if c.Link.AwaitLoss(inside, s, changed, again) {", "if c.Link.AwaitLoss(inside, s, changed, again) && s == nil {"}},
		Test:  Test{".", "TestAnAttemptAnswersWhenItsConnectionIsLost"},
	},
	{
		Name: "containers are asked for however often servers hang up", After: "our own first version",
		Edits: []Edit{{"internal/session/directories.go", "d.hangUps, d.hungUp = d.hangUps+1, on", "d.hungUp = on"}},
		Test:  Test{".", "TestServersThatHangUpOnUnknownRequestsAreStood"},
	},
	{
		Name: "a connection that carried a session needs no pause", After: "our own first version: 500 connections in no time",
		Edits: []Edit{{"internal/conn/link.go", "if time.Since(l.since) >= steady {", "if time.Since(l.since) >= 0 {"}},
		Test:  Test{".", "TestAConnectionThatEndsWithItsHandshakeIsNotRepeatedAtOnce"},
	},
	{
		Name: "a session that is over keeps its connection", After: "our own first version: nobody asked for another session",
		Edits: []Edit{{"internal/conn/tap.go", "return ErrSessionOver // some servers", "return nil // some servers"}},
		Test:  Test{".", "TestAnExpiryOnAnOpenConnectionIsFollowedByAnotherSession"},
	},
	{
		Name: "who asks for a new session names the newest transaction of the old one", After: "go-zookeeper: a restored ensemble refuses it for ever",
		Edits: []Edit{{"internal/conn/link.go", "return frames.NewSessionRequest(p)", "return p"}},
		Test:  Test{".", "TestAClientComesBackToAnEnsembleWithEarlierTransactions"},
	},
	{
		Name: "a refused release ends there", After: "our own first version",
		Edits:   []Edit{{"internal/queue/cleanup.go", "c.Calls.Run(func() { t.keepDeleting(c.Life) })", "c.Calls.Run(func() { _ = t.keepDeleting })"}},
		Trouble: "withheld", Faults: "^withheld$",
	},
	{
		Name: "a node that its owner cannot read is held", After: "our own first version: Confirm knew nothing and said so with nil",
		Edits: []Edit{{"internal/queue/selfwatch.go", `			g.node.MarkGone(session.ErrUnreadable)
`, ""}, {"internal/session/heartbeat.go", `			t.MarkGone(ErrUnreadable)
`, "\t\t\tcontinue\n"}},
		Test: Test{".", "TestAHoldWhoseNodeCannotBeReadAnyMoreIsLost"},
	},
	{
		Name: "a request to let go is heard by those only who hold already", After: "an operator asks who waits, and it holds a moment later",
		Edits: []Edit{{"internal/queue/selfwatch.go", "\tif g.node.Hear(seen) {", "\tif g.isLeft() && g.node.Hear(seen) {"}},
	},
	{
		Name: "whoever writes is believed to ask", After: "any write into a node, as Curator's Revoker is noticed by some",
		Edits: []Edit{{"internal/session/own.go", "\tif !node.IsRevocation(d.Data) {", "\tif len(d.Data) == 0 {"}},
	},
	{
		Name: "a request to let go stays with the place among those who ask", After: "our own first version",
		Edits: []Edit{{"internal/queue/cleanup.go", `		t.Hear(n)
		t.hasRead(n.Stat.Version)`, `		t.hasRead(n.Stat.Version)`}},
		Test: Test{".", "TestARequestIsNotLostBetweenThePlaceAndThePermits"},
	},
	{
		Name: "one that waits for permits does not hear", After: "our own first version",
		Edits: []Edit{{"internal/queue/permits.go", `			x.Asked = gate.Asked //`, `			_, _ = x, gate.Asked //`}},
		Test:  Test{".", "TestOneThatWaitsForPermitsIsToldWhenItHolds"},
	},
	{
		Name: "who writes its data forgets that it was asked", After: "our own first version",
		Edits: []Edit{{"hold.go", "t.Path(), t.Shown(value), n.Stat.Version)", "t.Path(), value, n.Stat.Version)"}},
		Test:  Test{".", "TestWritingOnesDataKeepsTheRequestToLetGo"},
	},
	{
		Name: "values are proclaimed side by side", After: "our own first version: the node had one, the client the other",
		Edits: []Edit{{"hold.go", "\tcase turn <- struct{}{}:\n\t\tdefer func() { <-turn }()\n", "\tcase turn <- struct{}{}:\n\t\t<-turn\n"}},
		Test:  Test{".", "TestARefusedProclaimLeavesTheValueOfTheNext"},
	},
	{
		Name: "a leader works though its leadership is over", After: "our own first version",
		Edits: []Edit{{"failstop.go", "\tif err := h.unlessOver(\"do\"); err != nil {\n\t\treturn term{", "\tif err := ctx.Err(); err != nil {\n\t\treturn term{"}},
		Test:  Test{".", "TestRunPassesOverALeadershipThatIsOver"},
	},
	{
		Name: "terms follow each other without a pause", After: "our own first version: 10,130 terms in a second",
		Edits: []Edit{{"election.go", `		p.Next(pausing) // if`, `		_ = pausing // if`}},
		Test:  Test{".", "TestRunPausesAfterTermsThatEndAtOnce"},
	},
	{
		Name: "permits beyond the limit are not shown as held", After: "our own first version, after a Resize",
		Edits: []Edit{{"operate/inspect.go", "\t\t\tp.Holds = true\n", "\t\t\tp.Holds = within(i)\n"}},
		Test:  Test{".", "TestInspectShowsAllHoldersAfterAResize"},
	},
	{
		Name: "one that waits for permits is shown twice", After: "our own first version",
		Edits: []Edit{{"operate/inspect.go", "\t\t\tcontinue // its place in the queue is shown instead\n", "\t\t\tp.Holds = false // its place in the queue is shown instead\n"}},
		Test:  Test{".", "TestInspectShowsOneThatWaitsForPermitsOnce"},
	},
	{
		Name: "contenders are read one after the other", After: "our own first version: 10,002 round trips",
		Edits: []Edit{{"operate/inspect.go", "const readersAtOnce = 16", "const readersAtOnce = 1"}},
		Test:  Test{".", "TestInspectOfAThousandIsNotAThousandRoundTrips"},
	},
	{
		Name: "attempts that fail give no event", After: "our own first version",
		Edits: []Edit{{"recipe.go", "\t\tc.observeFailure(ctx, w, time.Since(start), err)\n", ""}},
		Test:  Test{".", "TestAnAttemptGivenUpOrRefusedIsObserved"},
	},
	{
		Name: "nobody asks for proof while a node is being deleted", After: "our own: a release that lost one answer was not waited for",
		Edits: []Edit{{"internal/queue/cleanup.go", "\t\tc.Leave(&x.OwnNode)\n", "\t\tc.Unkeep(&x.OwnNode)\n"}},
		Test:  Test{".", "TestNoFaultOfAHolderShortensTheLockDelay"},
	},
	{
		Name: "a silent server is only left for what is kept", After: "whoever held nothing waited as long as the client library does",
		Edits: []Edit{{"internal/session/heartbeat.go", "\tif !b.on {\n\t\treturn never\n\t}\n\tsince", "\tif !b.on || !b.h.kept.isAny(b.s) {\n\t\treturn never\n\t}\n\tsince"}},
		Test:  Test{".", "TestALockThatASilentServerIsAskedForComesFromAnother"},
	},
	{
		Name: "a grant does not tell of its wait for the proof", After: "the lease's two questions",
		Edits: []Edit{{"internal/queue/place.go", "\tt.proving += time.Since(began)\n", "\t_ = began\n"}},
		Test:  Test{".", "TestAGrantTellsHowLongItWaitedForTheProof"},
	},
	{
		Name: "a try says that it took no time", After: "our own first version",
		Edits: []Edit{{"recipe.go", "ev.Elapsed, ev.Proving = took, proving", "ev.Proving = proving"}},
		Test:  Test{".", "TestAnAttemptThatSucceedsTellsHowLongItTook"},
	},
	{
		Name: "a hold that Close ends gives no event", After: "our own first version",
		Edits: []Edit{{"holding.go", "case !errors.Is(why, ErrReleased):\n\t\tg.tell(observe.Ended, why)\n", "case true:\n"}},
		Test:  Test{".", "TestEveryHoldEndsWithOneEvent"},
	},
	{
		Name: "no answer is no news", After: "our own first version: a cut came without the early warning",
		Edits: []Edit{{"internal/session/heartbeat.go", "\tb.h.missed(errSilent)\n", ""}},
		Test:  Test{".", "TestAMissedHeartbeatIsObservedBeforeTheLoss"},
	},
	{
		Name: "hooks of another connection are waited for", After: "our own first version",
		Edits: []Edit{{"zklock.go", "\t\tif apart == 4 {", "\t\tif apart < 0 {"}},
		Test:  Test{".", "TestHooksOfAnotherConnectionAreRefused"},
	},
	{
		Name: "the tick counts from the next session on", After: "our own first version, with Attach",
		Edits: []Edit{{"internal/conn/link.go", "\t\tl.session.Lease.SetTick(tick)\n", "\t\t_ = tick\n"}},
		Test:  Test{".", "TestATickTimeCountsForAConnectionThatIsThereAlready"},
	},
	{
		Name: "a server's refusal is the quorum's word", After: "our own first version",
		Edits: []Edit{{"internal/conn/evidence.go", "case frames.CodeOK, frames.CodeNoNode,", "case frames.CodeOK, -102, frames.CodeNoNode,"}},
		Test:  Test{".", "TestARefusalByOneServerIsNoQuorums"},
	},
	{
		Name: "only a version guards a number of permits", After: "our own first version: a directory that was made anew has the same",
		Edits: []Edit{{"internal/queue/permits.go", "if err := keeps.enter(ctx, sess); err != nil {", "if err := ctx.Err(); err != nil {"},
			{"internal/queue/permits.go", "s.setLimit(n), &zk.DeleteRequest{Path: keeps.Path(), Version: -1})", "s.setLimit(n))"}},
		Test: Test{".", "TestNoNumberOfPermitsIsStoredInADirectoryThatWasMadeAnew"},
	},
	{
		Name: "who queues again owns twice", After: "our own first version: waiters got ErrLimit when their nodes were deleted",
		Edits: []Edit{{"internal/queue/turn.go", " && !errors.Is(err, outcome.ErrGone) {\n\t\treturn\n", " {\n\t\treturn\n"}},
		Test:  Test{".", "TestWaitersThatQueueAgainDoNotOwnTwice"},
	},
	{
		Name: "a create that may still run is not counted", After: "our own first version: more than two megabytes ended with a session",
		Edits: []Edit{{"internal/queue/create.go", "Owns: t.ownedBy(x), ", ""}, {"internal/queue/create.go", "\t\tt.owns = 0 // from now on it is counted there\n", ""}},
		Test:  Test{".", "TestACreateThatRunsLateIsCountedAmongWhatTheClientOwns"},
	},
	{
		Name: "a create that cannot run any more counts for ever", After: "none: a network that loses requests would use the limit up",
		Edits: []Edit{{"internal/session/pending.go", "g.Sess.Own(-g.Owns, 0)", "_ = g"}},
		Test:  Test{".", "TestACreateThatCannotRunAnyMoreIsNotCounted"},
	},
	{
		Name: "what a server throttles is not sent again", After: "our own first version: of half of the requests a heartbeat came of few",
		Edits: []Edit{{"internal/session/request.go", "const maxAsks = 6", "const maxAsks = 1"}},
		Test:  Test{".", "TestAServerThatThrottlesCostsNoHold"},
	},
	{
		Name: "a try waits for a server that does nothing", After: "our own first version: for ever, while the session lived",
		Edits: []Edit{{"internal/queue/turn.go", "func() { cut(errUnserved) }", "func() {}"}, {"internal/queue/turn.go", "	errUnserved = fmt", "	_ = fmt"}},
		Test:  Test{".", "TestATryThatIsAlwaysThrottledEnds"},
	},
	{
		Name: "a lock and a semaphore share a path", After: "our own first version: both held",
		Edits: []Edit{{"internal/queue/neighbours.go", "if !line.Permits {", `if !line.Permits || dir != "" {`}},
		Test:  Test{".", "TestALockAndASemaphoreAtOnePathAreRefused"},
	},
	{
		Name: "a note that was refused is tried at every release", After: "our own first version: two round trips each",
		Edits: []Edit{{"internal/queue/memory.go", "!m.refused.has(dir, math.MaxInt64)", "(!m.refused.has(dir, math.MaxInt64) || dir != \"\")"}},
		Test:  Test{".", "TestWithoutWritePermissionANoteIsTriedOnce"},
	},
	{
		Name: "an observer that panics leaves a hold", After: "our own first version: until the client was closed",
		Edits: []Edit{{"recipe.go", "if !returned {", "if !returned && h == nil {"}},
		Test:  Test{".", "TestAnObserverThatPanicsLeavesNoHold"},
	},
	{
		Name: "a lock stands where another one's record is", After: "our own first version: each wrote over the other",
		Edits: []Edit{{"internal/node/paths.go", " || strings.HasSuffix(name, RecordSuffix)", ""}},
		Test:  Test{"./internal/node", "TestPathsAreCheckedByZooKeepersRules"},
	},
	{
		Name: "heartbeats check whichever of many nodes come first", After: "our own first version: they were drawn each time",
		Edits: []Edit{{"internal/session/turns.go", "	k.last++\n	for", "	for"}},
		Test:  Test{".", "TestHeartbeatsOfManyHoldsAreSmallAndCheckEachInTurn"},
	},
	{
		Name: "short holds take the turn of a long one", After: "our own second version: who had not been found came first",
		Edits: []Edit{{"internal/session/turns.go", "	k.last++\n	k.kept[t], t.Kept = k.last, true", "	k.last++\n	k.kept[t], t.Kept = 1, true"}},
		Test:  Test{".", "TestShortHoldsDoNotTakeTheTurnOfALongOne"},
	},
	{
		Name: "a heartbeat checks a thousand nodes", After: "our own first version: 70 kB in the log of each server",
		Edits: []Edit{{"internal/session/turns.go", "const maxChecks = 10_000", "const maxChecks = 1_000_000"}},
		Test:  Test{".", "TestHeartbeatsOfManyHoldsAreSmallAndCheckEachInTurn"},
	},
	{
		Name: "one heartbeat asks for all nodes at once", After: "our own first version: more than a server's request can be",
		Edits: []Edit{{"internal/session/turns.go", "size > most && i > 0 {", "size < 0 {"}},
		Test:  Test{".", "TestRequestsAboutManyHoldsStayWithinALimit"},
	},
	{
		Name: "the rhythm changes and forgets what the last heartbeat can prove", After: "our own: of two ticks 0.335 remained",
		Edits: []Edit{{"internal/lease/rhythm.go", "l.due(last); ok &&", "l.due(last); ok && l.timeout == 0 &&"}},
		Test:  Test{".", "TestAHoldHasFourTenthsLeftThoughAnswersVary"},
	},
	{
		Name: "the rhythm of heartbeats leaves less than four tenths", After: "our own first version: 12 % were left after a wait",
		Edits: []Edit{{"internal/lease/rhythm.go", "l.timeout*548/1000", "l.timeout*748/1000"}},
		Test:  Test{".", "TestAWarmHoldHasFourTenthsOfTheTimeoutLeftAtEveryMoment"},
	},
	{
		Name: "a tick is at most a quarter of the timeout", After: "our own first version",
		Edits: []Edit{{"internal/lease/lease.go", "func (l *Lease) SetTick(tick time.Duration) {\n", "func (l *Lease) SetTick(tick time.Duration) {\n\ttick = min(tick, l.timeout/4)\n"}},
		Test:  Test{".", "TestATickTimeCountsForAConnectionThatIsThereAlready"},
	},
	{
		Name: "readers share their place though a writer waits", After: "a read lock of a process that only counts its readers",
		Edits: []Edit{{"internal/queue/grant.go", "!(e.Shared && g.Shared())", "!g.Shared()"}},
		Test:  Test{".", "TestAWriterWaitsForNoReaderThatComesLater"},
	},
	{
		Name: "readers look once whether anybody else wants their place", After: "a watch fires once",
		Edits: []Edit{{"sharedplace.go", "p.others, p.ready, p.watching = nil, false, time.Time{}", "p.others = nil"}},
		Test:  Test{".", "TestAWriterWaitsForNoReaderThatComesLater"},
	},
	{
		Name: "two goroutines of a process hold at once", After: "the shared place's first condition",
		Edits: []Edit{{"sharedplace.go", "if !p.hasRoom() || p.closed || !p.ready {", "if p.closed || !p.ready {"}},
		Focus: "cohort",
	},
	{
		Name: "goroutines of a fenced cohort follow one another on a node", After: "equal tokens, and a guard that commits beside a later hold",
		Edits: []Edit{{"sharedplace.go", "p.others, p.ready = w, p.of.unfenced", "p.others, p.ready = w, true"}},
		Focus: "cohort",
	},
	{
		Name: "the loss of a place ends no hold of a goroutine", After: "the context is the goroutine's own",
		Edits: []Edit{{"sharedplace.go", "stay: p.of.ctx,", "stay: context.WithoutCancel(p.of.ctx),"}},
		Focus: "cohort",
	},
	{
		Name: "the next node is created beside the old one", After: "a hand-off in two requests, of which one can get lost",
		Edits: []Edit{{"internal/queue/alone.go", "ops = append(ops, &zk.DeleteRequest{Path: old.Path(), Version: -1})", "ops = append(ops, old.Exists())"}},
		Focus: "cohort",
	},
	{
		Name: "an attempt that fails leaves the old node", After: "the transaction would have deleted it",
		Edits: []Edit{{"internal/queue/turn.go", "outcomes = append(outcomes, c.remove(a.replaces))", "c.Unkeep(&a.replaces.OwnNode)"}},
		Test:  Test{".", "TestAHandOffThatIsGivenUpBeforeItHappensLeavesNothing"},
	},
	{
		Name: "an old node that cannot be replaced stays", After: "its deletion was refused, not its existence",
		Edits: []Edit{{"internal/queue/place.go", "\t\t\tt.c.remove(a.takeReplaced())\n", "\t\t\ta.takeReplaced()\n"}},
		Test:  Test{".", "TestAHandOffThatIsRefusedLeavesNoOldNode"},
	},
	{
		Name: "a node that somebody has deleted is replaced for ever", After: "the transaction is refused each time",
		Edits: []Edit{{"internal/queue/place.go", "\t\t\tt.c.remove(a.takeReplaced())\n", "\t\t\tt.c.remove(a.replaces)\n"}},
		Test:  Test{".", "TestAKeptNodeThatSomebodyHasDeletedIsNotReplaced"},
	},
	{
		Name: "goroutines follow one another although others wait", After: "a cache of locks that nobody can ask for",
		Edits: []Edit{{"sharedplace.go", "\tdefault:\n\t\tp.want(asked, now)\n", "\tdefault:\n\t\t_ = asked\n"}},
		Test:  Test{".", "TestGoroutinesThatAskedBeforeAStrangerComeFirst"},
	},
	{
		Name: "who was there before the watch is not seen", After: "the answer that comes with a watch is not read",
		Edits: []Edit{{"sharedplace.go", "case wanted:", "case wanted && p.isShared():"}},
		Test:  Test{".", "TestNobodyStarvesBesideACohort"},
	},
	{
		Name: "all goroutines that waited come before a stranger", After: "a bound in numbers is none in time",
		Edits: []Edit{{"sharedplace.go", " && now.Mono.Before(q.until)", " && !now.Mono.IsZero()"}},
		Test:  Test{".", "TestAStrangerWaitsForNoGoroutineThatBeginsMuchLater"},
	},
	{
		Name: "a reader waits until all who read in a place that is not shared any more have left", After: "our own first version",
		Edits: []Edit{{"nextstep.go", "case s.shared && s.closed && s.waiting > 0:", "case s.shared && s.closed && s.waiting > 1000:"}},
		Test:  Test{".", "TestAReaderOfACohortWaitsForNoOtherReader"},
	},
	{
		Name: "a place that readers have left for another stays", After: "the last one out did it, when there was one place",
		Edits: []Edit{{"localqueue.go", "return len(p.holds) == 0\n", "return false\n"}},
		Test:  Test{".", "TestAReaderOfACohortWaitsForNoOtherReader"},
	},
	{
		Name: "a writer that has let readers pass wants their place", After: "our own first version took all names of writers for writers",
		Edits: []Edit{{"internal/queue/grant.go", "&& !wasBefore && ", "&& (!wasBefore || true) && "}},
		Test:  Test{".", "TestReadersOfACohortShareAPlaceBesideAWriterThatWasDowngraded"},
	},
	{
		Name: "readers begin before it is known what has happened in the queue", After: "our own first version",
		Edits: []Edit{{"sharedplace.go", "p.others, p.ready, p.watching = nil, false, time.Time{}", "p.others, p.watching = nil, time.Time{}"}},
		Test:  Test{".", "TestAReaderThatAsksAfterAWriterHoldsAfterIt"},
	},
	{
		Name: "a place waits for its watch for as long as that takes", After: "our own first version, where an event was withheld",
		Edits: []Edit{{"sharedplace.go", "now.Mono.Sub(p.watching) >= p.patience()", "now.Mono.Sub(p.watching) >= 1000*p.patience()"}},
		Test:  Test{".", "TestAPlaceWhoseWatchIsDeadIsGivenUp"},
	},
	{
		Name: "who has queued behind a place that waits is not counted", After: "our own first version asked a server for them, after the grant",
		Edits: []Edit{{"localqueue.go", "\t\tp.want(p.before, now)\n\t\tp.ready = q.key.unfenced\n", "\t\t_ = p.before\n"}},
		Test:  Test{".", "TestUnfencedCohortsOvertakeNobodyWhoseNodeStood"},
	},
	{
		Name: "all who wait at the grant come before others", After: "they may have asked after those",
		Edits: []Edit{{"localqueue.go", "\t\tp.want(p.before, now)\n", "\t\tp.want(q.asked, now)\n"}},
		Test:  Test{".", "TestAGoroutineThatAsksAfterAStrangerHasQueuedHoldsAfterIt"},
	},
	{
		Name: "goroutines that come later than a stranger come before it", After: "a bound in time is none in numbers",
		Edits: []Edit{{"sharedplace.go", "return number <= q.last && ", "return "}},
		Test:  Test{".", "TestGoroutinesThatAskedBeforeAStrangerComeFirst"},
	},
	{
		Name: "a busy process never lets go", After: "those who only look write nothing",
		Edits: []Edit{{"sharedplace.go", "return now.Mono.Sub(r.since) >= r.length }", "return now.Mono.Sub(r.since) >= 1000*r.length }"}},
		Test:  Test{".", "TestATryInALoopGetsInBesideABusyCohort"},
	},
	{
		Name: "a busy process lets go for no moment", After: "the next node is there before anybody can look",
		Edits: []Edit{{"nextstep.go", "case s.waiting > 0 && s.runOver:", "case s.waiting > 1000 && s.runOver:"}},
		Test:  Test{".", "TestATryInALoopGetsInBesideABusyCohort"},
	},
	{
		Name: "goroutines follow one another without a connection", After: "nobody can be seen to wait",
		Edits: []Edit{{"sharedplace.go", "if p.of.c.Link.Carried() != p.node().Sess || session.IsClosed(p.moved) {", "if carried := p.of.c.Link.Carried(); carried != nil && carried != p.node().Sess || session.IsClosed(p.moved) {"}},
		Test:  Test{".", "TestNobodyFollowsOnANodeWithoutAConnection"},
	},
	{
		Name: "a goroutine begins although the lease is about to end", After: "the place was granted with a fresh one",
		Edits: []Edit{{"sharedplace.go", "p.of.ctx.Err() == nil && p.isFresh(now)", "p.of.ctx.Err() == nil"}},
		Test:  Test{".", "TestEachGoroutineBeginsWithAFreshLease"},
	},
	{
		Name: "a lease that was fresh once is fresh", After: "what was known is not asked for again",
		Edits: []Edit{{"sharedplace.go", `if now.Before(p.fresh) {
		return true
	}
	p.fresh = p.node().Sess.Lease.FreshUntil()
	return now.Before(p.fresh)`, `if p.fresh.Mono.IsZero() {
		p.fresh = p.node().Sess.Lease.FreshUntil()
	}
	return true`}},
		Test: Test{".", "TestEachGoroutineBeginsWithAFreshLease"},
	},
	{
		Name: "goroutines follow one another in a place that was asked for", After: "the request is for the place",
		Edits: []Edit{{"sharedplace.go", "p.closed || p.heard || ", "p.closed || "}},
		Test:  Test{".", "TestARequestToLetGoEndsASharedPlace"},
	},
	{
		Name: "a place that cannot be watched is shared", After: "an error taken for silence",
		Edits: []Edit{{"sharedplace.go", "\tcase w == nil:\n\t\tp.closed = true\n", "\tcase w == nil:\n\t\tp.ready = p.of.unfenced\n"}},
		Test:  Test{".", "TestAPlaceThatCannotBeWatchedIsNotShared"},
	},
	{
		Name: "an unfenced hold guards a transaction", After: "the check of its node commits during the next hold as well",
		Edits: []Edit{{"hold.go", "\tif h.of().unfenced {\n\t\treturn nil, h.of().failure(\"multi\", errUnfenced)\n\t}\n", ""}, {"hold.go", "\tif h.of().unfenced {\n\t\treturn []any{noGuard{}}\n\t}\n", ""}},
		Test:  Test{".", "TestAnUnfencedHoldHasNoGuard"},
	},
	{
		Name: "a goroutine that holds in a cohort waits for itself", After: "the hold is not the context's",
		Edits: []Edit{{"cohort.go", "case k.c().holdsUnder(ctx, k.path, \"\"):", "case k.c().holdsUnder(ctx, k.path, cohortRecipe.Name):"}},
		Test:  Test{".", "TestACohortUnderItsOwnHoldIsADeadlock"},
	},
	{
		Name: "a hold that has ended is one's own for as long as its place is kept", After: "the place outlives it",
		Edits: []Edit{{"hold.go", "if h.local != nil && h.Context().Err() != nil {", "if h.local != nil && h.Context() == nil {"}},
		Test:  Test{".", "TestACohortUnderItsOwnHoldIsADeadlock"},
	},
	{
		Name: "a watch that nobody waits for sleeps through its event", After: "a hold has no goroutine while nothing happens",
		Edits: []Edit{{"internal/session/watch.go", "\t\tthen()\n\t\tw.Fired.Set()", "\t\tw.Fired.Set()"}},
		Test:  Test{".", "TestClientsOfOneConnectionAllLearnOfALoss"},
	},
	{
		Name: "an event that overtakes the answer to its watch is not seen", After: "go-zookeeper registers a watch when it is answered",
		Edits: []Edit{{"internal/session/nodewatch.go", "\t\tw.early = saw\n", ""}},
		Test:  Test{"internal/session", "TestWhatHappensBeforeTheAnswerIsNotLost"},
	},
	{
		Name: "a watch is not set anew though its connection has changed", After: "it was set anew for nobody",
		Edits: []Edit{{"internal/session/watch.go", "for _, w := range t.of(s) {\n\t\tswitch {", "for _, w := range t.of(nil) {\n\t\tswitch {"}},
		Test:  Test{".", "TestAWaiterWakesThoughItsWatchWasLostInAReconnect"},
	},
	{
		Name: "the clients of a connection share one ear", After: "our own first version",
		Edits: []Edit{{"internal/conn/link.go", "return append(all, who) })", "return append(all[:0], who) })"}},
		Test:  Test{".", "TestClientsOfOneConnectionAllLearnOfALoss"},
	},
	{
		Name: "an unlock ends no context that nobody has looked at", After: "contexts are made when somebody looks",
		Edits: []Edit{{"sharedplace.go", "h.gone = h.inside == nil && h.stay.Err() == nil", "h.gone = h.stay.Err() != nil"}},
		Test:  Test{".", "TestTheContextOfAHoldInACohortSaysHowItHasEnded"},
	},
	{
		Name: "a goroutine that gave up leaves the process in the queue", After: "the place was for it alone",
		Edits: []Edit{{"localqueue.go", "if len(q.waiting) == 0 && q.cancel != nil {", "if len(q.waiting) == 0 && q.over.Load() {"}},
		Test:  Test{".", "TestWaitsOfACohortThatAreGivenUpLeaveNothing"},
	},
	{
		Name: "the lock-delay does not run", After: "what everybody has who has none",
		Edits:   []Edit{{"internal/queue/delay.go", "case left <= 0:", "case left <= r.Delay:"}},
		Trouble: "delays",
	},
	{
		Name: "a try is refused when the lock-delay is over", After: "none: what the judge had left out",
		Edits:   []Edit{{"internal/queue/delay.go", "case left <= 0:", "case left <= 0 && waits:"}},
		Trouble: "delays",
	},
	{
		Name: "a lock that was lost was released", After: "its node is deleted by its own client in both cases",
		Edits:   []Edit{{"recipe.go", "granted.Leave(g.wasLost(why))", "granted.Leave(why == nil)"}},
		Trouble: "delays",
	},
	{
		Name: "several locks of which one was lost were released", After: "the others are there still, and are given up in peace",
		Edits: []Edit{{"multi.go", "h.of().giveUp() // the caller", "_ = h // the caller"}},
		Test:  Test{".", "TestALossOfOneOfSeveralLocksDelaysAll"},
	},
	{
		Name: "a holder does not write that it holds", After: "a grant would cost one request less",
		Edits:   []Edit{{"internal/queue/delay.go", `case lost == "" && (shared || r.Fate == node.IsHeld):`, "case lost == \"\":"}},
		Trouble: "delays",
	},
	{
		Name: "the record is written over whatever it says by now", After: "it was read before the lock was asked for",
		Edits: []Edit{
			{"internal/queue/claim.go", "t.posting(r, over.version))", "t.posting(r, -1))"},
			{"internal/queue/delay.go", "if t.recipe.Shared || len(t.met) > 0 {", "if t.c == nil {"},
		},
		Test: Test{".", "TestAfterAReleaseThereIsNoLockDelay"},
	},
	{
		Name: "a reader believes what the record said when it queued", After: "writers must not, and write over the version that they have read",
		Edits:   []Edit{{"internal/queue/delay.go", "if t.recipe.Shared || len(t.met) > 0 {", "if t.c == nil {"}},
		Trouble: "delays", Focus: "rw", Seeds: 480,
	},
	{
		Name: "a wait for the lock-delay that failed counts", After: "our own first version: an answer was lost before it began",
		Edits: []Edit{{"internal/queue/delay.go", "if err = t.awaitDelay(ctx, r, waits); err == nil {", "if err = t.awaitDelay(ctx, r, waits); t.c != nil {"}},
		Test:  Test{".", "TestNoFaultOfAWaiterShortensTheLockDelay"},
	},
	{
		Name: "other libraries' contenders release", After: "they do not stand in the record, and what that says is older",
		Edits: []Edit{{"internal/queue/nearest.go", "{ return !e.Shared && !node.IsDelayed(e.Name) }", "{ return !e.Shared && !node.IsDelayed(e.Name) && e.Name == \"\" }"}},
		Test:  Test{".", "TestAForeignPredecessorIsFollowedAfterTheLockDelay"},
	},
	{
		Name: "what was seen of a record holds for restored servers", After: "our own first version: its version comes again",
		Edits: []Edit{{"internal/queue/delay.go", "if !known || r.sess != s {", "if !known {"}},
		Test:  Test{".", "TestARestoredRecordIsReadAnew"},
	},
	{
		Name: "a server that lags knows the lock-delay", After: "a semaphore's number of permits, in our own first version",
		Edits: []Edit{{"internal/queue/claim.go", `	r, err = session.UpToDate(ctx, c.Requests, s, func() (recordAt, error) { return c.record(ctx, s, dir) })
`, ""}},
		Test: Test{".", "TestALaggingServerMakesNobodyDisagreeAboutTheLockDelay"},
	},
	{
		Name: "a client without a lock-delay queues beside those with one", After: "what everybody has who has none",
		Edits: []Edit{{"internal/queue/neighbours.go", "if !r.Delays || c.Delay > 0 ||", "if c != nil || !r.Delays || c.Delay > 0 ||"}},
		Test:  Test{".", "TestThoseWhoDisagreeAboutTheLockDelayAreTold"},
	},
	{
		Name: "the guardian makes its threads when it needs them", After: "the Go runtime's way: a command that uses up the processes ended it",
		Edits: []Edit{{"cmd/zklock/guardian_unix.go", "\treserveThreads()\n", ""}},
		Test:  Test{"cmd/zklock", "TestTheGuardianHasItsThreadsBeforeTheCommandStarts"},
	},
	{
		Name: "arguments of a command are text", After: "encoding/json: bytes that are not UTF-8 become replacement characters",
		Edits: []Edit{{"cmd/zklock/orders.go", "all = append(all, raw(text))", "all = append(all, raw(string([]rune(text))))"}},
		Test:  Test{"cmd/zklock", "TestTheCommandGetsItsArgumentsByteByByte"},
	},
	{
		Name: "a terminal tells the command what it tells zklock", After: "a hang-up is told to the leader of a session only",
		Edits: []Edit{{"cmd/zklock/tree_linux.go", "shares := a.Terminal && !a.Leader", "shares := a.Terminal"}},
		Test:  Test{"cmd/zklock", "TestRunAsTheLeaderOfASessionPassesSignalsOnOnce"},
	},
	{
		Name: "what is no period is a name", After: "our own first version: such a job ran once and never again",
		Edits: []Edit{{"cmd/zklock/slotflag.go", "return slotChoice{name: text}, checkSlotName(text)", "return slotChoice{name: text}, nil"}},
		Test:  Test{"cmd/zklock", "TestANameIsNoMistakenPeriod"},
	},
	{
		Name: "a day of a place is a day of the host", After: "cron on hosts with different time zones",
		Edits: []Edit{{"cmd/zklock/slotflag.go", "now = now.In(place)", "_ = place"}},
		Test:  Test{"cmd/zklock", "TestAPeriodMeansWhatCronMeans"},
	},
	{
		Name: "a value of a leader may read as that of a writer who became a reader", After: "our own first version: readers passed a leader",
		Edits: []Edit{{"election.go", "\tcase node.IsDowngraded(value):\n", "\tcase false:\n"}},
		Test:  Test{".", "TestAValueOfALeaderLetsNoReaderIn"},
	},
	{
		Name: "a latch's value is written through another kind of election", After: "our own first version: Curator's latches took the event for their turn",
		Edits: []Edit{{"election.go", " && g.nodes[0].Fixed == e.recipe().Fixed", ""}},
		Test:  Test{".", "TestALatchsDataIsNotWrittenByAnotherKindOfElection"},
	},
	{
		Name: "a guarded function is told of a loss however its hold ends", After: "our own first version",
		Edits: []Edit{{"failstop.go", "\tif h.Context().Err() != nil {\n\t\tcut(", "\tif h == nil {\n\t\tcut("}},
		Test:  Test{".", "TestAGuardedFunctionIsToldWhyItsHoldHasEnded"},
	},
	{
		Name: "a program's own end waits for itself", After: "our own first version: FailStop could not close the client",
		Edits: []Edit{{"failstop.go", "\t\t\tgo h.of().c.FailStop(", "\t\t\th.of().c.FailStop("}},
		Test:  Test{".", "TestFailStopMayCloseTheClient"},
	},
	{
		Name: "permits are made though their place in the queue is gone", After: "our own first version: who was evicted went on to hold",
		Edits: []Edit{{"internal/queue/permits.go", "\t\tmade.passThrough(&gate.member)", "\t\t_ = made.passThrough"}},
		Test:  Test{".", "TestOneThatIsEvictedWhileItMakesItsPermitsIsTold"},
	},
	{
		Name: "an eviction leaves the permits that were made meanwhile", After: "our own first version: who was evicted held",
		Edits: []Edit{{"operate/evict.go", "if who.Kind != KindPermit || !isPlace", "if who.Kind == KindPermit || !isPlace"}},
		Test:  Test{".", "TestNobodyHoldsPermitsAfterItsEviction"},
	},
	{
		Name: "who is evicted before it finds its place for permits asks again", After: "our own first version",
		Edits: []Edit{{"internal/queue/permits.go", "return nil, gate.unlessEvicted(ctx, err)", "return nil, err"}},
		Test:  Test{".", "TestOneThatAsksForPermitsAndIsEvictedBeforeItLooksIsTold"},
	},
	{
		Name: "a try for permits is not told that it was evicted", After: "our own first version",
		Edits: []Edit{{"internal/queue/permits.go", "\t\terr = made.unlessEvicted(ctx, err)\n\t\ts.Engine.discard", "\t\ts.Engine.discard"}},
		Test:  Test{".", "TestATryForPermitsThatIsEvictedIsTold"},
	},
	{
		Name: "a goroutine holds in the place of one that asked before others", After: "our own first version: it overtook another process",
		Edits: []Edit{{"sharedplace.go", "!p.place.Waited && len(p.holds) == 0", "len(p.holds) == 0"}},
		Test:  Test{".", "TestAGoroutineTakesNoPlaceThatWasAskedForBefore"},
	},
	{
		Name: "a goroutine begins in a place that is lost", After: "our own first version",
		Edits: []Edit{{"sharedplace.go", "if !p.hasRoom() || p.of.ctx.Err() != nil {", "if !p.hasRoom() {"}},
		Test:  Test{".", "TestWhoMayBeginInAPlaceThatWasJustGranted"},
	},
	{
		Name: "what locks several under a long hold leaves something there each time", After: "our own first version",
		Edits: []Edit{{"holding.go", "range g.apart {", "range g.apart[:0] {"}},
		Test:  Test{".", "TestLockingSeveralUnderALongHoldLeavesNothing"},
	},
	{
		Name: "a label that is not UTF-8 is read as another's", After: "our own first version: the writer was taken for lost",
		Edits: []Edit{{"internal/node/owner.go", "\to.Host, o.Label = strings.", "\to.Host, _ = strings."}},
		Test:  Test{".", "TestAWriterWhoseLabelIsNotUTF8IsDowngraded"},
	},
	{
		Name: "a mark that is too large is asked for on and on", After: "our own first version",
		Edits: []Edit{{"slots/slots.go", "\tif err := node.CheckSize(ops); err != nil {\n", "\tif err := node.CheckSize(ops); err != nil && h == nil {\n"}},
		Test:  Test{".", "TestAMarkUnderManyPermitsEnds"},
	},
	{
		Name: "a mark is settled when the first of several locks is gone", After: "our own first version: one that was entered again stays",
		Edits: []Edit{{"slots/slots.go", "\tfor _, n := range nodes {\n", "\tfor _, n := range nodes[:1] {\n"}},
		Test:  Test{".", "TestAMarkIsSettledThoughOneOfTheLocksIsHeldOn"},
	},
	{
		Name: "a path may have characters that servers refuse", After: "our own first version: the acquire was refused late",
		Edits: []Edit{{"internal/node/paths.go", "r >= 0xe000 &&", "r >= 0xf000 &&"}},
		Test:  Test{"internal/node", "TestPathsAreCheckedByZooKeepersRules"},
	},
	{
		Name: "a Locker may return nothing", After: "our own first version: LockAll asked it on and on",
		Edits: []Edit{{"multi.go", "if err == nil && h.of().c != c.engine {", "if err == nil && h != nil && h.of().c != c.engine {"}},
		Test:  Test{".", "TestALockerWithoutAHoldIsRefused"},
	},
	{
		Name: "a timer is trusted until a lease runs out", After: "our own first version: it stands still while a machine sleeps",
		Edits: []Edit{{"internal/lease/lease.go", "{ return max(l.Term()/20, time.Millisecond) }", "{ return l.Term() }"}},
		Test:  Test{".", "TestAMachineThatWakesUpWithoutANetworkIsToldSoon"},
	},
	{
		Name: "a program's close of the connection is noticed by the servers first", After: "our own first version: Attach",
		Edits: []Edit{{"internal/conn/tap.go", "r.Op() == frames.OpClose {", "r.Op() == frames.OpClose+1000 {"}},
		Test:  Test{".", "TestAHoldEndsBeforeItsConnectionIsClosed"},
	},
	{
		Name: "a refused credential is no denial", After: "our own first version: the session was renewed for ever",
		Edits: []Edit{{"internal/conn/tap.go", "case asked.op == frames.OpAuth && r.Code != frames.CodeOK:", "case asked.op == frames.OpAuth && r.Code > frames.CodeOK:"}},
		Test:  Test{".", "TestASessionWhoseCredentialsAreRefusedEnds"},
	},
	{
		Name: "what shows that servers serve is kept as a session", After: "our own first version: an outage cost half of the waiters their places",
		Edits: []Edit{{"internal/conn/link.go", "\tcase probed:\n\t\treturn nil, nil, errProbe\n", ""}},
		Test:  Test{".", "TestAnOutageOfAnyLengthCostsNobodyItsPlace"},
	},
	{
		Name: "each request that has to wait has the client library send one", After: "our own first version: a goroutine for each connection",
		Edits: []Edit{{"internal/session/request.go", "if r.knocks.Add(1) > 1 {", "if r.knocks.Add(1) > 1<<40 {"}},
		Test:  Test{".", "TestCredentialsThatAreRefusedForLongLeaveNoGoroutines"},
	},
	{
		Name: "a heartbeat that failed is repeated until one is answered", After: "our own first version: four at once",
		Edits: []Edit{{"internal/session/heartbeat.go", "b.last, b.retry.after = now, time.Time{}", "b.last = now"}},
		Test:  Test{".", "TestAHeartbeatThatWasThrottledIsRepeatedOnce"},
	},
	{
		Name: "one lost connection counts for each request that it took along", After: "our own first version: directories stayed for ever",
		Edits: []Edit{{"internal/session/directories.go", "if d.hungUp != on {", "if d.hungUp != on || on != nil {"}},
		Test:  Test{".", "TestOneLostConnectionIsNotTakenForAServerWithoutContainers"},
	},
	{
		Name: "a quota that is exceeded is an unknown outcome", After: "our own first version: an acquire waited and said nothing",
		Edits: []Edit{{"internal/outcome/outcome.go", "\tframes.ErrLocalSession, frames.ErrQuota,\n", "\tframes.ErrLocalSession,\n"}},
		Test:  Test{".", "TestAnAcquireThatExceedsAQuotaIsToldAtOnce"},
	},
	{
		Name: "a throttled request may have been carried out", After: "our own first version: it was looked for again and again",
		Edits: []Edit{{"internal/outcome/outcome.go", " || errors.Is(err, frames.ErrThrottled)", ""}},
		Test:  Test{".", "TestACreateThatWasThrottledIsNotLookedFor"},
	},
	{
		Name: "a wait before the crash does not count", After: "our own first version: the delay began anew",
		Edits: []Edit{{"internal/queue/delay.go", "n.Stat.Ctime >= r.mtime || t.recipe.Fixed", "n.Stat.Ctime >= 0 || t.recipe.Fixed"}},
		Test:  Test{".", "TestAWaitOfOneThatStoodThereBeforeTheCrashCounts"},
	},
	{
		Name: "a label shows what stands in quotes", After: "our own first version: ssh host 'mysql -psecret'",
		Edits: []Edit{{"cmd/zklock/label.go", " || strings.ContainsFunc(w, unicode.IsSpace)", " || unicode.IsSpace(0)"}},
		Test:  Test{"cmd/zklock", "TestLabelsTellJobsApartAndNoSecrets"},
	},
	{
		Name: "an empty --node is every holder", After: "our own first version: an unset variable of a script",
		Edits: []Edit{{"cmd/zklock/revoke.go", "\tcase f.given(\"node\") && c.node == \"\":\n", "\tcase f.given(\"node\") && c.node == \"-\":\n"}},
		Test:  Test{"cmd/zklock", "TestRevokeAndEvictTouchNobodyBeyondTheNamed"},
	},
	{
		Name: "without waiting a server that is silent counts as another holder", After: "our own first version: a cron job that no host ran",
		Edits: []Edit{{"cmd/zklock/server.go", "errors.Is(answer, context.DeadlineExceeded) && !errors.Is(answer, zklock.ErrLocked)", "answer == context.DeadlineExceeded"}},
		Test:  Test{"cmd/zklock", "TestWithoutWaitingServersThatDoNotAnswerAreNoOtherHolder"},
	},
	{
		Name: "a request to let go finds nobody when the command has ended", After: "our own first version: a daemon kept the lock",
		Edits: []Edit{{"cmd/zklock/supervise.go", "\t\t\ts.pass(terminate)\n", "\t\t\ts.order(order{Signal: int(terminate)})\n"}},
		Test:  Test{"cmd/zklock", "TestRunEndsTheRestWhenToldToEnd"},
	},
	{
		Name: "what writes the log waits for who reads it", After: "our own first version: a pager cost the lock",
		Edits: []Edit{{"cmd/zklock/logwriter.go", "\tcase <-time.After(100 * time.Millisecond):\n", "\tcase <-time.After(time.Hour):\n"}},
		Test:  Test{"cmd/zklock", "TestRunHoldsThoughNobodyReadsItsLog"},
	},
	{
		Name: "a server that stops answering an eviction is waited for", After: "our own first version",
		Edits: []Edit{{"cmd/zklock/evict.go", "err := server.ask(ctx, func(ctx context.Context) error { return operate.Evict(ctx, client, who) })", "err := operate.Evict(ctx, client, who)"}},
		Test:  Test{"cmd/zklock", "TestAChangeThatIsNotAnsweredEnds"},
	},
	{
		Name: "a time zone that is not known is UTC", After: "our own first version: TZ=CET-1CEST",
		Edits: []Edit{{"cmd/zklock/slotflag.go", "\tif err != nil {\n\t\treturn fmt.Errorf(\"the host's time zone", "\tif err != nil && tz == \"\" {\n\t\treturn fmt.Errorf(\"the host's time zone"}},
		Test:  Test{"cmd/zklock", "TestADayIsNotCountedInAnotherZoneThanTheHosts"},
	},
	{
		Name: "a script goes on after Ctrl-C", After: "our own first version: zklock exited by itself",
		Edits: []Edit{{"cmd/zklock/job.go", "if by == os.Interrupt && j.sharesTerminal() {", "if by == nil && j.sharesTerminal() {"}},
		Test:  Test{"cmd/zklock", "TestCtrlCEndsTheScriptThatRunsTheCommand"},
	},
	{
		Name: "a command does not get the signals that few programs use", After: "our own first version: STOPSIGNAL SIGRTMIN+3",
		Edits: []Edit{{"cmd/zklock/child_unix.go", "const lastSignal = 64", "const lastSignal = 31"}},
		Test:  Test{"cmd/zklock", "TestRunPassesOnWhatProgramsUse"},
	},
	{
		Name: "who the leader is may be printed to nobody", After: "our own first version: elect >/dev/full",
		Edits: []Edit{{"cmd/zklock/elect.go", "\t_, err := fmt.Fprintln(std.out, valueOf(leader))\n\treturn err", "\tfmt.Fprintln(std.out, valueOf(leader))\n\treturn nil"}},
		Test:  Test{"cmd/zklock", "TestWhatCannotBePrintedIsAFailure"},
	},
	{
		Name: "a hold's timer is set once and trusted", After: "our own first version: a reconnect may give a shorter timeout",
		Edits: []Edit{
			{"holding.go", "\t\tcase <-again:\n", "\t\tcase <-map[bool]<-chan struct{}{false: again}[true]:\n"},
			{"internal/lease/lease.go", "{ return max(l.Term()/20, time.Millisecond) }", "{ return time.Hour }"},
		},
		Test: Test{".", "TestAHoldEndsInTimeThoughItsSessionBecomesShorter"},
	},
	{
		Name: "each connection numbers its requests anew", After: "our own first version: a follower tells a session's requests apart by their numbers alone",
		Edits: []Edit{
			{"internal/conn/tap.go", "\tmost    int             // of those", "\tlast    int32\n\tmost    int             // of those"},
			{"internal/conn/tap.go", "\tnumber := t.link.number()\n", "\tt.last++\n\tnumber := t.last\n"},
		},
		Test: Test{".", "TestNoNumberIsGivenTwiceInASession"},
	},
	{
		Name: "those who wait for a node hear of its end before its owner", After: "our own first version: two goroutines of a client held for an instant",
		Edits: []Edit{{"internal/session/nodewatch.go", "\tif then == nil {\n\t\tw.Fired.Set()", "\tif w != nil {\n\t\tw.Fired.Set()"}},
		Test:  Test{"internal/session", "TestTheOwnerOfANodeIsToldOfItsEndBeforeThoseThatWaitForIt"},
	},
	{
		Name: "a server that tells of events is not silent", After: "our own first version: it can owe a session its answers, and go on telling it of others",
		Edits: []Edit{{"internal/conn/tap.go", "xid != frames.XidEvent; t.answers", "xid != 0; t.answers"}},
		Test:  Test{".", "TestAServerThatTellsOfEventsAndAnswersNothingIsLeft"},
	},
	{
		Name: "the first part of a long answer is no sign of life", After: "our own: on a slow link the next part can take as long",
		Edits: []Edit{{"internal/conn/tap.go", "\t\tt.hear()\n", ""}},
		Test:  Test{"internal/conn", "TestEachPartOfAnAnswerIsASignOfLife"},
	},
	{
		Name: "permits without a number are a lock's directory", After: "our own first version: their users are about to store it",
		Edits: []Edit{{"internal/queue/neighbours.go", "return c.unlessPermits(ctx, sess, leases)", "return nil"}},
		Test:  Test{".", "TestALockThatComesWhenPermitsHaveNoNumberIsNotHeldBesideThem"},
	},
	{
		Name: "a client owns as many nodes as it likes", After: "our own first version: its crash stopped ZooKeeper for good",
		Edits: []Edit{{"internal/queue/owned.go", "s.Own(n, maxOwned)", "s.Own(n, 100*maxOwned)"}},
		Test:  Test{".", "TestAllNodesOfAClientCanEndInOneTransaction"},
	},
	{
		Name: "nodes that were released count on", After: "a forgotten subtraction",
		Edits: []Edit{{"internal/queue/cleanup.go", "\t\t\tt.disown()\n", ""}},
		Test:  Test{".", "TestAllNodesOfAClientCanEndInOneTransaction"},
	},
	{
		Name: "a node that was replaced counts on", After: "a hand-off, where nobody deletes the old node by itself",
		Edits: []Edit{{"internal/queue/create.go", "if takesOver {\n\t\tmore", "if old != nil && s == nil {\n\t\tmore"}},
		Test:  Test{".", "TestAllNodesOfAClientCanEndInOneTransaction"},
	},
	{
		Name: "of permits only the last is watched while the lease is proven", After: "our own first version: the others were looked at again after each wait",
		Edits: []Edit{{"internal/queue/place.go", "\t\t\tx.watchSelf(0) // it will be long since our nodes were seen", "\t\t\tif x == &t.member {\n\t\t\t\tx.watchSelf(0)\n\t\t\t}"}},
		Test:  Test{".", "TestManyPermitsAreGrantedAsFastAsOne"},
	},
	{
		Name: "a grant does not mind the holds of its own client", After: "our own first version: each holder watches its own node",
		Edits: []Edit{{"internal/queue/place.go", "\tfor !t.recipe.limited {\n\t\tunwatched", "\tfor t.recipe == nil {\n\t\tunwatched"}},
		Test:  Test{".", "TestNobodyOfAClientHoldsBesideOneWhoseNodeIsGone"},
	},
	{
		Name: "a listing ends no hold of its own client", After: "our own first version: each holder watches its own node",
		Edits: []Edit{{"internal/queue/place.go", "\tt.c.holders.endMissing(t.contender, line.Has)\n", ""}},
		Test:  Test{".", "TestNobodyOfAClientHoldsBesideOneWhoseNodeIsGone"},
	},
	{
		Name: "who of a client came first is told by numbers alone", After: "our own first version: a directory is deleted and made anew",
		Edits: []Edit{{"internal/queue/holders.go", "\tif before != 0 {", "\tif before < 0 {"}},
		Test:  Test{".", "TestNobodyOfAClientHoldsBesideOneWhoseNodeIsGoneWhateverTheNumbers"},
	},
	{
		Name: "a node is gone before its holder was told", After: "our own first version: another goroutine could come in between",
		Edits: []Edit{{"internal/session/own.go", "\tif tell != nil {\n\t\ttell()\n\t}\n\tn.Gone.Set()", "\tn.Gone.Set()\n\tif tell != nil {\n\t\ttell()\n\t}"}},
		Test:  Test{"internal/session", "TestANodeIsGoneWhenItsHolderWasTold"},
	},
	{
		Name: "a number of permits is stored without a look at the path", After: "our own first version: Resize beside a held lock made permits of it",
		Edits: []Edit{{"internal/queue/permits.go", "\t\t\terr = s.Engine.notAQueue(ctx, sess, s.Dir)\n\t\t}\n\t\treturn n, err", "\t\t\terr = nil\n\t\t}\n\t\treturn n, err"}},
		Test:  Test{".", "TestNoNumberOfPermitsIsStoredWhereALockIs"},
	},
	{
		Name: "a lock leaves the directory of a semaphore that is about to begin", After: "our own first version",
		Edits: []Edit{{"internal/queue/neighbours.go", "\tcase !numbered && len(n.Data) > 0:", "\tcase !numbered:"}},
		Test:  Test{".", "TestALockAndASemaphoreThatComeAtOnceAreNotBothHeld"},
	},
	{
		Name: "a whole learns of the end of a part from a goroutine alone", After: "our own first version",
		Edits: []Edit{{"holding.go", "if g.ctx.Err() == nil && part.Context().Err() != nil {", "if g.ctx.Err() != nil && part.Context().Err() != nil {"}},
		Test:  Test{".", "TestTheWholeIsOverWhenAPartIsKnownToBeLost"},
	},
	{
		Name: "a Locker that panics leaves what was taken", After: "our own first version: only errors were thought of",
		Edits: []Edit{{"multi.go", "\tinside, all := ctx, false\n\tdefer func() {\n\t\tif all {", "\tinside, all := ctx, false\n\tdefer func() {\n\t\tif all || err == nil {"}},
		Test:  Test{".", "TestALockerThatDoesNotReturnLeavesNoLock"},
	},
	{
		Name: "the end of another hold is taken for that of one's own", After: "our own first version: a context can be derived from another hold's",
		Edits: []Edit{{"internal/outcome/outcome.go", "!isEnd(end) && isEnd(why)", "isEnd(end) && isEnd(why)"}},
		Test:  Test{".", "TestACallThatEndsWithAnotherHoldSaysNothingOfItsOwn"},
	},
	{
		Name: "a release under the hold's own context is not waited for", After: "our own first version: that context ends first",
		Edits: []Edit{{"hold.go", "\tif ctx.Err() != nil || !h.isAround(ctx) {", "\tif ctx.Err() != nil || h != nil {"}},
		Test:  Test{".", "TestUnlockUnderTheHoldsOwnContextWaits"},
	},
	{
		Name: "a second Close returns while the first is under way", After: "a flag in place of sync.Once",
		Edits: []Edit{{"zklock.go", "\t<-c.closed.Done() // a sync.Once", "\t// a sync.Once"}},
		Test:  Test{".", "TestEachOfTwoWhoCloseAtOnceWaits"},
	},
	{
		Name: "a watch that was refused says that its caller has ended it", After: "our own first version: it cancels a context of its own",
		Edits: []Edit{{"operate/queues.go", "failed(c.Explain(inside, err))\n\t\t}\n\t}\n}", "failed(c.Explain(following, err))\n\t\t}\n\t}\n}"}},
		Test:  Test{".", "TestAWatchOfWhatMayNotBeReadEnds"},
	},
	{
		Name: "a client that nobody has made has no engine", After: "our own first version: operate and slots ended in a nil pointer",
		Edits: []Edit{{"door.go", "c := owner{client.(*Client)}.c()", "c := client.(*Client)"}},
		Test:  Test{".", "TestAClientThatNobodyHasMadeIsInvalid"},
	},
	{
		Name: "an election has no leader as soon as the first node goes", After: "a loop that gives up: the history had no rule for who is told that there is none", Focus: "election",
		Edits: []Edit{{"election.go", "\t\t\tcase !errors.Is(err, zk.ErrNoNode):\n\t\t\t\treturn Contender{}, err\n", "\t\t\tdefault:\n\t\t\t\treturn Contender{}, nil\n"}},
	},
	{
		Name: "a place that is watched from now on wakes nobody", After: "our own first version: a goroutine that gave up had others wait for an hour",
		Edits: []Edit{{"localqueue.go", "if q.place == p && (q.running || len(", "if q.place == p && (len("}},
		Test:  Test{".", "TestAnIdlePlaceIsGivenUpThoughAWaiterHasGivenUpBefore"},
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
