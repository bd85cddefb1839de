package mutants

import "fmt"

// Table is every mutant.
var Table = []Mutant{
	{
		Name: "sessions are not compared", After: "go-zookeeper Lock takes a lock of the session before",
		Edits: []Edit{
			{"internal/conn/carried.go", "return l.session == s && !s.IsOver()", "return s != nil"},
		},
		Focus: "mutex", Faults: "expire|partition",
	},
	{
		Name: "another session id goes unnoticed", After: "go-zookeeper Conn on servers that do not restore sessions",
		Edits: []Edit{{"internal/conn/handshake.go", "same := l.session != nil && l.session.ID == id && !l.session.IsOver()", "same := l.session != nil && id != 0 && !l.session.IsOver()"}},
		Test:  Test{"internal/evidence/promises", "TestASessionReplacedWithoutAnEventEndsEveryHold"},
	},
	{
		Name: "an operator evicts from the front", After: "the next contender is granted, and then removed as a holder",
		Edits:   []Edit{{"operate/evict.go", "range slices.Backward(contenders)", "range slices.All(contenders)"}},
		Trouble: "evicts",
	},
	{
		Name: "Inspect shows one reader", After: "the first in line is not the only one who holds",
		Edits: []Edit{{"operate/inspect.go", "= i == 0 || f.Shared && !exclusive", "= i == 0"}},
		Focus: "rw", Trouble: "looks",
	},
	{
		Name: "Inspect believes a server that lags", After: "a queue is shown as it was",
		Edits:   []Edit{{"operate/inspect.go", "l, err := c.Requests.FreshList(ctx, s, c.Root+path)", "l, err := c.Requests.List(ctx, s, c.Root+path)"}},
		Trouble: "looks",
	},
	{
		Name: "a loss is reported twice", After: "a count of holds by events is one too low",
		Edits: []Edit{{"holding.go", "\t\tg.report(observe.Lost, why)\n", "\t\tg.report(observe.Lost, why)\n\t\tg.report(observe.Lost, why)\n"}},
	},
	{
		Name: "an observer believes what another's watch has shown", After: "its event was withheld",
		Edits: []Edit{{"internal/session/watch.go", "err != nil || now.Mzxid == v.Stat.Mzxid {", "err != nil || now != nil {"}},
		Test:  Test{"internal/evidence/promises", "TestANewObserverIsShownNothingThatWas"},
	},
	{
		Name: "a leader is asked for on a server that lags", After: "the caller gets the previous leader",
		Edits: []Edit{{"election.go", "l, err := e.c().engine.Requests.FreshList(ctx, s, dir)", "l, err := e.c().engine.Requests.List(ctx, s, dir)"}},
		Focus: "election",
	},
	{
		Name: "a leader's value is the one of its first day", After: "values are read when a leader is new",
		Edits: []Edit{{"watch.go", "\tsaw, err := v.Await(ctx, nil)\n\tif err == nil &&", "\tsaw, err := v.Await(ctx, nil)\n\tfor err == nil && saw == session.Changed {\n\t\tif v, err = o.lookAt(ctx, s, o.dir+\"/\"+first.Name); err == nil {\n\t\t\tsaw, err = v.Await(ctx, nil)\n\t\t}\n\t}\n\tif err == nil &&"}},
		Focus: "election",
	},
	{
		Name: "a connection request says only what the client library has seen", After: "a server that lags would take the session",
		Edits: []Edit{{"internal/conn/handshake.go", "return frames.SawRequest(p, l.session.seen.Load())", "return p"}},
		Test:  Test{"internal/conn", "TestAConnectionRequestSaysWhatOurAnswersHaveShown"},
	},
	{
		Name: "requests are sent before the credentials", After: "a server answers what it reads first",
		Edits: []Edit{{"internal/conn/tap.go", "present(t.serverConn, t.in, credentials)", "present(t.serverConn, t.in, credentials[:0])"}},
		Test:  Test{"internal/conn", "TestCredentialsThatAServerHasAcceptedComeFirstOnEveryConnection"},
	},
	{
		Name: "a credential is presented on its first connection only", After: "credentials belong to a connection, not to a session",
		Edits: []Edit{{"internal/conn/tap.go", "\t\tt.link.login.accept(asked.credential)\n", ""}},
		Test:  Test{"internal/evidence/promises", "TestAReconnectComesWithItsCredentialsFirst"},
	},
	{
		Name: "Close waits for a dial of the program's", After: "our own first version: a dialer may ignore its timeout",
		Edits: []Edit{{"internal/conn/dialer.go", "\tcase <-l.closing:\n\t\treturn nil, errClosed\n\t}\n}", "\t}\n}"}},
		Test:  Test{"internal/conn", "TestADialThatDoesNotReturnEndsWithTheLink"},
	},
	{
		Name: "what goes on waits for the observer", After: "our own first version: a server was left after the observer had returned",
		Edits: []Edit{{"internal/queue/observe.go", "case observe.Lost, observe.Ended, observe.HeartbeatMissed, observe.ExpiredEarly:", "case -1:"}},
		Test:  Test{"internal/evidence/promises", "TestASlowObserverOrLogHandlerCostsNoHold"},
	},
	{
		Name: "what goes on waits for the log handler", After: "our own first version: the client library wrote there between two dials",
		Edits: []Edit{{"zklock.go", "h.notices.Put(func() {", "func(do func()) { do() }(func() {"}},
		Test:  Test{"internal/evidence/promises", "TestASlowObserverOrLogHandlerCostsNoHold"},
	},
	{
		Name: "Close waits for an observer for as long as that takes", After: "our own first version",
		Edits: []Edit{{"zklock.go", "c.engine.Reporter.Notices.Close(limit)", "c.engine.Reporter.Notices.Close(nil)"}},
		Test:  Test{"internal/evidence/promises", "TestCloseTellsAllThatItHasTimeFor"},
	},
	{
		Name: "a server without a leader gives a session", After: "our own first version: a ClickHouse Keeper says so by its version alone",
		Edits: []Edit{{"internal/frames/checks.go", "binary.BigEndian.Uint32(body) == versionRejected", "binary.BigEndian.Uint32(body) == versionRejected+1"}},
		Test:  Test{"internal/evidence/promises", "TestAKeeperWithoutALeaderGivesNoSession"},
	},
	{
		Name: "servers in FIPS mode refuse a password", After: "our own first version: it was right",
		Edits: []Edit{{"internal/conn/login.go", "case errors.Is(err, zk.ErrAuthFailed): // before", "case errors.Is(err, frames.ErrNoLeader): // before"}},
		Test:  Test{"internal/evidence/promises", "TestALoginThatIsRefusedIsToldAtOnce"},
	},
	{
		Name: "a listing that is too long ends the connection", After: "our own first version: with the heartbeats of every hold",
		Edits: []Edit{{"internal/conn/tap.go", "if ours && size > limit {", "if size > limit && !ours {"}},
		Test:  Test{"internal/conn", "TestALongReplyEndsNoConnection"},
	},
	{
		Name: "the program's listing has a limit", After: "our own first version: Attach",
		Edits: []Edit{{"internal/conn/tap.go", "return math.MaxInt32, false", "return min(math.MaxInt32, frames.MaxFrame), false"}},
		Test:  Test{"internal/conn", "TestALongReplyEndsNoConnection"},
	},
	{
		Name: "heartbeats wait their turn", After: "our own first version: behind whatever the program sends",
		Edits: []Edit{{"internal/conn/outbox.go", "o.add(&o.beats, frame)", "o.add(&o.frames, frame)"}},
		Test:  Test{"internal/conn", "TestHeartbeatsGoFirst"},
	},
	{
		Name: "any number of bytes may be unanswered", After: "our own first version: an answer to a heartbeat comes after those to all that was sent before",
		Edits: []Edit{{"internal/conn/window.go", "const maxUnanswered = 1 << 20", "const maxUnanswered = 1 << 40"}},
		Test:  Test{"internal/evidence/promises", "TestLargeTransactionsCostNoHold"},
	},
	{
		Name: "the client library's requests need no room", After: "our own first version: Attach, where the program writes much",
		Edits: []Edit{{"internal/conn/tap.go", "t.room.reserveUntil(t.writeBy, len(r))", "t.room.use(len(r))"}},
		Test:  Test{"internal/evidence/promises", "TestLargeWritesOfTheProgramCostNoAttachedHold"},
	},
	{
		Name: "a server may take three seconds for a connection request", After: "our own first version: Attach, where the timeout of the session was not known",
		Edits: []Edit{{"internal/conn/tap.go", "limit = max(timeout/3, limit)", "limit = max(3*time.Second, limit, timeout/1e9)"}},
		Test:  Test{"internal/evidence/promises", "TestAnAttachedHoldOutlivesItsServerAndAFrozenOne"},
	},
	{
		Name: "the client library keeps the numbers of its requests", After: "two that count for themselves meet",
		Edits: []Edit{{"internal/conn/tap.go", "t.enter(r, nil, len(r))", "t.waiting[r.Xid()] = sentRequest{sent: now, op: r.Op(), xid: r.Xid()}"}},
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
		Test:  Test{"internal/evidence/promises", "TestAServerThatCannotProveThePasswordIsRefused"},
	},
	{
		Name: "a session whose login is refused is asked for again and again", After: "each request for a session renews it on the servers",
		Edits: []Edit{{"internal/conn/handshake.go", "(unknown && l.serves || l.login.isDenied())", "unknown"}},
		Test:  Test{"internal/evidence/promises", "TestASessionWhoseLoginIsRefusedEnds"},
	},
	{
		Name: "a refusal that came after a login is final", After: "one server may not have heard of a password yet",
		Edits: []Edit{{"internal/conn/tap.go", "\t\tt.link.login.admit()\n", ""}},
		Test:  Test{"internal/evidence/promises", "TestASessionWhoseLoginIsRefusedEnds"},
	},
	{
		Name: "a connection that exists already continues without a login", After: "Attach comes after the connection",
		Edits: []Edit{{"internal/conn/handshake.go", "if conn != nil {\n\t\tconn.Close()\n\t}\n}\n\n// IsDenied", "_ = conn\n}\n\n// IsDenied"}},
		Test:  Test{"internal/evidence/promises", "TestAConnectionThatIsThereAlreadyLogsInWhenItComesBack"},
	},
	{
		Name: "only the first connection logs in", After: "credentials belong to a connection, not to a session",
		Edits:   []Edit{{"internal/conn/tap.go", "if login != nil {", "if login != nil && t.link.Latest() == nil {"}},
		Trouble: "logins",
	},
	{
		Name: "a create without an answer is not looked for", After: "CreateProtectedEphemeralSequential, CURATOR-45",
		Edits: []Edit{{"internal/queue/create.go", `if t.Name != "" || outcome.WasNotSent(t.creation.err) {`, "if t.creation.err != nil || true {"}},
	},
	{
		Name: "a create without an answer is looked for on a server that lags", After: "CreateProtectedEphemeralSequential scans without a sync",
		Edits: []Edit{{"internal/session/request.go", "if err := r.askQuorum(ctx, s); err != nil {", "if err := ctx.Err(); err != nil {"}},
		Test:  Test{"internal/evidence/promises", "TestInspectIsNotFooledByALaggingServer"},
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
		Name: "foreign nodes are in the queue", After: "go-zookeeper Lock, Curator's semaphore count every child",
		Edits: []Edit{{"internal/node/names.go", "if e, ok := ParseEntry(name); ok {", "if e, ok := ParseEntry(name); ok || func() bool { e.Name = name; return true }() {"}},
	},
	{
		Name: "the predecessor has gone, so it is our turn", After: "a waiter before us may have given up",
		Edits: []Edit{{"internal/queue/handoff.go", "\tt.remove(left)\n", "\tt.remove(left)\n\tt.ahead = slices.Clone(behind)\n"}},
	},
	{
		Name: "a waiter counts those that it knows by name only", After: "the event of a waiter for permits",
		Edits: []Edit{{"internal/queue/turn.go", "Node: t.Name, Ahead: t.seen}", "Node: t.Name, Ahead: len(t.ahead)}"}},
		Test:  Test{"internal/evidence/promises", "TestEveryKindTellsHowManyAreBefore"},
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
		Name: "the one before the last was the last", After: "looking ahead and forgetting which node one waits for",
		Edits: []Edit{{"internal/queue/handoff.go", "slices.Clone(t.ahead[:i]), slices.Clone(t.ahead[i+1:])\n", "slices.Clone(t.ahead[:i]), t.ahead[:0]\n\tt.ahead = t.ahead[:i+1]\n"}},
	},
	{
		Name: "a look without an answer saw nothing", After: "an error taken for a missing node",
		Edits: []Edit{{"internal/queue/handoff.go", "\tif errors.Is(err, zk.ErrNoNode) {\n\t\tt.remove(e)", `	if err != nil && !t.Sess.IsOver() {
		t.remove(e)`}},
		Test: Test{"internal/evidence/promises", "TestACohortThroughAnyFault"},
	},
	{
		Name: "a note is believed to name all ahead", After: "the note's reader",
		Edits: []Edit{{"internal/queue/nearest.go", "n.ahead, n.beyond = slices.Delete(n.ahead, 0, i+1), 0", "n.ahead, n.beyond = n.ahead[:0], 0"}},
	},
	{
		Name: "those beyond the nearest are forgotten", After: "a waiter that keeps the nearest only",
		Edits: []Edit{{"internal/queue/nearest.go", "n.beyond = i + 1", "n.beyond = 0"}},
		Test:  Test{"internal/evidence/promises", "TestThoseBeyondTheNearestAreWaitedFor"},
	},
	{
		Name: "one that knows nobody any more is the first", After: "a waiter that keeps the nearest only",
		Edits: []Edit{{"internal/queue/handoff.go", "case t.unsure || t.beyond > 0:", "case t.unsure:"}},
		Test:  Test{"internal/evidence/promises", "TestThoseBeyondTheNearestAreWaitedFor"},
	},
	{
		Name: "a note that names one beyond the nearest is taken to speak of all beyond", After: "the note's reader, who does not know how many are between",
		Edits: []Edit{{"internal/queue/note.go", "\tif named >= 0 && t.isTimely(dir.Stat) {\n", "\tif ours {\n\t\tt.beyond = 0\n\t}\n\tif named >= 0 && t.isTimely(dir.Stat) {\n"}},
		Test:  Test{"internal/evidence/promises", "TestThoseBeyondTheNearestAreWaitedFor"},
	},
	{
		Name: "a listing leaves as many names as the last, which were of no use", After: "a loop of listings where many readers' writers let pass",
		Edits: []Edit{{"internal/queue/nearest.go", "n.window = min(2*n.window, math.MaxInt32)", "n.window = min(n.window, math.MaxInt32)"}},
		Test:  Test{"internal/queue", "TestAPlaceThatIsUsedUpKeepsMore"},
	},
	{
		Name: "the nearest that was met replaces the one that is not in the record", After: "a waiter that keeps what the lock-delay needs",
		Edits: []Edit{{"internal/queue/nearest.go", "\t\tif isUnrecorded(e) {\n\t\t\ti = j\n", "\t\tif isUnrecorded(e) {\n\t\t\ti = max(i, j)\n"}},
		Test:  Test{"internal/queue", "TestThoseMetTellTheUnrecorded"},
	},
	{
		Name: "a listing in progress is taken by a caller that requests it later", After: "single flight as caches do it",
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
		Edits: []Edit{{"internal/node/queue.go", "return l.Entries[:from:from], known\n", "return l.Entries[:from:from], known || len(l.Entries) > 0\n"}},
		Test:  Test{"internal/node", "FuzzOrder"},
	},
	{
		Name: "an event that is withheld is waited for", After: "every client: a watch is used up also where its event may not be told",
		Edits:   []Edit{{"internal/session/watch.go", "\t\t\tif !checking {\n", "\t\t\tif checking {\n"}},
		Trouble: "blind", Faults: "^blind$",
	},
	{
		Name: "a try does not look again where Curator's writer has left", After: "a list in which the writer's reader is missing",
		Edits: []Edit{{"internal/queue/turn.go", "\tfor t.unsure {\n", "\tfor t == nil {\n"}},
		Test:  Test{"internal/evidence/promises", "TestATryIsRefusedWhereCuratorsWriterBecomesAReader"},
	},
	{
		Name: "Curator's reader stands where its number is, though the counter has ended", After: "a position that is found by a number, or by the age of a node",
		Edits: []Edit{{"internal/queue/position.go", "\tt.positionReplaced(tied)\n", ""}},
		Test:  Test{"internal/evidence/promises", "TestNobodyIsGrantedBesideCuratorsDowngradedReader"},
	},
	{
		Name: "a waiter for permits has to know their new number", After: "our own first version: it agreed again in each session",
		Edits: []Edit{{"internal/queue/permits.go", `		if !agreed {
`, `		if agreed = false; !agreed {
`}},
		Test: Test{"internal/evidence/promises", "TestAWaiterWhoseSessionExpiresAfterAResizeQueuesAgain"},
	},
	{
		Name: "one that gives up leaves a note", After: "the note's one condition, where a holder stays",
		Edits: []Edit{{"internal/queue/contender.go", "return t.held && t.note != nil &&", "return t.note != nil &&"}},
		Test:  Test{"internal/evidence/promises", "TestWhoGivesUpAfterAReleaseLeavesNoNote"},
	},
	{
		Name: "a note from before the listing is news", After: "half of what makes a note timely",
		Edits: []Edit{{"internal/queue/note.go", "return dir.Mzxid > t.listed && dir.Mzxid <= dir.Pzxid", "return dir.Mzxid <= dir.Pzxid"}},
		Test:  Test{"internal/evidence/promises", "TestAForgedNoteGrantsNothing"},
	},
	{
		Name: "a note that was written by itself is believed", After: "the other half",
		Edits: []Edit{{"internal/queue/note.go", "return dir.Mzxid > t.listed && dir.Mzxid <= dir.Pzxid", "return dir.Mzxid > t.listed"}},
		Test:  Test{"internal/evidence/promises", "TestAForgedNoteGrantsNothing"},
	},
	{
		Name: "a client that trusts nobody believes a note", After: "an option with two places to be asked at",
		Edits:   []Edit{{"internal/queue/note.go", "\tif t.c.Unnoted.untrusted {\n", "\tif t == nil {\n"}},
		Trouble: "forged", Faults: "forged|delete",
	},
	{
		Name: "the leader of a batch stands for all", After: "one node of several is looked for",
		Edits: []Edit{{"internal/queue/batch.go", "\t\tif !queue.Has(x.Name) {\n", "\t\tif x == &t.member && !queue.Has(x.Name) {\n"}},
		Test:  Test{"internal/evidence/promises", "TestABatchOfWhichAListingShowsAPartIsNotGranted"},
	},
	{
		Name: "what was seen of a directory is known for hours", After: "a directory that is created again has the same versions",
		Edits: []Edit{{"internal/queue/dircache.go", "recentLife = 10 * time.Second", "recentLife = 10 * time.Hour"}},
		Test:  Test{"internal/evidence/promises", "TestADirectoryThatWasMadeAnewKeepsItsData"},
	},
	{
		Name: "the first in line for permits does not hear that its place is gone", After: "two nodes, of which one is watched",
		Edits: []Edit{{"internal/queue/permits.go", "inside, stop := untilGone(ctx, &queueNode.OwnNode)", "inside, stop := session.Either(ctx, ctx)"}},
		Test:  Test{"internal/evidence/promises", "TestTheFirstInLineForPermitsWhosePlaceIsGoneLetsOthersPass"},
	},
	{
		Name: "a lost create is forgotten a session timeout after its session", After: "a new leader gives every session a whole timeout",
		Edits: []Edit{{"internal/session/pending.go", "> 2*g.Sess.Lease.Term()", "> g.Sess.Lease.Term()"}},
		Test:  Test{"internal/evidence/promises", "TestALostCreateIsLookedForUntilNoServerHasItsSession"},
	},
	{
		Name: "a try for permits passes one that is just asking", After: "who asks has no permit yet",
		Edits: []Edit{{"internal/queue/permits.go", "for i, sub := range []string{node.LeasesDir, node.PermitQueueDir} {", "for i, sub := range []string{node.LeasesDir} {"}},
		Test:  Test{"internal/evidence/promises", "TestATryForPermitsPassesNobodyWhoIsJustAsking"},
	},
	{
		Name: "an acquire of permits counts twice until its node in the queue is gone", After: "a try is refused although a permit is free and no caller waits",
		Edits: []Edit{{"internal/queue/permits.go", `if group := node.GroupOf(e.Name); group == "" || !counted[group] {`, `if group := node.GroupOf(e.Name); group == "" || counted != nil {`}},
		Test:  Test{"internal/queue", "TestAnAcquireThatHasReturnedCountsOnce"},
	},
	{
		Name: "the line that says that an observer is slow has no session", After: "a program with two clients cannot tell which one it is",
		Edits: []Edit{{"zklock.go", "append(sessionOf(l), \"duration\"", "append([]any(nil), \"duration\""}},
		Test:  Test{"internal/evidence/promises", "TestASlowObserverIsReported"},
	},
	{
		Name: "a call that has acquired its lock is still counted as waiting", After: "the number of waiters only grows",
		Edits: []Edit{{"recipe.go", "\tdefer c.waiting.Add(-1)\n", ""}},
		Test:  Test{"internal/evidence/promises", "TestAClientHasStatistics"},
	},
	{
		Name: "the guardian does not count the command's timeout", After: "a job that hangs while zklock is stopped runs on",
		Edits: []Edit{{"cmd/zklock/internal/guardian/guard.go", "g.job.Timeout > 0 && g.limit.left() <= 0", "g.job.Timeout < 0 && g.limit.left() <= 0"}},
		Test:  Test{"cmd/zklock/internal/guardian", "TestTheGuardianEndsACommandThatHasRunForItsTimeout"},
	},
	{
		Name: "a command that is ended because of its timeout loses the lock before it has ended", After: "a process that ignores KILL for a while runs at the same time as the next holder",
		Edits: []Edit{{"cmd/zklock/internal/guardian/orders.go", "r == leftover || r == overran", "r == leftover"}},
		Test:  Test{"cmd/zklock/internal/guardian", "TestTheGuardianEndsACommandThatHasRunForItsTimeout"},
	},
	{
		Name: "a wait for permits does not say so", After: "context deadline exceeded, and nothing else",
		Edits: []Edit{{"internal/queue/permits.go", "\t\tqueueNode.setReason(lacksPermits{k, max(0, limit-made.seen), limit})\n", "\t\t_, _ = k, limit\n"}},
		Test:  Test{"internal/queue", "TestTheFirstInTheQueueForPermitsSaysHowManyItWaitsFor"},
	},
	{
		Name: "a goroutine of a cohort does not say what it has waited for", After: "context deadline exceeded, and nothing else",
		Edits: []Edit{{"localqueue.go", "outcome.WaitedFor(context.Cause(w.ctx), waitedFor)", "outcome.CauseOf(w.ctx, errors.New(waitedFor))"}},
		Test:  Test{"internal/evidence/promises", "TestAGoroutineOfACohortSaysWhatItHasWaitedFor"},
	},
	{
		Name: "a lock's path looks like a contender's node", After: "a lock named by a time stamp blocks the lock of its parent for ever",
		Edits: []Edit{{"internal/node/paths.go", "\treturn checkElement(path, BaseName(path))\n", "\treturn nil\n"}},
		Test:  Test{"internal/node", "TestPathsAreCheckedByZooKeepersRules"},
	},
	{
		Name: "a number of permits returns to an earlier one", After: "the waiters have sent the earlier one",
		Edits: []Edit{{"internal/queue/permits.go", "cmp.Or(s.latest, s.Total)", "cmp.Or(s.Total, s.latest)"}},
		Test:  Test{"internal/queue", "TestANumberOfPermitsDoesNotReturnToAnEarlierOne"},
	},
	{
		Name: "who accepts the stored number makes a directory without one", After: "zero permits would be stored",
		Edits: []Edit{{"internal/queue/permits.go", "s.number() == 0 && (err == nil", "s.number() < 0 && (err == nil"}, {"internal/queue/permits.go", "zk.ErrNoNode) && s.number() != 0:", "zk.ErrNoNode):"}},
		Test:  Test{"internal/evidence/promises", "TestACallerCanAcceptTheStoredNumber"},
	},
	{
		Name: "holds hand over hand keep all earlier ones", After: "1.3 kB and a longer walk with each step",
		Edits: []Edit{{"hold.go", "\tc.outer.Store(outer)\n\tif c.hold.hasNoEffect() {", "\tif c.hold.hasNoEffect() {"}},
		Test:  Test{"internal/evidence/promises", "TestHoldsHandOverHandDoNotPileUp"},
	},
	{
		Name: "Resize uses a name that a lock can have", After: "our own first version: a lock there breaks it",
		Edits: []Edit{{"internal/queue/permits.go", "dir + \"/\" + node.ResizedName", "dir + \"/\" + node.ResizedName[:len(\"resized\")]"}},
		Test:  Test{"internal/queue", "TestResizeNeedsNoNameThatALockCanHave"},
	},
	{
		Name: "a wait for the proof of the session does not say so", After: "context deadline exceeded, and nothing else",
		Edits: []Edit{{"internal/queue/proof.go", "\t\tt.setReason(isUnproven{t.Sess.Lease})\n", ""}},
		Test:  Test{"internal/queue", "TestAWaitForProofOfTheSessionSaysSo"},
	},
	{
		Name: "a request is passed on by a look before a registration", After: "a request in between wakes nobody",
		Edits: []Edit{{"internal/session/ownnode.go", "\tr.mu.Lock()\n\tr.also = append(r.also, to)\n\tr.mu.Unlock()\n\tif r.Requested.IsSet() {\n", "\theard := r.Requested.IsSet()\n\tr.mu.Lock()\n\tr.also = append(r.also, to)\n\tr.mu.Unlock()\n\tif heard {\n"}},
		Test:  Test{"internal/session", "TestARequestThatComesWhileItIsPassedOnIsNotLost"},
	},
	{
		Name: "a call stays on the client's context", After: "context.AfterFunc without its stop",
		Edits: []Edit{{"internal/session/wait.go", "\t\tstop()\n\t\tcancel(nil)\n", "\t\t_ = stop\n\t\tcancel(nil)\n"}},
		Test:  Test{"internal/session", "TestAContextThatIsLeftIsNotKeptByTheOther"},
	},
	{
		Name: "a shared listing loses the nodes of a batch", After: "slices.DeleteFunc changes its argument",
		Edits: []Edit{{"internal/queue/batch.go", "slices.DeleteFunc(slices.Clone(ahead), ", "slices.DeleteFunc(ahead, "}},
		Test:  Test{"internal/queue", "TestTheListingIsLeftAsItIsWithoutOurNodes"},
	},
	{
		Name: "a shared listing is given the order that one caller has read", After: "entries are changed in place",
		Edits: []Edit{{"internal/queue/position.go", "slices.Clone(queue.Entries), own", "queue.Entries, own"}},
		Test:  Test{"internal/queue", "TestTheListingIsLeftAsItIsWhenNumbersDoNotShowTheOrder"},
	},
	{
		Name: "a wait that has ended is still shown", After: "a registration without its removal",
		Edits: []Edit{{"internal/queue/turn.go", "\tdefer c.waits.remove(w)\n\trevocation := new(session.Revocation)", "\trevocation := new(session.Revocation)"}},
		Test:  Test{"internal/queue", "TestAWaitForAContenderSaysForWhich"},
	},
	{
		Name: "a refused deletion is reported to nobody", After: "a background retry without an end, and without a message",
		Edits: []Edit{{"internal/queue/cleanup.go", "\t\t\tc.Requests.Log.Warn(\"zklock: deletion of own node refused, trying again\", \"path\", c.Requests.Shown(t.Dir), \"node\", node.BaseName(t.anyPath()), \"err\", err)\n", "\t\t\t_ = node.BaseName\n"}},
		Test:  Test{"internal/queue", "TestANodeThatCannotBeDeletedIsReported"},
	},
	{
		Name: "pings renew the lease", After: "every client that trusts its connection's state",
		Edits: []Edit{{"internal/lease/lease.go", "\tr.forget(got)\n\tif of != OfServer {", "\tl.prove(sent)\n\tr.forget(got)\n\tif of != OfServer {"}},
		Test:  Test{"internal/evidence/promises", "TestEveryHoldEndsBeforeAnyoneElseHolds"},
	},
	{
		Name: "a server that takes a session back vouches for it", After: "a leader that was cut off takes back its clients' sessions, on real servers",
		Edits: []Edit{{"internal/lease/lease.go", "\tl.run = &Run{l: l, beats: []*beat{{sent: sent, steps: upstream, from: got.Mono}}}\n", "\tl.prove(sent)\n\tl.run = &Run{l: l, beats: []*beat{{sent: sent, steps: upstream, from: got.Mono}}}\n"}},
		Test:  Test{"internal/lease", "TestBeingTakenBackCountsFromWhenTheLeaderHasAnsweredOnThatConnection"},
	},
	{
		Name: "a run counts across connections", After: "design: a deposed leader keeps a run without a gap while the next one lets the session run out",
		Edits: []Edit{{"internal/lease/lease.go", "\tl.run = &Run{l: l, beats: []*beat{{sent: sent, steps: upstream, from: got.Mono}}}\n", "\told := l.run\n\tl.run = &Run{l: l, beats: []*beat{{sent: sent, steps: upstream, from: got.Mono}}}\n\tif old != nil {\n\t\tl.run.heard, l.run.since = old.heard, old.since\n\t}\n"}},
		Test:  Test{"internal/lease", "TestARunExtendsNoProofAcrossConnections"},
	},
	{
		Name: "a session that was taken back was heard by the answer to that", After: "design: the answer can be that to an earlier request",
		Edits: []Edit{{"internal/lease/lease.go", "\tl.run = &Run{l: l, beats", "\tl.run = &Run{l: l, heard: sent, since: got, beats"}},
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
		Test:  Test{"internal/evidence/promises", "TestAReaderThatLostItsNodeIsGrantedNothing"},
	},
	{
		Name: "the lease counts from the receipt of an answer", After: "redsync, redisson and others",
		Edits: []Edit{{"internal/lease/lease.go", "\t\tl.proven = touch\n", "\t\tl.proven = l.now()\n"}},
		Seeds: 480,
		Test:  Test{"internal/lease", "TestAProofDatesFromTheOlderOfTwoTouches"},
	},
	{
		Name: "what was answered has reached the leader with the next write", After: "our own first argument",
		Edits: []Edit{{"internal/lease/lease.go", "b.steps == upstream && !b.from.After(t)", "b.steps >= touched && !b.from.Add(r.l.halfTick()-r.l.lag()).After(t)"}},
		Test:  Test{"internal/lease", "TestEveryStepOfAProofIsNeeded"},
	},
	{
		Name: "one sync proves that the leader has pinged", After: "a leader that paused",
		Edits: []Edit{{"internal/lease/lease.go", "\tb.steps++\n", "\tif b.steps++; b.steps == 3 {\n\t\tb.steps = upstream\n\t}\n"}},
		Test:  Test{"internal/lease", "TestEveryStepOfAProofIsNeeded"},
	},
	{
		Name: "the leader's ping is never late", After: "design: half a tick is needed",
		Edits: []Edit{{"internal/lease/lease.go", "got.Mono.Add(l.lag())", "got.Mono"}},
		Test:  Test{"internal/lease", "TestEveryStepOfAProofIsNeeded"},
	},
	{
		Name: "a touch is never lost", After: "LearnerSessionTracker swaps its table after it was serialised",
		Edits: []Edit{{"internal/lease/lease.go", "\tcase touched:\n", "\tcase touched:\n\t\tb.sent = sent\n"}},
		Test:  Test{"internal/lease", "TestAProofDatesFromTheOlderOfTwoTouches"},
	},
	{
		Name: "a lease that ran out revives at once", After: "the expirer takes a whole bucket",
		Edits: []Edit{{"internal/lease/lease.go", "r.joins() || !r.settled().After(sent.Mono)", "r.joins() || !r.since.Mono.After(sent.Mono)"}},
		Test:  Test{"internal/lease", "TestAfterAGapATransactionProvesOnlyWhenTheRunHasSettled"},
	},
	{
		Name: "heartbeats follow one another without a bound", After: "our own first version: sixty-five reads in a session of one tick",
		Edits: []Edit{{"internal/lease/next.go", "l.timeout/12)", "l.timeout/60)"}},
		Test:  Test{"internal/evidence/promises", "TestAShortSessionHasFewHeartbeats"},
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
		Edits: []Edit{{"internal/session/heartbeat.go", "due, wait := s.Lease.Next(b.h.kept.isAny(s))", "due, wait := lease.Due{}, time.Duration(never)"}},
	},
	{
		Name: "a silent server is waited for as long as the client library does", After: "two thirds of the timeout, when short leases have ended",
		Edits: []Edit{{"internal/session/heartbeat.go", `	b.h.requests.Link.Abandon(b.s)
`, ""}},
		Test: Test{"internal/evidence/promises", "TestAFollowerThatFailsCostsNoHold"},
	},
	{
		Name: "what has taken long takes no longer the next time", After: "our own: where disks are slow, each server was left before it could answer",
		Edits: []Edit{{"internal/lease/next.go", "max(l.timeout/5, 2*l.slow)", "l.timeout/5"}},
		Test:  Test{"internal/evidence/promises", "TestServersThatAreAllSlowKeepNobodyWaitingForEver"},
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
		Test:  Test{"internal/evidence/promises", "TestAFollowerThatFailsCostsNoHold"},
	},
	{
		Name: "a server that fails has as long as the lease", After: "our own: a third of the timeout left a command no time to end",
		Edits: []Edit{{"internal/lease/next.go", "max(l.timeout/5, 2*l.slow)", "max(l.timeout/3, 2*l.slow)"}},
		Test:  Test{"internal/evidence/promises", "TestAFollowerThatFailsCostsNoHold"},
	},
	{
		Name: "only a heartbeat asks the quorum", After: "our own: who becomes the next in line waited long without asking",
		Edits: []Edit{{"internal/queue/handoff.go", `	t.watchSelf(0)
	t.c.Heart.Keep(&t.OwnNode)
`, `	t.watchSelf(0)
`}, {"internal/queue/handoff.go", `		t.c.Heart.Keep(&t.OwnNode) // otherwise grant would have to wait for the quorum
`, ""}, {"internal/queue/proof.go", "t.Sess.Lease.IsAmple; !isEnough()", "t.Sess.Lease.Fresh; !isEnough()"}},
		Test: Test{"internal/evidence/promises", "TestAHoldThatNobodyExpectedHasFourTenthsOfTheTimeoutLeft"},
	},
	{
		Name: "the next in line asks no quorum while it waits", After: "our own: its grant waited for an answer",
		Edits: []Edit{{"internal/queue/handoff.go", `		t.c.Heart.Keep(&t.OwnNode) // otherwise grant would have to wait for the quorum
`, ""}},
		Test: Test{"internal/evidence/promises", "TestEveryHandOffTakesOneRoundTrip"},
	},
	{
		Name: "a grant needs no fresh lease", After: "etcd's lock returned without a look at its own lease",
		Edits: []Edit{{"internal/queue/proof.go", "for isEnough := t.Sess.Lease.IsAmple; !isEnough(); isEnough = t.Sess.Lease.Fresh {", "for isEnough := t.Sess.Lease.IsAmple; !isEnough() && t.Sess.IsOver(); {"}, {"internal/queue/proof.go", "return !t.isUnseen() && t.Sess.Lease.Fresh() && ", "return !t.isUnseen() && "}},
		Test:  Test{"internal/evidence/promises", "TestAGrantOnStaleEvidenceIsConfirmedByTheQuorum"},
	},
	{
		Name: "holders do not watch their own node", After: "Curator, kazoo, go-zookeeper",
		Edits: []Edit{{"internal/queue/selfwatch.go", `	for !g.left.Load() {
		v, err := g.watch(g.c.Requests.Life)
`, `	for g == nil {
		v, err := g.watch(g.c.Requests.Life)
`}, {"internal/queue/selfwatch.go", `	return v != nil && !g.node.IsGone() && v.Latest().IsCurrent()
`, `	return v == nil
`}, {"internal/queue/selfwatch.go", `	n := g.node
`, `	n := g.node
	if g != nil {
		return nil
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
		Edits: []Edit{{"internal/queue/position.go", "err = t.c.Directories.MakeDir(ctx, s, t.Dir, t.recipe.depth())", "err = a.err"}},
	},
	{
		Name: "who lost its place does not queue again", After: "CURATOR-518, twitter-commons #20",
		Edits: []Edit{{"internal/queue/turn.go", "if !errors.Is(err, outcome.ErrSessionOver) && !errors.Is(err, outcome.ErrGone) {", "if ctx.Err() != nil || !errors.Is(err, outcome.ErrGone) {"}},
	},
	{
		Name: "who lost its node does not queue again", After: "an operator's delete ends the acquire",
		Edits: []Edit{{"internal/queue/turn.go", "if !errors.Is(err, outcome.ErrSessionOver) && !errors.Is(err, outcome.ErrGone) {", "if !errors.Is(err, outcome.ErrSessionOver) {"}},
	},
	{
		Name: "a waiter does not notice the end of its session", After: "kazoo #282, etcd #19597",
		Edits: []Edit{
			{"internal/session/watch.go", "\t\tcase <-s.Over():\n\t\tcase", "\t\tcase"},
			{"internal/session/view.go", `	case v.watch.key.sess.IsOver():
		return 0, outcome.ErrSessionOver
	case ctx`, `	case ctx`},
			{"internal/session/view.go", `		case <-v.watch.key.sess.Over():
			return nil, outcome.ErrSessionOver
`, ""},
		},
		Seeds: 480,
	},
	{
		Name: "the token is the sequence number", After: "it starts again with the directory",
		Edits: []Edit{{"internal/queue/contender.go", "t.Name, t.czxid = node.BaseName(path), czxid", "own, _ := node.ParseEntry(node.BaseName(path))\n\t\tt.Name, t.czxid = own.Name, int64(own.Seq)+1"}},
	},
	{
		Name: "the directory's last change is everybody's token", After: "those in the middle of the queue are older",
		Edits: []Edit{{"internal/queue/position.go", "t.listed, t.looked = l.Stat.Mzxid, l.At\n", "t.listed, t.looked, t.czxid = l.Stat.Mzxid, l.At, l.Stat.Pzxid\n"}},
	},
	{
		Name: "a transaction goes without its guard", After: "a stopped process that wakes up",
		Edits: []Edit{{"hold.go", "guard := h.Guard()\n", "guard := h.Guard()[:0]\n"}},
	},
	{
		Name: "the end of a client reaches no waiter", After: "it listens to its caller and to its watch only",
		Edits: []Edit{{"internal/session/watch.go", "\t\tcase <-t.requests.Life.Done():\n", "\t\tcase <-t.requests.CleanupCtx.Done():\n"}},
		Test:  Test{"internal/evidence/promises", "TestCloseEndsEveryWaitAtOnce"},
	},
	{
		Name: "the end of a client waits until watches can be set again", After: "which it does not while no server takes its credentials",
		Edits: []Edit{{"internal/session/rearm.go", "Ask(r.requests.Life, r.requests, s,", "Ask(r.requests.CleanupCtx, r.requests, s,"}},
		Test:  Test{"internal/evidence/promises", "TestCloseEndsEveryWaitAtOnce"},
	},
	{
		Name: "a call that has sent nothing continues in a client that has ended", After: "its two contexts are joined by nobody",
		Edits: []Edit{{"internal/session/wait.go", "return c.Context.Done(), c.life.Done()", "return c.Context.Done(), nil"}},
		Test:  Test{"internal/evidence/promises", "TestCloseEndsEveryWaitAtOnce"},
	},
	{
		Name: "every call joins its contexts", After: "half a kilobyte of each waiter",
		Edits: []Edit{{"internal/session/wait.go", "return c.Context.Done(), c.life.Done()", "return c.Done(), nil"}},
		Test:  Test{"internal/evidence/promises", "TestAWaiterTakesTwoKilobytes"},
	},
	{
		Name: "a connection keeps the room of its longest listing", After: "it is as long as the queue",
		Edits: []Edit{{"internal/frames/reader.go", "cap(r.buf) > short", "cap(r.buf) > 16*chunk"}},
		Test:  Test{"internal/evidence/promises", "TestAWaiterTakesTwoKilobytes"},
	},
	{
		Name: "a waiter stays away from the queue when its node is gone", After: "only the next in line look at their nodes, so the others do not learn of it",
		Edits: []Edit{{"internal/queue/member.go", "\treturn m.Gone.Done()\n", "\treturn nil\n"}},
		Test:  Test{"internal/evidence/promises", "TestAWaiterWhoseNodeWasDeletedQueuesAgainAtOnce"},
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
		t.requests.Link.SendNow(w.key.sess, missing, &call[struct{}]{read: readNothing})
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
		Name: "entering a lost lock again succeeds", After: "Curator counts up whatever has happened",
		Edits: []Edit{{"reentrant.go", "case cause != nil:", "case cause == context.Canceled:"}},
		Test:  Test{"internal/evidence/promises", "TestEnteringALostHoldFails"},
	},
	{
		Name: "entering again queues again", After: "a lock that is not reentrant",
		Edits: []Edit{{"reentrant.go", "return h == nil && err == nil\n", "h = nil\n\t\treturn err == nil\n"}},
		Focus: "reentrant",
	},
	{
		Name: "a leader resigns while its function is at work", After: "client-go's ReleaseOnCancel",
		Edits: []Edit{{"do.go", "\terr := fn(inside)\n", "\tcontext.AfterFunc(inside, func() { h.Unlock(context.Background()) })\n\terr := fn(inside)\n"}},
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
		Name: "a writer waits for writers only", After: "CURATOR-621: a writer together with a reader",
		Edits: []Edit{{"rwmutex.go", "Infix: node.WriterInfix, Rule: node.AfterAll}", "Infix: node.WriterInfix, Rule: node.AfterExclusive}"}},
		Focus: "rw",
	},
	{
		Name: "readers do not notice a downgrade", After: "they wait until the writer is gone",
		Edits: []Edit{{"rwmutex.go", "Rule: node.AfterExclusive, Shared: true, Passes: node.IsDowngraded}", "Rule: node.AfterExclusive, Shared: true}"}},
		Test:  Test{"internal/evidence/promises", "TestReadersBesideADowngradedWriterDoNotWaitForTheLockDelay"},
	},
	{
		Name: "a downgrade leaves its place", After: "Curator before CURATOR-621",
		Edits: []Edit{{"rwmutex.go", `	o.Shared = true
	return h.rewrite(ctx, o.Encode())`, `	o.Shared = true
	return h.of().c.Requests.Delete(ctx, h.of().nodes[0].Sess, h.of().nodes[0].Path(), -1)`}},
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
		Edits: []Edit{{"internal/queue/permits.go", "return limit, made.seen+k <= limit, err", "return limit, made.seen+k <= limit+1, err"}},
		Focus: "semaphore",
	},
	{
		Name: "permits of one acquire are made one after the other", After: "Curator's semaphore, our own first version",
		Edits: []Edit{
			{"internal/queue/batch.go", "\t\tops = append(ops, t.creationOf(x, data))\n\t}\n\tcreated :=", `		if x == &t.member {
			ops = append(ops, t.creationOf(x, data))
			continue
		}
		path, _ := t.c.Requests.Create(t.c.Requests.Life, t.Sess, t.nameless(x), data, zk.FlagEphemeralSequential, t.c.Directories.ACL)
		x.Name = node.BaseName(path)
	}
	created :=`},
			{"internal/queue/batch.go", "\t\tmembers := t.members()\n", "\t\tmembers := []*member{&t.member}\n"},
		},
		Test: Test{"internal/evidence/promises", "TestPermitsAreTakenAndGivenUpTogether"},
	},
	{
		Name: "of several permits one is given up", After: "each node has an owner until it is gone (C7)",
		Edits: []Edit{{"internal/queue/batch.go", "left := slices.DeleteFunc(t.members(), func", "left := slices.DeleteFunc([]*member{&t.member}, func"}},
		Focus: "semaphore",
	},
	{
		Name: "of several permits that were given up all but one are asked for on and on", After: "our own first version: a batch was removed node by node, and the removal of all but its leader's was forgotten",
		Edits: []Edit{{"internal/queue/cleanup.go", "defer t.unkeep()", "defer c.Heart.Unkeep(&t.OwnNode)"}},
		Test:  Test{"internal/evidence/promises", "TestPermitsThatAreGivenUpAreNotAskedForAnyMore"},
	},
	{
		Name: "permits of an acquire that failed stay", After: "CURATOR-315, CURATOR-335",
		Edits: []Edit{{"internal/queue/turn.go", "\t\tc.discard(ctx, err, t)\n\t\tif ctx.Err() != nil {", "\t\tif t == nil || !t.recipe.limited {\n\t\t\tc.discard(ctx, err, t)\n\t\t}\n\t\tif ctx.Err() != nil {"}},
		Focus: "semaphore",
	},
	{
		Name: "the place among those who ask stays", After: "CURATOR-462",
		Edits: []Edit{{"internal/queue/permits.go", "defer s.Engine.remove(queueNode.contender)", "defer s.Engine.Heart.Unkeep(&queueNode.OwnNode)"}},
		Focus: "semaphore",
	},
	{
		Name: "a new number of permits wakes nobody", After: "the directory's watch does not see its data",
		Edits: []Edit{
			{"internal/queue/permits.go", "resized := dir", "_ = dir"},
			{"internal/queue/permits.go", `				&zk.CreateRequest{Path: resized, Acl: s.Engine.Directories.ACL},
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
		Edits: []Edit{{"internal/queue/position.go", "counted.dir == nil || counted.dir.NumChildren != 1 {", "counted.dir == nil {"}},
	},
	{
		Name: "a look at our own node does not grow old", After: "our own first version: a slow read came between",
		Edits: []Edit{{"internal/queue/proof.go", "return time.Since(t.looked) > aloneGrace", "return time.Since(t.looked) > aloneGrace && t.c == nil"}},
		Test:  Test{"internal/evidence/promises", "TestPermitsThatVanishBeforeTheGrantAreNotGranted"},
	},
	{
		Name: "a number of permits is believed that a lagging server tells", After: "our own first version",
		Edits: []Edit{{"internal/queue/permits.go", "session.UpToDate(ctx, s.Engine.Requests, sess, func() (int, error) { return s.limit(ctx, sess) })", "s.limit(ctx, sess)"}},
		Test:  Test{"internal/evidence/promises", "TestALaggingServerMakesNobodyDisagreeAboutTheLimit"},
	},
	{
		Name: "permits are granted before the place among those who ask is looked at", After: "our own first version: the look waited for a reconnect, and the permits were gone by then",
		Edits: []Edit{
			{"internal/queue/permits.go", `		err = made.grant(ctx, queueNode)
`, `		if err = made.grant(ctx, nil); err == nil && queueNode != nil {
			err = queueNode.isThere(ctx)
		}
`},
		},
		Test: Test{"internal/evidence/promises", "TestWhatWasMadeSureOfFirstIsLookedAtAgain"},
	},
	{
		Name: "one of several nodes may go while another is being made sure of", After: "our own first version: permits were looked at one after the other",
		Edits: []Edit{{"internal/queue/proof.go", "if t.allIntact() && (queueNode == nil || queueNode.isIntact()) {", "if t.Sess != nil {"}},
		Test:  Test{"internal/evidence/promises", "TestWhatWasMadeSureOfFirstIsLookedAtAgain"},
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
		Name: "several locks are not given up when one fails", After: "Curator's multi lock continues",
		Edits: []Edit{{"multi.go", "h.Unlock(ctx) // if", "_ = h // if"}},
		Focus: "mutex",
	},
	{
		Name: "where a writer of Curator's has gone, nobody is left", After: "our own first version, in all branches but one",
		Edits: []Edit{{"internal/queue/nearest.go", "\tn.noticeReplaced(n.ahead[i])\n", ""}},
		Test:  Test{"internal/evidence/promises", "TestNobodyIsGrantedBesideCuratorsDowngradedReader"},
	},
	{
		Name: "who was ahead has gone, so we were there", After: "our own first version: two goroutines saw the two events",
		Edits: []Edit{
			{"internal/queue/selfwatch.go", "\tn := g.node\n", "\tn := g.node\n\tif g.view.Load() != nil && !n.IsGone() {\n\t\treturn nil\n\t}\n"},
			{"internal/queue/selfwatch.go", " && v.Latest().IsCurrent()\n", "\n"},
		},
		Test: Test{"internal/evidence/promises", "TestAWaiterWhoseOwnNodeWasDeletedFirstIsNotGranted"},
	},
	{
		Name: "a sync is the quorum's word", After: "our own first version: a leader that was replaced answers it",
		Edits: []Edit{{"internal/session/request.go", "if err := r.askQuorum(ctx, s); err != nil {", `if err := r.Sync(ctx, s, "/"); err != nil {`}},
		Seeds: 480,
		Test:  Test{"internal/evidence/promises", "TestALookAtTheQueueIsTheQuorums"},
	},
	{
		Name: "what is not there now was never made", After: "our own first version: the create was still on its way to the leader",
		Edits: []Edit{{"internal/queue/create.go", `t.findNames(genuine)
	if t.Name == "" {`, `t.findNames(genuine)
	if t.Name == "" && t.c == nil {`}},
		Seeds: 480,
		Test:  Test{"internal/evidence/promises", "TestACreateThatRunsLateIsRemovedWhenItAppears"},
	},
	{
		Name: "one heartbeat waits for the answer to the other", After: "where answers are slow, each proves too late what the last has touched",
		Edits: []Edit{{"internal/lease/next.go", "\td, period := Due", "\tfor _, b := range r.beats {\n\t\tif b.steps < upstream {\n\t\t\treturn\n\t\t}\n\t}\n\td, period := Due"}},
		Test:  Test{"internal/evidence/promises", "TestAHoldFarFromItsServersIsCertainAllTheTime"},
	},
	{
		Name: "what the end of a hold cuts off was not done", After: "our own first version: the transaction had committed",
		Edits: []Edit{{"hold.go", "\t\tif errors.Is(err, end) {\n\t\t\treturn fmt.Errorf(\"%w: %v\", ErrUncertain, err)", "\t\tif errors.Is(err, end) {\n\t\t\treturn err"}},
		Test:  Test{"internal/evidence/promises", "TestAGuardedTransactionSaysWhatWasDone"},
	},
	{
		Name: "of many slots the last in time are forgotten", After: "marks kept in the order of marking: the newest was marked first",
		Edits: []Edit{{"slots/marks.go", "slices.SortFunc(p.Done, func(a, b mark) int { return strings.Compare(a.Slot, b.Slot) })", "_ = strings.Compare"}},
		Test:  Test{"internal/evidence/promises", "TestASlotThatIsForgottenIsNotDone"},
	},
	{
		Name: "a mark is settled before its hold's node is gone", After: "a transaction stays in a server that the client has left",
		Edits: []Edit{{"slots/slots.go", "if errors.Is(err, zk.ErrNoNode) {\n\t\t\tfound, err", "if err == nil || errors.Is(err, zk.ErrNoNode) {\n\t\t\tfound, err"}},
		Test:  Test{"internal/evidence/promises", "TestAMarkWaitsUntilItsHoldsNodeIsGone"},
	},
	{
		Name: "a host whose clock is ahead marks the slots of others", After: "our own first version: no run for fifty minutes",
		Edits: []Edit{{"slots/slots.go", "case err != nil || !s.isTimed() || s.name <= s.latest(n):", "case err != nil || s.cut.period >= 0:"}},
		Test:  Test{"internal/evidence/promises", "TestAClockThatIsAheadSilencesNobody"},
	},
	{
		Name: "marks of the future count as the last sixteen", After: "the servers' clock was ahead, too",
		Edits: []Edit{{"slots/marks.go", "return d.Slot > latest })", "return d.Slot > latest && false })"}},
		Test:  Test{"internal/evidence/promises", "TestMarksOfServersWhoseClockWasAheadSilenceNobody"},
	},
	{
		Name: "a slot that is forgotten counts as done", After: "our own first version: nobody was told that it was not done",
		Edits: []Edit{{"slots/marks.go", "return mark{}, ErrForgotten", "return mark{}, ErrDone"}},
		Test:  Test{"internal/evidence/promises", "TestASlotThatIsForgottenIsNotDone"},
	},
	{
		Name: "finished work is not marked when its caller has gone", After: "our own first version: the next host did it again",
		Edits: []Edit{{"slots/slots.go", "context.WithTimeout(context.WithoutCancel(ctx), 2*", "context.WithTimeout(ctx, 2*"}},
		Test:  Test{"internal/evidence/promises", "TestFinishedWorkIsMarkedThoughItsContextHasEnded"},
	},
	{
		Name: "a day has 24 hours", After: "our own first version: a run was skipped when the clocks changed",
		Edits: []Edit{{"slots/marks.go", "if c.period <= time.Hour {", "if c.period > 0 {"}},
		Test:  Test{"internal/evidence/promises", "TestADayIsOneOfTheCalendar"},
	},
	{
		Name: "holders are evicted before those that wait", After: "our own first version: each next one was granted for an instant",
		Edits: []Edit{{"operate/evict.go", "return append(waiting, holding...)", "return append(holding, waiting...)"}},
		Test:  Test{"internal/evidence/promises", "TestEvictingEverybodyGrantsNobodyAndLeavesNobody"},
	},
	{
		Name: "an evicted waiter queues again", After: "our own first version",
		Edits: []Edit{{"internal/queue/grant.go", "slices.Contains(b.Evicted, x.guid) {", "slices.Contains(b.Evicted, x.guid) && t.c == nil {"}},
		Test:  Test{"internal/evidence/promises", "TestAnEvictedWaiterIsToldHoweverLongItWaits"},
	},
	{
		Name: "Close of a client counts as a loss for FailStop", After: "the two ends of a hold are not told apart",
		Edits: []Edit{{"do.go", "if !errors.Is(why, ErrLost) {", "if !errors.Is(why, ErrLost) && h.of().c.FailStop == nil {"}},
		Test:  Test{"internal/evidence/promises", "TestASuddenLossLeavesAFunctionTimeToReturn"},
	},
	{
		Name: "a function that returns at once is too late for FailStop", After: "our own first version: an eviction ended its process",
		Edits: []Edit{{"do.go", "time.NewTimer(grace - time.Since(endedAt))", "time.NewTimer(-time.Since(endedAt))"}},
		Test:  Test{"internal/evidence/promises", "TestASuddenLossLeavesAFunctionTimeToReturn"},
	},
	{
		Name: "one that holds without knowing it is evicted without a mark", After: "our own first version: it queued again and did its work",
		Edits: []Edit{{"operate/evict.go", `if guid == "" || !c.Unnoted.MayNote`, `if contender.Holds || guid == "" || !c.Unnoted.MayNote`}},
		Test:  Test{"internal/evidence/promises", "TestOneThatHoldsWithoutKnowingItIsToldThatItWasEvicted"},
	},
	{
		Name: "one that was stopped looks for no mark when its session is over", After: "our own first version: it queued again and did its work",
		Edits: []Edit{{"internal/queue/grant.go", "!errors.Is(err, outcome.ErrGone) && !errors.Is(err, outcome.ErrSessionOver) || t.guid", "!errors.Is(err, outcome.ErrGone) || t.guid"}},
		Test:  Test{"internal/evidence/promises", "TestOneThatHoldsWithoutKnowingItIsToldThatItWasEvicted"},
	},
	{
		Name: "a node with children cannot be evicted", After: "our own first version: who may create can block a lock for good",
		Edits: []Edit{{"operate/evict.go", `if errors.Is(err, zk.ErrNotEmpty) {
			_, err = session.Persist`, `if errors.Is(err, zk.ErrNotEmpty) && c.Engine == nil {
			_, err = session.Persist`}},
		Test: Test{"internal/evidence/promises", "TestANodeWithChildrenCanBeEvicted"},
	},
	{
		Name: "permits that left with an evicted one are not held", After: "our own first version, where the operator is slow",
		Edits: []Edit{{"operate/evict.go", "errors.Is(err, zklock.ErrNotHeld) && evicted[group]", "errors.Is(err, zklock.ErrNotHeld) && evicted[group] && c.Engine == nil"}},
		Test:  Test{"internal/evidence/promises", "TestASlowOperatorEvictsAllPermits"},
	},
	{
		Name: "what no session ends is evicted for any session", After: "our own first version: session 0 was anybody's",
		Edits: []Edit{{"operate/evict.go", "err == nil && n.Stat.EphemeralOwner != contender.Session {", "err == nil && (contender.Session == 0 || n.Stat.EphemeralOwner != contender.Session) {"}},
		Test:  Test{"internal/evidence/promises", "TestWhatNoSessionEndsCanBeEvicted"},
	},
	{
		Name: "a function that has returned waits for a server", After: "our own first version",
		Edits: []Edit{{"holding.go", "\t\t\treturn errUnanswered\n", "\t\t\tleft = time.Second\n"}},
		Test:  Test{"internal/evidence/promises", "TestDoReturnsThoughThereIsNoServer"},
	},
	{
		Name: "a try waits for another connection", After: "our own first version: the lost create was looked for",
		Edits: []Edit{{"internal/queue/turn.go", "if c.Requests.Link.AwaitLoss(inside, s, changed, again) {", "if c.Requests.Link.AwaitLoss(inside, s, changed, again) && s == nil {"}},
		Test:  Test{"internal/evidence/promises", "TestAnAttemptAnswersWhenItsConnectionIsLost"},
	},
	{
		Name: "containers are asked for however often servers hang up", After: "our own first version",
		Edits: []Edit{{"internal/session/support.go", "p.hangUps, p.hungUp = p.hangUps+1, on", "p.hungUp = on"}},
		Test:  Test{"internal/evidence/promises", "TestServersThatHangUpOnUnknownRequestsAreStood"},
	},
	{
		Name: "a connection that carried a session needs no pause", After: "our own first version: 500 connections in no time",
		Edits: []Edit{{"internal/conn/handshake.go", "if time.Since(l.since) >= steady {", "if time.Since(l.since) >= 0 {"}},
		Test:  Test{"internal/evidence/promises", "TestAConnectionThatEndsWithItsHandshakeIsNotRepeatedAtOnce"},
	},
	{
		Name: "a session that is over keeps its connection", After: "our own first version: nobody asked for another session",
		Edits: []Edit{{"internal/conn/tap.go", "return ErrSessionOver // some servers", "return nil // some servers"}},
		Test:  Test{"internal/evidence/promises", "TestAnExpiryOnAnOpenConnectionIsFollowedByAnotherSession"},
	},
	{
		Name: "who asks for a new session names the newest transaction of the old one", After: "go-zookeeper: a restored ensemble refuses it for ever",
		Edits: []Edit{{"internal/conn/handshake.go", "return frames.NewSessionRequest(p)", "return p"}},
		Test:  Test{"internal/evidence/promises", "TestAClientComesBackToAnEnsembleWithEarlierTransactions"},
	},
	{
		Name: "a refused release ends there", After: "our own first version",
		Edits:   []Edit{{"internal/queue/cleanup.go", "\t\t\t\tt.keepDeleting(c.Requests.Life)\n", ""}},
		Trouble: "withheld", Faults: "^withheld$",
	},
	{
		Name: "a node that its owner cannot read is held", After: "our own first version: Confirm knew nothing and said so with nil",
		Edits: []Edit{{"internal/queue/selfwatch.go", `		g.node.MarkGone(session.ErrUnreadable)
`, ""}, {"internal/session/heartbeat.go", `			t.MarkGone(ErrUnreadable)
`, "\t\t\tcontinue\n"}},
		Test: Test{"internal/evidence/promises", "TestAHoldWhoseNodeCannotBeReadAnyMoreIsLost"},
	},
	{
		Name: "a request to release reaches only contenders that hold already", After: "an operator asks who waits, and it holds a moment later",
		Edits: []Edit{{"internal/queue/selfwatch.go", "\tif g.node.Hear(seen) {", "\tif g.left.Load() && g.node.Hear(seen) {"}},
	},
	{
		Name: "any writer is taken for an operator", After: "any write into a node, as Curator's Revoker is noticed by some",
		Edits: []Edit{{"internal/session/ownnode.go", "\tif !node.IsRevocation(d.Data) {", "\tif len(d.Data) == 0 {"}},
	},
	{
		Name: "a request to release stays with the place in the queue for permits", After: "our own first version",
		Edits: []Edit{{"internal/queue/cleanup.go", `		t.Hear(n)
		t.hasRead(n.Stat.Version)`, `		t.hasRead(n.Stat.Version)`}},
		Test: Test{"internal/evidence/promises", "TestARequestIsNotLostBetweenThePlaceAndThePermits"},
	},
	{
		Name: "one that waits for permits does not hear", After: "our own first version",
		Edits: []Edit{{"internal/queue/permits.go", `			x.Revocation = queueNode.Revocation //`, `			_, _ = x, queueNode.Revocation //`}},
		Test:  Test{"internal/evidence/promises", "TestOneThatWaitsForPermitsIsToldWhenItHolds"},
	},
	{
		Name: "who writes its data forgets that it was asked", After: "our own first version",
		Edits: []Edit{{"hold.go", "t.Path(), t.Shown(value), n.Stat.Version)", "t.Path(), value, n.Stat.Version)"}},
		Test:  Test{"internal/evidence/promises", "TestWritingOnesDataKeepsTheRequestToLetGo"},
	},
	{
		Name: "values are proclaimed side by side", After: "our own first version: the node had one, the client the other",
		Edits: []Edit{{"hold.go", "\tcase turn <- struct{}{}:\n\t\tdefer func() { <-turn }()\n", "\tcase turn <- struct{}{}:\n\t\t<-turn\n"}},
		Test:  Test{"internal/evidence/promises", "TestARefusedProclaimLeavesTheValueOfTheNext"},
	},
	{
		Name: "a leader works though its leadership is over", After: "our own first version",
		Edits: []Edit{{"do.go", "\tif err := h.unlessOver(\"do\"); err != nil {\n\t\treturn term{", "\tif err := ctx.Err(); err != nil {\n\t\treturn term{"}},
		Test:  Test{"internal/evidence/promises", "TestRunPassesOverALeadershipThatIsOver"},
	},
	{
		Name: "terms follow each other without a pause", After: "our own first version: 10,130 terms in a second",
		Edits: []Edit{{"election.go", `		p.Next(pausing) // if`, `		_ = pausing // if`}},
		Test:  Test{"internal/evidence/promises", "TestRunPausesAfterTermsThatEndAtOnce"},
	},
	{
		Name: "permits beyond the limit are not shown as held", After: "our own first version, after a Resize",
		Edits: []Edit{{"operate/inspect.go", "\t\t\tp.Holds = true\n", "\t\t\tp.Holds = within(i)\n"}},
		Test:  Test{"internal/evidence/promises", "TestInspectShowsAllHoldersAfterAResize"},
	},
	{
		Name: "one that waits for permits is shown twice", After: "our own first version",
		Edits: []Edit{{"operate/inspect.go", "\t\t\tcontinue // its place in the queue is shown instead\n", "\t\t\tp.Holds = false // its place in the queue is shown instead\n"}},
		Test:  Test{"internal/evidence/promises", "TestInspectShowsOneThatWaitsForPermitsOnce"},
	},
	{
		Name: "contenders are read one after the other", After: "our own first version: 10,002 round trips",
		Edits: []Edit{{"operate/inspect.go", "const readersAtOnce = 16", "const readersAtOnce = 1"}},
		Test:  Test{"internal/evidence/promises", "TestInspectOfAThousandIsNotAThousandRoundTrips"},
	},
	{
		Name: "attempts that fail give no event", After: "our own first version",
		Edits: []Edit{{"recipe.go", "\t\tc.observeFailure(ctx, w, time.Since(start), err)\n", ""}},
		Test:  Test{"internal/evidence/promises", "TestAnAttemptGivenUpOrRefusedIsObserved"},
	},
	{
		Name: "nobody asks for proof while a node is being deleted", After: "our own: a release that lost one answer was not waited for",
		Edits: []Edit{{"internal/queue/cleanup.go", "\t\tc.Heart.Leave(&x.OwnNode)\n", "\t\tc.Heart.Unkeep(&x.OwnNode)\n"}},
		Test:  Test{"internal/evidence/promises", "TestNoFaultOfAHolderShortensTheLockDelay"},
	},
	{
		Name: "a silent server is only left for what is kept", After: "a client that held nothing waited as long as the client library does",
		Edits: []Edit{{"internal/session/heartbeat.go", "\tsince, waiting :=", "\tif !b.h.kept.isAny(b.s) {\n\t\treturn never\n\t}\n\tsince, waiting :="}},
		Test:  Test{"internal/evidence/promises", "TestALockThatASilentServerIsAskedForComesFromAnother"},
	},
	{
		Name: "a grant does not report its wait for the proof", After: "the lease's two questions",
		Edits: []Edit{{"internal/queue/proof.go", "\tt.proving += time.Since(began)\n", "\t_ = began\n"}},
		Test:  Test{"internal/evidence/promises", "TestAGrantTellsHowLongItWaitedForTheProof"},
	},
	{
		Name: "a try says that it took no time", After: "our own first version",
		Edits: []Edit{{"recipe.go", "ev.Elapsed, ev.Proving = took, proving", "ev.Proving = proving"}},
		Test:  Test{"internal/evidence/promises", "TestAnAttemptThatSucceedsTellsHowLongItTook"},
	},
	{
		Name: "a hold that Close ends gives no event", After: "our own first version",
		Edits: []Edit{{"holding.go", "case !errors.Is(why, ErrReleased):\n\t\tg.report(observe.Ended, why)\n", "case true:\n"}},
		Test:  Test{"internal/evidence/promises", "TestEveryHoldEndsWithOneEvent"},
	},
	{
		Name: "no answer is no news", After: "our own first version: a cut came without the early warning",
		Edits: []Edit{{"internal/session/heartbeat.go", "\tb.h.missed(errSilent)\n", ""}},
		Test:  Test{"internal/evidence/promises", "TestAMissedHeartbeatIsObservedBeforeTheLoss"},
	},
	{
		Name: "hooks of another connection are waited for", After: "our own first version",
		Edits: []Edit{{"zklock.go", "\t\tif apart == 4 {", "\t\tif apart < 0 {"}},
		Test:  Test{"internal/evidence/promises", "TestHooksOfAnotherConnectionAreRefused"},
	},
	{
		Name: "the tick counts from the next session on", After: "our own first version, with Attach",
		Edits: []Edit{{"internal/conn/link.go", "\t\tl.session.Lease.SetTick(tick)\n", "\t\t_ = tick\n"}},
		Test:  Test{"internal/evidence/promises", "TestATickTimeCountsForAConnectionThatIsThereAlready"},
	},
	{
		Name: "a server's refusal is the quorum's word", After: "our own first version",
		Edits: []Edit{{"internal/conn/evidence.go", "case frames.CodeOK, frames.CodeNoNode,", "case frames.CodeOK, -102, frames.CodeNoNode,"}},
		Test:  Test{"internal/evidence/promises", "TestARefusalByOneServerIsNoQuorums"},
	},
	{
		Name: "only a version guards a number of permits", After: "our own first version: a directory that was created again has the same",
		Edits: []Edit{{"internal/queue/permits.go", "if err := keeps.enter(ctx, sess); err != nil {", "if err := ctx.Err(); err != nil {"},
			{"internal/queue/permits.go", "s.setLimit(n, s.number()), &zk.DeleteRequest{Path: keeps.Path(), Version: -1})", "s.setLimit(n, s.number()))"}},
		Test: Test{"internal/evidence/promises", "TestNoNumberOfPermitsIsStoredInADirectoryThatWasMadeAnew"},
	},
	{
		Name: "who queues again owns twice", After: "our own first version: waiters got ErrLimit when their nodes were deleted",
		Edits: []Edit{{"internal/queue/turn.go", " && !errors.Is(err, outcome.ErrGone) {\n\t\treturn\n", " {\n\t\treturn\n"}},
		Test:  Test{"internal/evidence/promises", "TestWaitersThatQueueAgainDoNotOwnTwice"},
	},
	{
		Name: "a create that may still run is not counted", After: "our own first version: more than two megabytes ended with a session",
		Edits: []Edit{{"internal/queue/create.go", "Owns: t.countedFor(x), ", ""}, {"internal/queue/create.go", "\t\tt.counted = 0 // from now on it is counted there\n", ""}},
		Test:  Test{"internal/evidence/promises", "TestACreateThatRunsLateIsCountedAmongWhatTheClientOwns"},
	},
	{
		Name: "a create that cannot run any more counts for ever", After: "none: a network that loses requests would use the limit up",
		Edits: []Edit{{"internal/session/pending.go", "g.Sess.Own(-g.Owns, 0)", "_ = g"}},
		Test:  Test{"internal/evidence/promises", "TestACreateThatCannotRunAnyMoreIsNotCounted"},
	},
	{
		Name: "what a server throttles is not sent again", After: "our own first version: of half of the requests a heartbeat came of few",
		Edits: []Edit{{"internal/session/request.go", "const maxAsks = 6", "const maxAsks = 1"}},
		Test:  Test{"internal/evidence/promises", "TestAServerThatThrottlesCostsNoHold"},
	},
	{
		Name: "a try waits for a server that does nothing", After: "our own first version: for ever, while the session lived",
		Edits: []Edit{{"internal/queue/turn.go", "func() { cut(errUnserved) }", "func() {}"}, {"internal/queue/turn.go", "	errUnserved = fmt", "	_ = fmt"}},
		Test:  Test{"internal/evidence/promises", "TestATryThatIsAlwaysThrottledEnds"},
	},
	{
		Name: "a lock and a semaphore share a path", After: "our own first version: both held",
		Edits: []Edit{{"internal/queue/conflicts.go", "if !queue.Permits {", `if !queue.Permits || dir != "" {`}},
		Test:  Test{"internal/evidence/promises", "TestALockAndASemaphoreAtOnePathAreRefused"},
	},
	{
		Name: "a note that was refused is tried at every release", After: "our own first version: two round trips each",
		Edits: []Edit{{"internal/queue/dircache.go", "!m.refused.has(dir, math.MaxInt64)", "(!m.refused.has(dir, math.MaxInt64) || dir != \"\")"}},
		Test:  Test{"internal/evidence/promises", "TestWithoutWritePermissionANoteIsTriedOnce"},
	},
	{
		Name: "an observer that panics leaves a hold", After: "our own first version: until the client was closed",
		Edits: []Edit{{"recipe.go", "if !returned {", "if !returned && h == nil {"}},
		Test:  Test{"internal/evidence/promises", "TestAnObserverThatPanicsLeavesNoHold"},
	},
	{
		Name: "a lock stands where another one's record is", After: "our own first version: each wrote over the other",
		Edits: []Edit{{"internal/node/names.go", " || strings.HasSuffix(name, RecordSuffix)", ""}},
		Test:  Test{"./internal/node", "TestPathsAreCheckedByZooKeepersRules"},
	},
	{
		Name: "heartbeats check whichever of many nodes come first", After: "our own first version: they were drawn each time",
		Edits: []Edit{{"internal/session/turns.go", "	k.last++\n	for", "	for"}},
		Test:  Test{"internal/evidence/promises", "TestHeartbeatsOfManyHoldsAreSmallAndCheckEachInTurn"},
	},
	{
		Name: "short holds take the turn of a long one", After: "our own second version: who had not been found came first",
		Edits: []Edit{{"internal/session/turns.go", "	k.last++\n	k.kept[t], t.Kept = k.last, true", "	k.last++\n	k.kept[t], t.Kept = 1, true"}},
		Test:  Test{"internal/evidence/promises", "TestShortHoldsDoNotTakeTheTurnOfALongOne"},
	},
	{
		Name: "a heartbeat checks a thousand nodes", After: "our own first version: 70 kB in the log of each server",
		Edits: []Edit{{"internal/session/turns.go", "const maxChecks = 10_000", "const maxChecks = 1_000_000"}},
		Test:  Test{"internal/evidence/promises", "TestHeartbeatsOfManyHoldsAreSmallAndCheckEachInTurn"},
	},
	{
		Name: "one heartbeat asks for all nodes at once", After: "our own first version: more than a server's request can be",
		Edits: []Edit{{"internal/session/turns.go", "size > most && i > 0 {", "size < 0 {"}},
		Test:  Test{"internal/evidence/promises", "TestRequestsAboutManyHoldsStayWithinALimit"},
	},
	{
		Name: "the rhythm of heartbeats knows nothing of how long answers take", After: "our own: of two ticks 0.335 remained",
		Edits: []Edit{{"internal/lease/next.go", "-4*l.slow", ""}},
		Test:  Test{"internal/lease", "TestHeartbeatsKeepFourTenthsCertain"},
	},
	{
		Name: "a heartbeat begins with two reads although a sync is due", After: "our own first version: 91 requests a minute instead of 68",
		Edits: []Edit{{"internal/lease/next.go", "if next.Step == Sync &&", "if next.Step == Sync && r == nil &&"}},
		Test:  Test{"internal/evidence/promises", "TestOnlyHoldersAndTheNextInLineAskTheQuorum"},
	},
	{
		Name: "heartbeats that waited for another tick prove something", After: "by reading: SetTick kept them",
		Edits: []Edit{{"internal/lease/lease.go", "\t\tl.run.beats = nil\n", ""}},
		Test:  Test{"internal/lease", "TestHeartbeatsThatWentByAnotherTickProveNothing"},
	},
	{
		Name: "a waiter is granted what a transaction under way would prove too late", After: "our own first version: 0.397 at round trips of 300 ms",
		Edits: []Edit{{"internal/lease/next.go", "left-wait >= l.timeout*2/5", "left-0*wait >= l.timeout*2/5"}},
		Test:  Test{"internal/lease", "TestWhatIsAmple"},
	},
	{
		Name: "a sync that was throttled counts as one that was answered", After: "an answer of one server",
		Edits: []Edit{{"internal/lease/lease.go", " || b.steps >= touched && of != OfLeader", ""}},
		Test:  Test{"internal/lease", "TestARequestThatFailedIsDueAgainAPauseLater"},
	},
	{
		Name: "the rhythm of heartbeats leaves less than four tenths", After: "our own first version: 12 % were left after a wait",
		Edits: []Edit{{"internal/lease/next.go", "l.timeout*548/1000", "l.timeout*748/1000"}},
		Test:  Test{"internal/evidence/promises", "TestAWarmHoldHasFourTenthsOfTheTimeoutLeftAtEveryMoment"},
	},
	{
		Name: "a session that expired early is not reported", After: "two held a lock, and nobody learned of it",
		Edits: []Edit{{"internal/session/heartbeat.go", "left := b.s.EndedEarly(); left > 0", "left := b.s.EndedEarly(); left < 0"}},
		Test:  Test{"internal/evidence/promises", "TestALeaderWithALongTickIsReported"},
	},
	{
		Name: "the end of a session dates from when a server reported it", After: "after a long reconnect the lease has run out",
		Edits: []Edit{{"internal/conn/session.go", "s.deleted.Store(&deletion{s.Lease.Remaining(), time.Now()})", "s.deleted.Store(&deletion{0, time.Now()})"}},
		Test:  Test{"internal/evidence/promises", "TestASessionThatExpiredEarlyIsReportedAfterALongReconnect"},
	},
	{
		Name: "every deleted node is one of a session that expired", After: "an operator's delete before an outage is reported as a broken assumption",
		Edits: []Edit{{"internal/conn/tap.go", "\ts.replied()\n", ""}},
		Test:  Test{"internal/evidence/promises", "TestANodeThatAnOperatorDeletedIsNoSessionThatExpiredEarly"},
	},
	{
		Name: "a node deleted before the server fell silent is one of a session that expired", After: "our own first version: seed 2, once in 80 runs",
		Edits: []Edit{{"internal/conn/handshake.go", "\t\ts.disconnected()\n", "\t\t_ = s\n"}},
		Test:  Test{"internal/evidence/promises", "TestANodeDeletedBeforeTheServerFellSilentIsNoSessionThatExpiredEarly"},
	},
	{
		Name: "a lost lock looks like the caller's own cancellation", After: "our own first version: a program takes it for a clean stop",
		Edits: []Edit{{"do.go", "err != nil && err == inside.Err()", "err == ErrLost"}},
		Test:  Test{"internal/evidence/promises", "TestAFunctionThatWasStoppedEarlySaysThatTheLockWasLost"},
	},
	{
		Name: "a server in memory has the address of a real one", After: "our own first version: a test without a dialer locks on a developer's server, and passes",
		Edits: []Edit{{"zktest/network.go", "233.252.0.%d:2181", "127.0.0.%d:2181"}},
		Test:  Test{"internal/evidence/promises", "TestAServerInMemoryIsNotDialedWithASocket"},
	},
	{
		Name: "a tick is at most a quarter of the timeout", After: "our own first version",
		Edits: []Edit{{"internal/lease/lease.go", "func (l *Lease) SetTick(tick time.Duration) {\n", "func (l *Lease) SetTick(tick time.Duration) {\n\ttick = min(tick, l.timeout/4)\n"}},
		Test:  Test{"internal/evidence/promises", "TestATickTimeCountsForAConnectionThatIsThereAlready"},
	},
	{
		Name: "two goroutines of a process hold at once", After: "the shared place's first condition",
		Edits: []Edit{{"sharedplace.go", "return !p.isHeld() && p.holding.ctx", "return p.holding.ctx"}, {"localqueue.go", "\tif len(q.waiting) > 0 && p.admits(", "\tfor len(q.waiting) > 0 && p.admits("}},
		Focus: "cohort",
	},
	{
		Name: "goroutines of a cohort follow one another on a node", After: "equal tokens, and a guard that commits during a later hold",
		Edits: []Edit{{"localqueue.go", "\t\tq.wakeRun()\n", "\t\tif len(q.waiting) > 0 && !p.isHeld() {\n\t\t\tq.admitFirst(p, q.c.engine.Requests.Link.Now())\n\t\t\treturn\n\t\t}\n\t\tq.wakeRun()\n"}},
		Focus: "cohort",
	},
	{
		Name: "the loss of a place ends no hold of a goroutine", After: "the context is the goroutine's own",
		Edits: []Edit{{"hold.go", "life, end := context.WithCancelCause(g.ctx)", "life, end := context.WithCancelCause(context.WithoutCancel(g.ctx))"}},
		Focus: "cohort",
	},
	{
		Name: "an observer that panics at a release keeps the place", After: "our own first version: a caller that recovers, as net/http does, kept the lock",
		Edits: []Edit{{"localqueue.go", "\tdefer func() {\n\t\tp.free()\n\t\tq.changed(p)\n\t}()\n\tp.report(observe.Released, h.since, nil)\n", "\tp.report(observe.Released, h.since, nil)\n\tp.free()\n\tq.changed(p)\n"}},
		Test:  Test{"internal/evidence/promises", "TestAnObserverThatPanicsAtAReleaseLeavesThePlaceOfACohortFree"},
	},
	{
		Name: "the next node is created next to the old one", After: "a hand-off in two requests, of which one can get lost",
		Edits: []Edit{{"internal/queue/alone.go", "ops = append(ops, &zk.DeleteRequest{Path: old.Path(), Version: -1})", "ops = append(ops, old.Exists())"}},
		Focus: "cohort",
	},
	{
		Name: "an attempt that fails leaves the old node", After: "the transaction would have deleted it",
		Edits: []Edit{{"internal/queue/turn.go", "outcomes = append(outcomes, c.remove(a.replaces))", "c.Heart.Unkeep(&a.replaces.OwnNode)"}},
		Test:  Test{"internal/evidence/promises", "TestAHandOffThatIsGivenUpBeforeItHappensLeavesNothing"},
	},
	{
		Name: "an old node that cannot be replaced stays", After: "its deletion was refused, not its existence",
		Edits: []Edit{{"internal/queue/position.go", "\t\t\tt.c.remove(a.takeReplaced())\n", "\t\t\ta.takeReplaced()\n"}},
		Test:  Test{"internal/evidence/promises", "TestAHandOffThatIsRefusedLeavesNoOldNode"},
	},
	{
		Name: "a node that somebody has deleted is replaced for ever", After: "the transaction is refused each time",
		Edits: []Edit{{"internal/queue/position.go", "\t\t\tt.c.remove(a.takeReplaced())\n", "\t\t\tt.c.remove(a.replaces)\n"}},
		Test:  Test{"internal/evidence/promises", "TestAKeptNodeThatSomebodyHasDeletedIsNotReplaced"},
	},
	{
		Name: "who was there before the watch is not seen", After: "the answer that comes with a watch is not read",
		Edits: []Edit{{"sharedplace.go", "p.wanted || wanted || v == nil", "p.wanted || v == nil"}},
		Test:  Test{"internal/evidence/promises", "TestAStrangerThatQueuedWhileTheLockWasHeldEndsAKeptPlace"},
	},
	{
		Name: "a place waits for its watch for as long as that takes", After: "our own first version, where an event was withheld",
		Edits: []Edit{{"sharedplace.go", "Lease.Term()/8 - now", "Lease.Term()*100 - now"}},
		Test:  Test{"internal/evidence/promises", "TestAPlaceWhoseWatchIsDeadIsGivenUp"},
	},
	{
		Name: "all who wait at the grant come before others", After: "they may have asked after those",
		Edits: []Edit{{"localqueue.go", "q.current, p.lastAhead, p.runs = p, q.lastAhead, q.runs", "q.current, p.lastAhead, p.runs = p, q.lastNumber, q.runs"}},
		Test:  Test{"internal/evidence/promises", "TestAGoroutineTakesNoPlaceThatWasAskedForBefore"},
	},
	{
		Name: "a busy process never releases", After: "those who only look write nothing",
		Edits: []Edit{{"sharedplace.go", "return now.Mono.Sub(r.since) >= r.length }", "return now.Mono.Sub(r.since) >= 1000*r.length }"}},
		Test:  Test{"internal/evidence/promises", "TestATryInALoopGetsInBesideABusyCohort"},
	},
	{
		Name: "a busy process releases for no moment", After: "the next node is there before anybody can look",
		Edits: []Edit{{"internal/cohort/nextstep.go", "case s.Waiting > 0 && s.RunOver:", "case s.Waiting > 1000 && s.RunOver:"}},
		Test:  Test{"internal/evidence/promises", "TestATryInALoopGetsInBesideABusyCohort"},
	},
	{
		Name: "a place that was asked for is kept", After: "the request is for the place",
		Edits: []Edit{{"sharedplace.go", "\tp.wanted = p.wanted || p.holding.revocation.Requested.IsSet()\n", ""}},
		Test:  Test{"internal/evidence/promises", "TestARequestToLetGoEndsASharedPlace"},
	},
	{
		Name: "a place that cannot be watched is kept", After: "an error taken for silence",
		Edits: []Edit{{"sharedplace.go", "p.wanted || wanted || v == nil", "p.wanted || wanted"}},
		Test:  Test{"internal/evidence/promises", "TestAPlaceThatCannotBeWatchedIsNotShared"},
	},
	{
		Name: "a goroutine that holds in a cohort waits for itself", After: "the hold is not the context's",
		Edits: []Edit{{"cohort.go", "case k.c().holdsUnder(ctx, k.path, \"\"):", "case k.c().holdsUnder(ctx, k.path, cohortRecipe.Name):"}},
		Test:  Test{"internal/evidence/promises", "TestACohortUnderItsOwnHoldIsADeadlock"},
	},
	{
		Name: "a hold that has ended is one's own for as long as its place is kept", After: "the place outlives it",
		Edits: []Edit{{"hold.go", "if h.local != nil && h.Context().Err() != nil {", "if h.local != nil && h.Context() == nil {"}},
		Test:  Test{"internal/evidence/promises", "TestACohortUnderItsOwnHoldIsADeadlock"},
	},
	{
		Name: "a watch that is not requested yet has lapsed", After: "our own: a reconnect between two statements ended the program",
		Edits: []Edit{{"internal/session/view.go", "if !w.isSet() || !w.view.on", "if w.fired != 0 || !w.view.on"}},
		Test:  Test{"internal/session", "TestAWatchThatIsNotRequestedYetDoesNotLapse"},
	},
	{
		Name: "a watch that nobody waits for sleeps through its event", After: "a hold has no goroutine while nothing happens",
		Edits: []Edit{{"internal/session/watch.go", "\t\towner(saw)\n\t\tw.end()", "\t\tw.end()"}},
		Test:  Test{"internal/evidence/promises", "TestClientsOfOneConnectionAllLearnOfALoss"},
	},
	{
		Name: "an event that overtakes the answer to its watch is not seen", After: "go-zookeeper registers a watch when it is answered",
		Edits: []Edit{{"internal/session/view.go", "if fired || w.view.State == Requested {", "if fired {"}},
		Test:  Test{"internal/session", "TestAChangeBeforeTheReplyIsNotLost"},
	},
	{
		Name: "a watch is not set again though its connection has changed", After: "it was set again for no waiter",
		Edits: []Edit{{"internal/session/watch.go", "t.rearming.renew(s, t.of(s))", "t.rearming.renew(s, t.of(nil))"}},
		Test:  Test{"internal/evidence/promises", "TestAWaiterWakesThoughItsWatchWasLostInAReconnect"},
	},
	{
		Name: "a watch is set again from the last transaction that was seen", After: "a reply on the new connection has shown a later one",
		Edits: []Edit{{"internal/session/view.go", "return w.view.on.Seen(), true", "return w.key.sess.Seen(), true"}},
		Test:  Test{"internal/session", "TestAWatchIsSetAgainUntilAConnectionLastsLongEnough"},
	},
	{
		Name: "a watch whose connection is lost while it is set again stays unset", After: "the next reconnect takes it for one that is being set",
		Edits: []Edit{{"internal/session/view.go", " || errors.Is(err, zk.ErrConnectionClosed)", ""}, {"internal/session/view.go", "\tcase err != nil:\n\t\treturn false\n", "\tcase err != nil && !errors.Is(err, zk.ErrConnectionClosed):\n\t\treturn false\n"}},
		Test:  Test{"internal/session", "TestAWatchIsSetAgainUntilAConnectionLastsLongEnough"},
	},
	{
		Name: "a check of watches asks for changes since it began", After: "a withheld change is older",
		Edits: []Edit{{"internal/session/rearm.go", "r.setWatches(s, since, chunk); err == nil {", "r.setWatches(s, max(since, now), chunk); err == nil {"}},
		Test:  Test{"internal/evidence/promises", "TestAWithheldEventDelaysAnObserverByASessionTimeout"},
	},
	{
		Name: "a directory whose counter has ended is watched by SetWatches", After: "its Pzxid does not move with creates",
		Edits: []Edit{{"internal/session/view.go", "return !w.key.children || w.latest().Stat.Cversion >= 0", "return true"}},
		Test:  Test{"internal/session", "TestTheChildrenOfADirectoryWhoseCounterHasEndedAreReadOneByOne"},
	},
	{
		Name: "the clients of a connection share one ear", After: "our own first version",
		Edits: []Edit{{"internal/conn/carried.go", "return append(all, added) })", "return append(all[:0], added) })"}},
		Test:  Test{"internal/evidence/promises", "TestClientsOfOneConnectionAllLearnOfALoss"},
	},
	{
		Name: "a goroutine that gave up leaves the process in the queue", After: "the place was for it alone",
		Edits: []Edit{{"localqueue.go", "if len(q.waiting) == 0 && q.cancel != nil {", "if len(q.waiting) == 0 && q.over.Load() {"}},
		Test:  Test{"internal/evidence/promises", "TestWaitsOfACohortThatAreGivenUpLeaveNothing"},
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
		Edits:   []Edit{{"recipe.go", "granted.Release(errors.Is(why, ErrLost))", "granted.Release(errors.Is(why, ErrInvalid))"}},
		Trouble: "delays",
	},
	{
		Name: "several locks of which one is lost are released at once", After: "our own first version: the function may still work under the others",
		Edits: []Edit{{"holding.go", "if g.end(why) && len(g.parts) == 0 {", "if g.end(why) {"}},
		Test:  Test{"internal/evidence/promises", "TestALostPartEndsTheWholeAndUnlockReleasesTheRest"},
	},
	{
		Name: "the context of a function ends in a goroutine of its own", After: "our own first version: context.AfterFunc, which was late 284 times of 300",
		Edits: []Edit{{"do.go", "stop := h.OnEnd(cut)", "stop := context.AfterFunc(h.Context(), func() { cut(context.Cause(h.Context())) })"}},
		Test:  Test{"internal/evidence/promises", "TestEveryContextOfAHoldEndsBeforeTheNextGoroutineHolds"},
	},
	{
		Name: "a level that is unlocked ends only what package context derived from it", After: "Unlock of a level or of a cohort's hold ends no holding",
		Edits: []Edit{{"holding.go", "\tdefer g.mu.Unlock()\n\tg.callHooks()\n", "\tdefer g.mu.Unlock()\n"}},
		Test:  Test{"internal/evidence/promises", "TestAnUnlockEndsTheContextOfAFunctionAtOnce"},
	},
	{
		Name: "LockAll acquires again what an operator has taken away", After: "our own first version: an eviction was undone",
		Edits: []Edit{{"multi.go", "case errors.Is(fate, outcome.ErrSessionOver):", "case errors.Is(fate, outcome.ErrSessionOver), fate != nil:"}},
		Test:  Test{"internal/evidence/promises", "TestLockAllEndsWhenALockIsTakenAwayWhileItWaits"},
	},
	{
		Name: "LockAll returns with what a session had whose end it did not see", After: "a node that is gone is deleted by the end of its session, too",
		Edits: []Edit{{"internal/queue/grant.go", "if errors.Is(err, outcome.ErrSessionOver) {\n\t\treturn err", "if errors.Is(err, outcome.ErrLocked) {\n\t\treturn err"}},
		Test:  Test{"internal/evidence/promises", "TestLockAllStartsAgainWhenItsSessionEnds"},
	},
	{
		Name: "LockAll asks a Locker that returns the same dead hold on and on", After: "our own first version: 5,017 requests in 10 s",
		Edits: []Edit{{"multi.go", "case h.done.Load():", "case h == nil:"}},
		Test:  Test{"internal/evidence/promises", "TestALockerThatReturnsAHoldThatHasEndedIsRefused"},
	},
	{
		Name: "an observer is called for a loss while other holds of the session are still valid", After: "a defect planted by hand: an observer of 30 s left them valid for 39.5 s",
		Edits: []Edit{{"holding.go", "\t\tif !g.end(why) {\n\t\t\tdelete(lost, g)\n\t\t}\n\t}\n\tfor g := range lost {\n\t\tg.settleLater()\n", "\t\tif g.end(why) {\n\t\t\tg.settle()\n\t\t}\n"}},
		Test:  Test{"internal/evidence/promises", "TestAllHoldsOfASessionEndBeforeAnObserverIsToldOfTheFirst"},
	},
	{
		Name: "the first of several holds is settled before the last has ended", After: "a defect planted by hand: the two loops are one",
		Edits: []Edit{{"holding.go", "\t\tif !g.end(why) {\n\t\t\tdelete(lost, g)\n\t\t}\n\t}\n\tfor g := range lost {\n\t\tg.settleLater()\n", "\t\tif g.end(why) {\n\t\t\tg.settleLater()\n\t\t}\n"}},
		Test:  Test{"internal/evidence/promises", "TestAllHoldsOfASessionEndBeforeAnObserverIsToldOfTheFirst"},
	},
	{
		Name: "a value that was refused is the holder's", After: "a defect planted by hand: it is written when Curator's Revoker overwrites the data",
		Edits: []Edit{{"hold.go", "\t\t\tt.SetOwnData(before)\n", ""}, {"hold.go", "before := t.SetOwnData(value)", "t.SetOwnData(value)"}},
		Test:  Test{"internal/evidence/promises", "TestARefusedProclaimIsNotTheValueThatIsRestored"},
	},
	{
		Name: "a holder does not write that it holds", After: "a grant would cost one request less",
		Edits:   []Edit{{"internal/queue/delay.go", `case lost == "" && (shared || r.Fate == node.IsHeld):`, "case lost == \"\":"}},
		Trouble: "delays",
	},
	{
		Name: "what a record said when its reader queued is believed", After: "the versions of a record that is deleted and created come again",
		Edits: []Edit{{"internal/queue/delay.go", "\tdefault:\n\t\tt.record.forget()\n", "\tdefault:\n"}},
		Test:  Test{"internal/queue", "TestARecordThatWasReadBeforeQueueingIsReadAgain"},
	},
	{
		Name: "a reader believes what the record said when it queued", After: "writers must not, and write over the version that they have read",
		Edits:   []Edit{{"internal/queue/delay.go", "\tcase t.recipe.Shared:\n\t\tt.record.forget()\n", ""}},
		Trouble: "delays", Focus: "rw", Seeds: 480,
	},
	{
		Name: "a wait for the lock-delay that failed counts", After: "our own first version: an answer was lost before it began",
		Edits: []Edit{{"internal/queue/delay.go", "if next == awaitDelay && err == nil {", "if next == awaitDelay {"}},
		Test:  Test{"internal/evidence/promises", "TestNoFaultOfAWaiterShortensTheLockDelay"},
	},
	{
		Name: "other libraries' contenders release", After: "they do not stand in the record, and what that says is older",
		Edits: []Edit{{"internal/queue/nearest.go", "{ return !e.Shared && !node.IsDelayed(e.Name) }", "{ return !e.Shared && !node.IsDelayed(e.Name) && e.Name == \"\" }"}},
		Test:  Test{"internal/evidence/promises", "TestAForeignPredecessorIsFollowedAfterTheLockDelay"},
	},
	{
		Name: "a record stays after a release", After: "our own first version: a node for each path, for ever",
		Edits: []Edit{{"internal/queue/record.go", "if t.record.isNeeded || ", "if t != nil || "}},
		Test:  Test{"internal/evidence/promises", "TestALockThatWasReleasedHasNoRecord"},
	},
	{
		Name: "a release behind another library's contender leaves no record", After: "a waiter behind both takes the other one for the last holder",
		Edits: []Edit{{"internal/queue/delay.go", "t.record.isNeeded = t.initialAhead.unrecordedBehind(\"\") != \"\"\n", "_ = t.record.isNeeded\n"}},
		Test:  Test{"internal/queue", "TestAReleaseBehindAnotherLibrarysContenderIsRecorded"},
	},
	{
		Name: "a release does not look for a claim that comes late", After: "its reply was lost, and the record did not exist when it was read",
		Edits: []Edit{{"internal/queue/record.go", "\tcase !at.exists: // make sure that it does not exist\n", "\tcase !at.exists && t == nil:\n"}},
		Test:  Test{"internal/queue", "TestAReleaseDeletesARecordThatAppearsMeanwhile"},
	},
	{
		Name: "a record that may not be deleted is left as it is", After: "the holder counts as lost",
		Edits: []Edit{{"internal/queue/record.go", "\t\tt.c.fixedRecords.put(t.Dir, struct{}{})\n\t\treturn\n", "\t\tt.record.wasRefused(false)\n\t\treturn\n"}},
		Test:  Test{"internal/queue", "TestAReleaseIsWrittenIntoARecordThatMayNotBeDeleted"},
	},
	{
		Name: "a lost hold is followed after the delay of the next one", After: "each client knows one delay",
		Edits: []Edit{{"internal/queue/delay.go", "\tif r.By == lost {\n", "\tif r.By == lost && lost == \"\" {\n"}},
		Test:  Test{"internal/queue", "TestOnlyAStandingHoldRefusesAnotherDelay"},
	},
	{
		Name: "a hold that was lost refuses another delay", After: "our own first version: until an operator deletes the record",
		Edits: []Edit{{"internal/queue/record.go", "_, err = c.Requests.Stat(ctx, s, dir+\"/\"+r.By)\n", "\n"}},
		Test:  Test{"internal/queue", "TestOnlyAStandingHoldRefusesAnotherDelay"},
	},
	{
		Name: "a server that lags knows the lock-delay", After: "a semaphore's number of permits, in our own first version",
		Edits: []Edit{{"internal/queue/record.go", "return session.UpToDate(ctx, c.Requests, s, func()", "return session.Again(ctx, func()"}},
		Test:  Test{"internal/evidence/promises", "TestALaggingServerMakesNobodyDisagreeAboutTheLockDelay"},
	},
	{
		Name: "a client without a lock-delay queues with those that have one", After: "what everybody has who has none",
		Edits: []Edit{{"internal/queue/conflicts.go", "if !r.Delays || c.Delay > 0 ||", "if c != nil || !r.Delays || c.Delay > 0 ||"}},
		Test:  Test{"internal/evidence/promises", "TestThoseWhoDisagreeAboutTheLockDelayAreTold"},
	},
	{
		Name: "the guardian makes its threads when it needs them", After: "the Go runtime's way: a command that uses up the processes ended it",
		Edits: []Edit{{"cmd/zklock/internal/guardian/guardian_unix.go", "\tReserveThreads()\n", ""}},
		Test:  Test{"cmd/zklock", "TestTheGuardianHasItsThreadsBeforeTheCommandStarts"},
	},
	{
		Name: "arguments of a command are text", After: "encoding/json: bytes that are not UTF-8 become replacement characters",
		Edits: []Edit{{"cmd/zklock/internal/proc/spec.go", "all = append(all, Raw(text))", "all = append(all, Raw(string([]rune(text))))"}},
		Test:  Test{"cmd/zklock", "TestTheCommandGetsItsArgumentsByteByByte"},
	},
	{
		Name: "a terminal tells the command what it tells zklock", After: "a hang-up is sent to the leader of a session only",
		Edits: []Edit{{"cmd/zklock/internal/proc/tree_linux.go", "shares := s.Terminal && !s.Leader", "shares := s.Terminal"}},
		Test:  Test{"cmd/zklock", "TestRunAsTheLeaderOfASessionPassesSignalsOnOnce"},
	},
	{
		Name: "what is no period is a name", After: "our own first version: such a job ran once and never again",
		Edits: []Edit{{"cmd/zklock/internal/period/period.go", "\tcase isPeriodic(name):\n", "\tcase name == \"@daily\":\n"}},
		Test:  Test{"cmd/zklock/internal/period", "TestNoTextIsBothAPeriodAndAName"},
	},
	{
		Name: "a day of a place is a day of the host", After: "cron on hosts with different time zones",
		Edits: []Edit{{"cmd/zklock/internal/period/period.go", "now = now.In(place)", "_ = place"}},
		Test:  Test{"cmd/zklock/internal/period", "TestAPeriodMeansWhatCronMeans"},
	},
	{
		Name: "the hour that comes twice when clocks are put back has its slots twice", After: "our own first version: 90m in New York skipped a run",
		Edits: []Edit{{"slots/marks.go", "if before.After(wall) {", "if before.Before(wall) && wall.IsZero() {"}},
		Test:  Test{"slots", "TestNoSlotComesAgainWhenClocksArePutBack"},
	},
	{
		Name: "a directory that could not be read once is never looked at again", After: "our own first version: a page that said that the lock is free",
		Edits: []Edit{{"operate/watch.go", "if d.place == nil && d.path != b.dirs.base {", "if d.place == nil && d.path != b.dirs.base && d.fate != isUnreadable {"}},
		Test:  Test{"operate", "TestADirectoryThatCouldNotBeReadIsShownLater"},
	},
	{
		Name: "who makes many directories has all the watches", After: "our own first version: a neighbour ended everybody's page",
		Edits: []Edit{{"operate/follow.go", "own < d.most[c]/(others+1)", "own < 0*others"}},
		Test:  Test{"operate", "TestANeighbourWithManyDirectoriesHidesNoLocks"},
	},
	{
		Name: "a server that takes a connection has answered", After: "our own first version: a page without a notice before a server that hangs",
		Edits: []Edit{{"cmd/zklock/internal/servers/contact.go", "c.lost = c.lost || c.open == 0", "c.lost = c.open == 0"}},
		Test:  Test{"cmd/zklock/internal/servers", "TestASilentServerIsNotedThoughItsConnectionIsOpen"},
	},
	{
		Name: "who waits until the time is over has met another holder", After: "our own first version: a cron job that no host ran, with -E 0",
		Edits: []Edit{{"cmd/zklock/internal/job/acquire.go", "\tcase !j.answered(q):\n", "\tcase !j.answered(q) && j.Election && ctx.Err() == nil:\n"}},
		Test:  Test{"cmd/zklock", "TestWaitingForServersThatDoNotAnswerIsNoOtherHolder"},
	},
	{
		Name: "a command waits for the lock under which it runs", After: "our own first version: it waited for ever",
		Edits: []Edit{{"cmd/zklock/internal/job/nested.go", "if slices.Contains(nodes, who.Node) {", "if slices.Contains(nodes, who.Node) && !who.Holds {"}},
		Test:  Test{"cmd/zklock", "TestACommandUnderALockMayNotTakeItAgain"},
	},
	{
		Name: "a wall clock that is set forward ends a healthy job", After: "our own first version: the lesser of two clocks counted",
		Edits: []Edit{{"cmd/zklock/internal/guardian/deadline.go", "\t\treturn time.Duration(d.Boot - n.Boot)\n", "\t\treturn min(time.Duration(d.Boot-n.Boot), time.Duration(d.Wall-n.Wall))\n"}},
		Test:  Test{"cmd/zklock/internal/guardian", "TestADeadlineComesByTheClockThatCannotBeSet"},
	},
	{
		Name: "a signal to the parent is lost in the guardian", After: "our own first version: kill -TERM $PPID",
		Edits: []Edit{{"cmd/zklock/internal/guardian/supervise.go", "s.pass(syscall.Signal(r.Told), toGuardian)", "s.passed[syscall.Signal(r.Told)] = passing{}"}},
		Test:  Test{"cmd/zklock", "TestASignalToTheParentReachesTheCommand"},
	},
	{
		Name: "errors of libraries reach the operator as they are", After: "our own first version: context deadline exceeded",
		Edits: []Edit{{"cmd/zklock/internal/outcome/explain.go", "reworded(part), 1)", "part.Error(), 1)"}},
		Test:  Test{"cmd/zklock/internal/outcome", "TestErrorsOfLibrariesAreReworded"},
	},
	{
		Name: "an ACL for one's own credentials needs none", After: "our own first version: --acl auth: without --auth was a failure of the servers",
		Edits: []Edit{{"cmd/zklock/internal/servers/flags.go", "len(o.Auth) == 0 && s.cert == \"\"", "len(o.Auth) < 0 && s.cert == \"\""}},
		Test:  Test{"cmd/zklock/internal/servers", "TestAnACLForOnesOwnCredentialsNeedsSome"},
	},
	{
		Name: "the exit code of a command may be one of zklock's own", After: "our own first version: -E 0 made a success of a command's 75, and 80 kept the lock",
		Edits: []Edit{{"cmd/zklock/internal/guardian/supervise.go", "return outcome.Ended{Code: *s.exited}", "return outcome.Verdict(*s.exited).Of(nil)"}},
		Test:  Test{"cmd/zklock", "TestTheCodeOfTheCommandIsNotTouched"},
	},
	{
		Name: "a value of a leader may read as that of a writer who became a reader", After: "our own first version: readers passed a leader",
		Edits: []Edit{{"election.go", "\tcase node.IsDowngraded(value):\n", "\tcase false:\n"}},
		Test:  Test{"internal/evidence/promises", "TestAValueOfALeaderLetsNoReaderIn"},
	},
	{
		Name: "a latch's value is written through another kind of election", After: "our own first version: Curator's latches took the event for their turn",
		Edits: []Edit{{"election.go", " && g.nodes[0].Fixed == e.recipe().Fixed", ""}},
		Test:  Test{"internal/evidence/promises", "TestALatchsDataIsNotWrittenByAnotherKindOfElection"},
	},
	{
		Name: "a program's own end waits for itself", After: "our own first version: FailStop could not close the client",
		Edits: []Edit{{"do.go", "\t\t\tgo h.of().c.FailStop(", "\t\t\th.of().c.FailStop("}},
		Test:  Test{"internal/evidence/promises", "TestFailStopMayCloseTheClient"},
	},
	{
		Name: "permits are made though their place in the queue is gone", After: "our own first version: an evicted contender was granted the lock",
		Edits: []Edit{{"internal/queue/permits.go", "\t\tmade.createOnlyIf(&queueNode.member)", "\t\t_ = made.createOnlyIf"}},
		Test:  Test{"internal/evidence/promises", "TestOneThatIsEvictedWhileItMakesItsPermitsIsTold"},
	},
	{
		Name: "an eviction leaves the permits that were made meanwhile", After: "our own first version: who was evicted held",
		Edits: []Edit{{"operate/evict.go", "if contender.Kind != KindPermit || !isPlace", "if contender.Kind == KindPermit || !isPlace"}},
		Test:  Test{"internal/evidence/promises", "TestNobodyHoldsPermitsAfterItsEviction"},
	},
	{
		Name: "who is evicted before it finds its place for permits asks again", After: "our own first version",
		Edits: []Edit{{"internal/queue/permits.go", "return nil, queueNode.unlessEvicted(ctx, err)", "return nil, err"}},
		Test:  Test{"internal/evidence/promises", "TestOneThatAsksForPermitsAndIsEvictedBeforeItLooksIsTold"},
	},
	{
		Name: "a goroutine holds in the place of one that asked before others", After: "our own first version: it overtook another process",
		Edits: []Edit{{"sharedplace.go", "number <= p.lastAhead || !p.grant.Waited", "number <= p.lastAhead || number > 0"}},
		Test:  Test{"internal/evidence/promises", "TestAGoroutineTakesNoPlaceThatWasAskedForBefore"},
	},
	{
		Name: "a goroutine begins in a place that is lost", After: "our own first version",
		Edits: []Edit{{"sharedplace.go", "!p.isHeld() && p.holding.ctx.Err() == nil", "!p.isHeld()"}},
		Test:  Test{".", "TestWhoMayBeginInAPlaceThatWasJustGranted"},
	},
	{
		Name: "what locks several under a long hold leaves something there each time", After: "our own first version",
		Edits: []Edit{{"holding.go", "range g.stopForwarding {", "range g.stopForwarding[:0] {"}},
		Test:  Test{"internal/evidence/promises", "TestLockingSeveralUnderALongHoldLeavesNothing"},
	},
	{
		Name: "a label that is not UTF-8 is read as another's", After: "our own first version: the writer was taken for lost",
		Edits: []Edit{{"internal/node/owner.go", "\to.Host, o.Label = strings.", "\to.Host, _ = strings."}},
		Test:  Test{"internal/evidence/promises", "TestAWriterWhoseLabelIsNotUTF8IsDowngraded"},
	},
	{
		Name: "a mark that is too large is asked for on and on", After: "our own first version",
		Edits: []Edit{{"slots/slots.go", "\tif err := node.CheckSize(ops); err != nil {\n", "\tif err := node.CheckSize(ops); err != nil && h == nil {\n"}},
		Test:  Test{"internal/evidence/promises", "TestAMarkUnderManyPermitsEnds"},
	},
	{
		Name: "a mark is settled when the first of several locks is gone", After: "our own first version: one that was entered again stays",
		Edits: []Edit{{"slots/slots.go", "\tfor _, n := range nodes {\n", "\tfor _, n := range nodes[:1] {\n"}},
		Test:  Test{"internal/evidence/promises", "TestAMarkIsSettledThoughOneOfTheLocksIsHeldOn"},
	},
	{
		Name: "a path may have characters that servers refuse", After: "our own first version: the acquire was refused late",
		Edits: []Edit{{"internal/node/paths.go", "r >= 0xe000 &&", "r >= 0xf000 &&"}},
		Test:  Test{"internal/node", "TestPathsAreCheckedByZooKeepersRules"},
	},
	{
		Name: "a Locker may return nothing", After: "our own first version: LockAll asked it on and on",
		Edits: []Edit{{"multi.go", "\tcase h.of().c != c.engine: //", "\tcase h == nil:\n\tcase h.of().c != c.engine: //"}},
		Test:  Test{"internal/evidence/promises", "TestALockerWithoutAHoldIsRefused"},
	},
	{
		Name: "a timer is trusted until a lease runs out", After: "our own first version: it stands still while a machine sleeps",
		Edits: []Edit{{"internal/lease/lease.go", "{ return max(l.Term()/20, time.Millisecond) }", "{ return l.Term() }"}},
		Test:  Test{"internal/evidence/promises", "TestAMachineThatWakesUpWithoutANetworkIsToldSoon"},
	},
	{
		Name: "a program's close of the connection is noticed by the servers first", After: "our own first version: Attach",
		Edits: []Edit{{"internal/conn/tap.go", "r.Op() == frames.OpClose {", "r.Op() == frames.OpClose+1000 {"}},
		Test:  Test{"internal/evidence/promises", "TestAHoldEndsBeforeItsConnectionIsClosed"},
	},
	{
		Name: "a refused credential is no denial", After: "our own first version: the session was renewed for ever",
		Edits: []Edit{{"internal/conn/tap.go", "case asked.op == frames.OpAuth && r.Code != frames.CodeOK:", "case asked.op == frames.OpAuth && r.Code > frames.CodeOK:"}},
		Test:  Test{"internal/evidence/promises", "TestASessionWhoseCredentialsAreRefusedEnds"},
	},
	{
		Name: "what shows that servers serve is kept as a session", After: "our own first version: an outage cost half of the waiters their places",
		Edits: []Edit{{"internal/conn/handshake.go", "\tcase probed:\n\t\treturn nil, nil, errProbe\n", ""}},
		Test:  Test{"internal/evidence/promises", "TestAnOutageOfAnyLengthCostsNobodyItsPlace"},
	},
	{
		Name: "a heartbeat that failed is repeated until one is answered", After: "our own first version: four at once",
		Edits: []Edit{{"internal/lease/next.go", "c.Step != Nothing || k.failed && k.pending > 0:", "c.Step != Nothing:"}},
		Test:  Test{"internal/evidence/promises", "TestAHeartbeatThatWasThrottledIsRepeatedOnce"},
	},
	{
		Name: "one lost connection counts for each request that it took along", After: "our own first version: directories stayed for ever",
		Edits: []Edit{{"internal/session/support.go", "if p.hungUp != on {", "if p.hungUp != on || on != nil {"}},
		Test:  Test{"internal/evidence/promises", "TestOneLostConnectionIsNotTakenForAServerWithoutContainers"},
	},
	{
		Name: "a quota that is exceeded is an unknown outcome", After: "our own first version: an acquire waited and said nothing",
		Edits: []Edit{{"internal/outcome/outcome.go", "\tframes.ErrLocalSession, frames.ErrQuota,\n", "\tframes.ErrLocalSession,\n"}},
		Test:  Test{"internal/evidence/promises", "TestAnAcquireThatExceedsAQuotaIsToldAtOnce"},
	},
	{
		Name: "a throttled request may have been carried out", After: "our own first version: it was looked for again and again",
		Edits: []Edit{{"internal/outcome/outcome.go", " || errors.Is(err, frames.ErrThrottled)", ""}},
		Test:  Test{"internal/evidence/promises", "TestACreateThatWasThrottledIsNotLookedFor"},
	},
	{
		Name: "a wait before the crash does not count", After: "our own first version: the delay began again",
		Edits: []Edit{{"internal/queue/delay.go", "n.Stat.Ctime >= r.mtime || t.recipe.Fixed", "n.Stat.Ctime >= 0 || t.recipe.Fixed"}},
		Test:  Test{"internal/evidence/promises", "TestAWaitOfOneThatStoodThereBeforeTheCrashCounts"},
	},
	{
		Name: "a label shows what stands in quotes", After: "our own first version: ssh host 'mysql -psecret'",
		Edits: []Edit{{"cmd/zklock/internal/job/label.go", " || strings.ContainsFunc(w, unicode.IsSpace)", " || unicode.IsSpace(0)"}},
		Test:  Test{"cmd/zklock/internal/job", "TestLabelsTellJobsApartAndNoSecrets"},
	},
	{
		Name: "an empty --node is every holder", After: "our own first version: an unset variable of a script",
		Edits: []Edit{{"cmd/zklock/revoke.go", "\tcase f.Given(\"node\") && c.node == \"\":\n", "\tcase f.Given(\"node\") && c.node == \"-\":\n"}},
		Test:  Test{"cmd/zklock", "TestRevokeAndEvictTouchNobodyBeyondTheNamed"},
	},
	{
		Name: "without waiting a server that is silent counts as another holder", After: "our own first version: a cron job that no host ran",
		Edits: []Edit{{"cmd/zklock/internal/servers/connect.go", "errors.Is(answer, context.DeadlineExceeded) && !errors.Is(answer, zklock.ErrLocked)", "answer == context.DeadlineExceeded"}},
		Test:  Test{"cmd/zklock", "TestWithoutWaitingServersThatDoNotAnswerAreNoOtherHolder"},
	},
	{
		Name: "a request to release finds no process when the command has ended", After: "our own first version: a daemon kept the lock",
		Edits: []Edit{{"cmd/zklock/internal/guardian/supervise.go", "\t\t\ts.pass(signals.Terminate, toZklock)\n", "\t\t\ts.order(order{Signal: int(signals.Terminate)})\n"}},
		Test:  Test{"cmd/zklock", "TestRunEndsTheRestWhenToldToEnd"},
	},
	{
		Name: "what writes the log waits for who reads it", After: "our own first version: a pager cost the lock",
		Edits: []Edit{{"cmd/zklock/internal/servers/logwriter.go", "\tcase <-time.After(100 * time.Millisecond):\n", "\tcase <-time.After(time.Hour):\n"}},
		Test:  Test{"cmd/zklock", "TestRunHoldsThoughNobodyReadsItsLog"},
	},
	{
		Name: "a server that stops answering an eviction is waited for", After: "our own first version",
		Edits: []Edit{{"cmd/zklock/evict.go", "err := server.Ask(ctx, func(ctx context.Context) error { return operate.Evict(ctx, client, who) })", "err := operate.Evict(ctx, client, who)"}},
		Test:  Test{"cmd/zklock", "TestAChangeThatIsNotAnsweredEnds"},
	},
	{
		Name: "a time zone that is not known is UTC", After: "our own first version: TZ=CET-1CEST",
		Edits: []Edit{{"cmd/zklock/internal/period/period.go", "\tif err != nil {\n\t\treturn fmt.Errorf(\"the host's time zone", "\tif err != nil && tz == \"\" {\n\t\treturn fmt.Errorf(\"the host's time zone"}},
		Test:  Test{"cmd/zklock/internal/period", "TestADayIsNotCountedInAnotherZoneThanTheHosts"},
	},
	{
		Name: "a script continues after Ctrl-C", After: "our own first version: zklock exited by itself",
		Edits: []Edit{{"cmd/zklock/internal/guardian/supervise.go", "Again: by == os.Interrupt && hasTerminal", "Again: by == nil && hasTerminal"}},
		Test:  Test{"cmd/zklock", "TestCtrlCEndsTheScriptThatRunsTheCommand"},
	},
	{
		Name: "a command does not get the signals that few programs use", After: "our own first version: STOPSIGNAL SIGRTMIN+3",
		Edits: []Edit{{"cmd/zklock/internal/signals/signals_unix.go", "const lastSignal = 64", "const lastSignal = 31"}},
		Test:  Test{"cmd/zklock", "TestRunPassesOnWhatProgramsUse"},
	},
	{
		Name: "who the leader is may be printed to nobody", After: "our own first version: elect >/dev/full",
		Edits: []Edit{{"cmd/zklock/elect.go", "\t_, err := fmt.Fprintln(std.Out, show.Value(leader))\n\treturn err", "\tfmt.Fprintln(std.Out, show.Value(leader))\n\treturn nil"}},
		Test:  Test{"cmd/zklock", "TestWhatCannotBePrintedIsAFailure"},
	},
	{
		Name: "a hold's timer is set once and trusted", After: "our own first version: a reconnect may give a shorter timeout",
		Edits: []Edit{
			{"holding.go", "\t\tcase <-again:\n", "\t\tcase <-map[bool]<-chan struct{}{false: again}[true]:\n"},
			{"internal/lease/lease.go", "{ return max(l.Term()/20, time.Millisecond) }", "{ return time.Hour }"},
		},
		Test: Test{"internal/evidence/promises", "TestAHoldEndsInTimeThoughItsSessionBecomesShorter"},
	},
	{
		Name: "each connection numbers its requests from the start", After: "our own first version: a follower tells a session's requests apart by their numbers alone",
		Edits: []Edit{
			{"internal/conn/tap.go", "\tended       bool\n", "\tended       bool\n\tlast        int32\n"},
			{"internal/conn/tap.go", "\tnumber := t.link.number()\n", "\tt.last++\n\tnumber := t.last\n"},
		},
		Test: Test{"internal/evidence/promises", "TestNoNumberIsGivenTwiceInASession"},
	},
	{
		Name: "those who wait for a node hear of its end before its owner", After: "our own first version: two goroutines of a client held for an instant",
		Edits: []Edit{{"internal/session/watch.go", "\tend := func() {\n\t\towner(saw)\n\t\tw.end()\n", "\tw.end()\n\tend := func() {\n\t\towner(saw)\n"}},
		Test:  Test{"internal/session", "TestTheOwnerOfANodeIsToldOfItsEndBeforeThoseThatWaitForIt"},
	},
	{
		Name: "a server that sends events is not silent", After: "our own first version: it can owe a session its answers, and still send it events",
		Edits: []Edit{{"internal/conn/tap.go", "xid != frames.XidEvent; t.answers", "xid != 0; t.answers"}},
		Test:  Test{"internal/evidence/promises", "TestAServerThatTellsOfEventsAndAnswersNothingIsLeft"},
	},
	{
		Name: "the first part of a long answer is no sign of life", After: "our own: on a slow link the next part can take as long",
		Edits: []Edit{{"internal/conn/tap.go", "\t\tt.hear()\n", ""}},
		Test:  Test{"internal/conn", "TestEachPartOfAnAnswerIsASignOfLife"},
	},
	{
		Name: "permits without a number are a lock's directory", After: "our own first version: their users are about to store it",
		Edits: []Edit{{"internal/queue/conflicts.go", "return c.unlessPermits(ctx, sess, leases)", "return nil"}},
		Test:  Test{"internal/evidence/promises", "TestALockThatComesWhenPermitsHaveNoNumberIsNotHeldBesideThem"},
	},
	{
		Name: "a client owns as many nodes as it likes", After: "our own first version: its crash stopped ZooKeeper for good",
		Edits: []Edit{{"internal/queue/quota.go", "s.Own(n, maxOwned)", "s.Own(n, 100*maxOwned)"}},
		Test:  Test{"internal/evidence/promises", "TestAllNodesOfAClientCanEndInOneTransaction"},
	},
	{
		Name: "nodes that were released count on", After: "a forgotten subtraction",
		Edits: []Edit{{"internal/queue/cleanup.go", "\t\t\tt.uncount()\n", ""}},
		Test:  Test{"internal/evidence/promises", "TestAllNodesOfAClientCanEndInOneTransaction"},
	},
	{
		Name: "a node that was replaced counts on", After: "a hand-off, where nobody deletes the old node by itself",
		Edits: []Edit{{"internal/queue/create.go", "if takesOver {\n\t\tmore", "if old != nil && s == nil {\n\t\tmore"}},
		Test:  Test{"internal/evidence/promises", "TestAllNodesOfAClientCanEndInOneTransaction"},
	},
	{
		Name: "of permits only the last is watched while the lease is proven", After: "our own first version: the others were looked at again after each wait",
		Edits: []Edit{{"internal/queue/proof.go", "\t\t\tx.watchSelf(0) // when the wait ends, our nodes will not have been seen recently", "\t\t\tif x == &t.member {\n\t\t\t\tx.watchSelf(0)\n\t\t\t}"}},
		Test:  Test{"internal/evidence/promises", "TestManyPermitsAreGrantedAsFastAsOne"},
	},
	{
		Name: "a grant does not mind the holds of its own client", After: "our own first version: each holder watches its own node",
		Edits: []Edit{{"internal/queue/proof.go", "\tfor !t.recipe.limited {\n\t\tunwatched", "\tfor t.recipe == nil {\n\t\tunwatched"}},
		Test:  Test{"internal/evidence/promises", "TestNobodyOfAClientHoldsBesideOneWhoseNodeIsGone"},
	},
	{
		Name: "a listing ends no hold of its own client", After: "our own first version: each holder watches its own node",
		Edits: []Edit{{"internal/queue/position.go", "\tt.c.holders.endMissing(t.contender, queue.Has)\n", ""}},
		Test:  Test{"internal/evidence/promises", "TestNobodyOfAClientHoldsBesideOneWhoseNodeIsGone"},
	},
	{
		Name: "the order within a client is found by numbers alone", After: "our own first version: a directory is deleted and created again",
		Edits: []Edit{{"internal/queue/holders.go", "\tif before != 0 {", "\tif before < 0 {"}},
		Test:  Test{"internal/evidence/promises", "TestNobodyOfAClientHoldsBesideOneWhoseNodeIsGoneWhateverTheNumbers"},
	},
	{
		Name: "a node is gone before its holder was told", After: "our own first version: another goroutine could come in between",
		Edits: []Edit{{"internal/session/ownnode.go", "\tif notify != nil {\n\t\tnotify()\n\t}\n\tn.Gone.Set()", "\tn.Gone.Set()\n\tif notify != nil {\n\t\tnotify()\n\t}"}},
		Test:  Test{"internal/session", "TestANodeIsGoneWhenItsHolderWasTold"},
	},
	{
		Name: "a number of permits is stored without a look at the path", After: "our own first version: Resize next to a held lock made permits of it",
		Edits: []Edit{{"internal/queue/permits.go", "\t\t\terr = s.Engine.notAQueue(ctx, sess, s.Dir)\n\t\t}\n\t\treturn n, err", "\t\t\terr = nil\n\t\t}\n\t\treturn n, err"}},
		Test:  Test{"internal/evidence/promises", "TestNoNumberOfPermitsIsStoredWhereALockIs"},
	},
	{
		Name: "a lock leaves the directory of a semaphore that is about to begin", After: "our own first version",
		Edits: []Edit{{"internal/queue/conflicts.go", "\tcase !numbered && len(n.Data) > 0:", "\tcase !numbered:"}},
		Test:  Test{"internal/evidence/promises", "TestALockAndASemaphoreThatComeAtOnceAreNotBothHeld"},
	},
	{
		Name: "a Locker that panics leaves what was taken", After: "our own first version: only errors were thought of",
		Edits: []Edit{{"multi.go", "\tinside, all := ctx, false\n\tdefer func() {\n\t\tif all {", "\tinside, all := ctx, false\n\tdefer func() {\n\t\tif all || err == nil {"}},
		Test:  Test{"internal/evidence/promises", "TestALockerThatDoesNotReturnLeavesNoLock"},
	},
	{
		Name: "the end of another hold is taken for that of one's own", After: "our own first version: a context can be derived from another hold's",
		Edits: []Edit{{"internal/outcome/outcome.go", "!isEnd(end) && isEnd(why)", "isEnd(end) && isEnd(why)"}},
		Test:  Test{"internal/evidence/promises", "TestACallThatEndsWithAnotherHoldSaysNothingOfItsOwn"},
	},
	{
		Name: "a release under the hold's own context is not waited for", After: "our own first version: that context ends first",
		Edits: []Edit{{"hold.go", "\tif ctx.Err() != nil || !h.isAround(ctx) {", "\tif ctx.Err() != nil || h != nil {"}},
		Test:  Test{"internal/evidence/promises", "TestUnlockUnderTheHoldsOwnContextWaits"},
	},
	{
		Name: "a second Close returns while the first is under way", After: "a flag in place of sync.Once",
		Edits: []Edit{{"zklock.go", "\t<-c.closed.Done() // a sync.Once", "\t// a sync.Once"}},
		Test:  Test{"internal/evidence/promises", "TestEachOfTwoWhoCloseAtOnceWaits"},
	},
	{
		Name: "a watch that was refused says that its caller has ended it", After: "our own first version: it cancels a context of its own",
		Edits: []Edit{{"operate/watch.go", "failed(c.Requests.Explain(callCtx, err))\n\t\t}\n\t}\n}", "failed(c.Requests.Explain(following, err))\n\t\t}\n\t}\n}"}},
		Test:  Test{"internal/evidence/promises", "TestAWatchOfWhatMayNotBeReadEnds"},
	},
	{
		Name: "a hold that is reported as lost before its grant stays the oldest for ever", After: "a gauge that counts only grants that it knows: the order of the two events is not certain",
		Edits: []Edit{{"observe/oldest.go", "\tcase Released, Lost, Ended:\n", "\tcase Released, Ended:\n"}},
		Test:  Test{"observe", "TestALossBeforeTheGrantLeavesNoHold"},
	},
	{
		Name: "a client that nobody has made has no engine", After: "our own first version: operate and slots ended in a nil pointer",
		Edits: []Edit{{"zklock.go", "c := owner{client.(*Client)}.c()", "c := client.(*Client)"}},
		Test:  Test{"internal/evidence/promises", "TestAClientThatNobodyHasMadeIsInvalid"},
	},
	{
		Name: "an election has no leader as soon as the first node goes", After: "a loop that gives up: the history had no rule for who is told that there is none", Focus: "election",
		Edits: []Edit{{"election.go", "\t\t\tcase !errors.Is(err, zk.ErrNoNode):\n\t\t\t\treturn Contender{}, err\n", "\t\t\tdefault:\n\t\t\t\treturn Contender{}, nil\n"}},
	},
	{
		Name: "a place that is watched from now on wakes nobody", After: "our own first version: a goroutine that gave up had others wait for an hour",
		Edits: []Edit{{"localqueue.go", "\tq.changed(p) // run may be", "\t// run may be"}},
		Test:  Test{"internal/evidence/promises", "TestAStrangerThatQueuedWhileTheLockWasHeldEndsAKeptPlace"},
	},
	{
		Name: "Examine takes an accepted check of a missing node for a good answer", After: "a probe that only looks for errors",
		Edits: []Edit{{"operate/examine.go", "\tcase err == nil:\n\t\tm.void = true\n", "\tcase err == nil:\n"}},
		Test:  Test{"internal/evidence/promises", "TestExamineFindsEachDefect"},
	},
	{
		Name: "Examine compares the longest tick with the session timeout, not with its half", After: "a follower's own minimum is two ticks",
		Edits: []Edit{{"operate/checks.go", "largest > f.shortest()/2", "largest > f.shortest()"}},
		Test:  Test{"internal/evidence/promises", "TestExamineFindsEachDefect"},
	},
	{
		Name: "Examine compares the longest tick with the timeout that was requested", After: "each server grants another one",
		Edits: []Edit{{"operate/checks.go", "if g := f.granted(m); i == 0 || g < least {", "if g := f.granted(m); i < 0 && g < least {"}},
		Test:  Test{"internal/evidence/promises", "TestExamineFindsEachDefect"},
	},
	{
		Name: "Examine's trial of a lock commits", After: "a trial that succeeds needs a cleanup, which a crash prevents",
		Edits: []Edit{{"operate/examine.go", "\t\t&zk.CreateRequest{Path: dir, Acl: x.ACL}, // exists\n", ""}},
		Test:  Test{"internal/evidence/promises", "TestExamineFindsNothingInASoundEnsemble"},
	},
	{
		Name: "Examine takes every server for one of the same ensemble", After: "a check of modes only: followers of two ensembles look alike",
		Edits: []Edit{{"operate/examine.go", "return again.Session == hello.Session\n", "return again.Timeout > 0 || hello.Timeout > 0\n"}},
		Test:  Test{"internal/evidence/promises", "TestExamineTellsTwoEnsemblesApart"},
	},
	{
		Name: "Examine leaves its sessions to expire", After: "closing the connection is not closing the session",
		Edits: []Edit{{"internal/conn/direct.go", "\td.Ask(frames.Close())\n", ""}},
		Test:  Test{"internal/evidence/promises", "TestExamineFindsNothingInASoundEnsemble"},
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
