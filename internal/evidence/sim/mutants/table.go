// SPDX-License-Identifier: Apache-2.0

package mutants

import "fmt"

// Table is every mutant.
var Table = []Mutant{
	{
		Name: "a session that has been replaced is still used", Origin: "go-zookeeper's Lock treats a lock of an earlier session as its own",
		Edits: []Edit{
			{"internal/conn/carried.go", "return l.session == s && !s.IsOver()", "return s != nil"},
		},
		Focus: "mutex", Faults: "expire|partition",
	},
	{
		Name: "a handshake reply with another session ID is taken for the same session", Origin: "go-zookeeper's Conn, on servers that do not restore sessions",
		Edits: []Edit{{"internal/conn/handshake.go", "same := l.session != nil && l.session.ID == id && !l.session.IsOver()", "same := l.session != nil && id != 0 && !l.session.IsOver()"}},
		Test:  Test{"internal/evidence/promises", "TestASessionReplacedWithoutAnEventEndsEveryHold"},
	},
	{
		Name: "Evict starts at the front of the queue", Origin: "the next contender is granted the lock, and then removed as a holder",
		Edits:   []Edit{{"operate/evict.go", "range slices.Backward(contenders)", "range slices.All(contenders)"}},
		Trouble: "evicts",
	},
	{
		Name: "Inspect shows only the first of several readers as a holder", Origin: "it assumes that only the first in line holds",
		Edits: []Edit{{"operate/inspect.go", "= i == 0 || f.Shared && !exclusive", "= i == 0"}},
		Focus: "rw", Trouble: "looks",
	},
	{
		Name: "Inspect reads the queue from a server that lags", Origin: "it then shows an old state of the queue",
		Edits:   []Edit{{"operate/inspect.go", "l, err := c.Requests.FreshList(ctx, s, c.Root+path)", "l, err := c.Requests.List(ctx, s, c.Root+path)"}},
		Trouble: "looks",
	},
	{
		Name: "a lost hold is reported twice", Origin: "a count of holds that is computed from events is then one too low",
		Edits: []Edit{{"holding.go", "\t\tg.report(observe.Lost, why)\n", "\t\tg.report(observe.Lost, why)\n\t\tg.report(observe.Lost, why)\n"}},
	},
	{
		Name: "an observer uses the data of another caller's watch without comparing it with the node", Origin: "the server withheld that watch's event",
		Edits: []Edit{{"internal/session/watch.go", "err != nil || now.Mzxid == v.Stat.Mzxid {", "err != nil || now != nil {"}},
		Test:  Test{"internal/evidence/promises", "TestANewObserverIsShownNoOldState"},
	},
	{
		Name: "Leader reads the nodes from a server that lags", Origin: "the caller gets the previous leader",
		Edits: []Edit{{"election.go", "l, err := e.engine().Requests.FreshList(ctx, s, dir)", "l, err := e.engine().Requests.List(ctx, s, dir)"}},
		Focus: "election",
	},
	{
		Name: "Watch keeps the value that a leader had at first", Origin: "values are read only when the leader changes",
		Edits: []Edit{{"watch.go", "\tsaw, err := v.Await(ctx, nil)\n\tif err == nil &&", "\tsaw, err := v.Await(ctx, nil)\n\tfor err == nil && saw == session.Changed {\n\t\tif v, err = o.lookAt(ctx, s, o.dir+\"/\"+first.Name); err == nil {\n\t\t\tsaw, err = v.Await(ctx, nil)\n\t\t}\n\t}\n\tif err == nil &&"}},
		Focus: "election",
	},
	{
		Name: "a connection request contains only the zxid that the client library has seen", Origin: "a server that lags then accepts the session",
		Edits: []Edit{{"internal/conn/handshake.go", "return frames.SawRequest(p, l.session.seen.Load())", "return p"}},
		Test:  Test{"internal/conn", "TestAConnectionRequestContainsTheZxidOfOurReplies"},
	},
	{
		Name: "requests are sent before the credentials", Origin: "a server answers the requests first, without the credentials",
		Edits: []Edit{{"internal/conn/proxy.go", "present(t.server, t.in, credentials)", "present(t.server, t.in, credentials[:0])"}},
		Test:  Test{"internal/conn", "TestCredentialsThatAServerHasAcceptedComeFirstOnEveryConnection"},
	},
	{
		Name: "a credential is sent only on its first connection", Origin: "credentials belong to a connection, not to a session",
		Edits: []Edit{{"internal/conn/proxy.go", "\t\tt.link.login.accept(asked.credential)\n", ""}},
		Test:  Test{"internal/evidence/promises", "TestAReconnectComesWithItsCredentialsFirst"},
	},
	{
		Name: "Close waits for a dial of the program to return", Origin: "our first version: a dialer may ignore its timeout",
		Edits: []Edit{{"internal/conn/dialer.go", "\tcase <-l.closing:\n\t\treturn nil, errClosed\n\t}\n}", "\t}\n}"}},
		Test:  Test{"internal/conn", "TestADialThatDoesNotReturnEndsWithTheLink"},
	},
	{
		Name: "the loss of a hold waits for the observer", Origin: "our first version: the client left a silent server only after the observer had returned",
		Edits: []Edit{{"internal/queue/observe.go", "case observe.Lost, observe.Ended, observe.HeartbeatMissed, observe.ExpiredEarly:", "case -1:"}},
		Test:  Test{"internal/evidence/promises", "TestASlowObserverOrLogHandlerCostsNoHold"},
	},
	{
		Name: "the client library waits for the log handler", Origin: "our first version: the client library wrote to the log between two dials",
		Edits: []Edit{{"zklock.go", "h.notices.Put(func() {", "func(do func()) { do() }(func() {"}},
		Test:  Test{"internal/evidence/promises", "TestASlowObserverOrLogHandlerCostsNoHold"},
	},
	{
		Name: "Close waits for an observer without a limit", Origin: "our first version",
		Edits: []Edit{{"zklock.go", "c.engine.Reporter.Notices.Close(limit)", "c.engine.Reporter.Notices.Close(nil)"}},
		Test:  Test{"internal/evidence/promises", "TestCloseDeliversEventsWithinItsTime"},
	},
	{
		Name: "a server without a leader is taken to have created a session", Origin: "our first version: ClickHouse Keeper reports it only in the protocol version",
		Edits: []Edit{{"internal/frames/checks.go", "binary.BigEndian.Uint32(body) == versionRejected", "binary.BigEndian.Uint32(body) == versionRejected+1"}},
		Test:  Test{"internal/evidence/promises", "TestAKeeperWithoutALeaderGivesNoSession"},
	},
	{
		Name: "the refusal by a server in FIPS mode is reported as a wrong password", Origin: "our first version: the password was right",
		Edits: []Edit{{"internal/conn/login.go", "case errors.Is(err, zk.ErrAuthFailed): // before", "case errors.Is(err, frames.ErrNoLeader): // before"}},
		Test:  Test{"internal/evidence/promises", "TestARefusedLoginIsReportedAtOnce"},
	},
	{
		Name: "a reply to a listing that is too long closes the connection", Origin: "our first version: the heartbeats of all holds were then lost, too",
		Edits: []Edit{{"internal/conn/proxy.go", "if ours && size > limit {", "if size > limit && !ours {"}},
		Test:  Test{"internal/conn", "TestALongReplyEndsNoConnection"},
	},
	{
		Name: "the limit on listings also applies to the program's own requests", Origin: "our first version, with Attach",
		Edits: []Edit{{"internal/conn/proxy.go", "return math.MaxInt32, false", "return min(math.MaxInt32, frames.MaxFrame), false"}},
		Test:  Test{"internal/conn", "TestALongReplyEndsNoConnection"},
	},
	{
		Name: "heartbeats are queued behind other requests", Origin: "our first version: behind everything that the program sent",
		Edits: []Edit{{"internal/conn/outbox.go", "o.add(&o.beats, frame)", "o.add(&o.frames, frame)"}},
		Test:  Test{"internal/conn", "TestHeartbeatsGoFirst"},
	},
	{
		Name: "there is no limit on the bytes of requests without a reply", Origin: "our first version: the reply to a heartbeat comes after the replies to all requests before it",
		Edits: []Edit{{"internal/conn/window.go", "const maxUnanswered = 1 << 20", "const maxUnanswered = 1 << 40"}},
		Test:  Test{"internal/evidence/promises", "TestLargeTransactionsCostNoHold"},
	},
	{
		Name: "requests of the client library do not wait for the limit on unanswered bytes", Origin: "our first version, with Attach and a program that writes much",
		Edits: []Edit{{"internal/conn/proxy.go", "t.server.room.reserveUntil(t.writeBy, len(r))", "t.server.room.use(len(r))"}},
		Test:  Test{"internal/evidence/promises", "TestLargeWritesOfTheProgramCostNoAttachedHold"},
	},
	{
		Name: "a server may take three seconds to answer a connection request", Origin: "our first version, with Attach: the session's timeout was not known",
		Edits: []Edit{{"internal/conn/proxy.go", "limit = max(timeout/3, limit)", "limit = max(3*time.Second, limit, timeout/1e9)"}},
		Test:  Test{"internal/evidence/promises", "TestAnAttachedHoldOutlivesItsServerAndAFrozenOne"},
	},
	{
		Name: "requests of the client library keep their own numbers", Origin: "its numbers and those of zklock then collide",
		Edits: []Edit{{"internal/conn/proxy.go", "t.enter(r, nil, len(r))", "t.waiting[r.Xid()] = sentRequest{sent: now, op: r.Op(), xid: r.Xid()}"}},
		Test:  Test{"internal/conn", "TestZklockAndTheClientLibraryShareAConnection"},
	},
	{
		Name: "requests get no answer when their connection ends", Origin: "a caller then waits for the reply on the next connection",
		Edits: []Edit{{"internal/conn/proxy.go", "\t\t\tby.Answered(frames.Reply{}, zk.ErrConnectionClosed)\n\t\t}\n\t}\n}", "\t\t\t_ = zk.ErrConnectionClosed\n\t\t}\n\t}\n}"}},
		Test:  Test{"internal/conn", "TestTheEndOfAConnectionAnswersPendingRequests"},
	},
	{
		Name: "the server's proof that it knows the password is not checked", Origin: "clients that treat the result code OK as a successful login",
		Edits: []Edit{{"internal/conn/login.go", "case !bytes.Equal(token, proof):", "case bytes.Equal(token, proof) && token == nil:"}},
		Test:  Test{"internal/evidence/promises", "TestAServerThatCannotProveThePasswordIsRefused"},
	},
	{
		Name: "a session whose login is refused is requested again and again", Origin: "each request for a session renews it on the servers",
		Edits: []Edit{{"internal/conn/handshake.go", "(unknown && l.serves || l.login.isDenied())", "unknown"}},
		Test:  Test{"internal/evidence/promises", "TestASessionWhoseLoginIsRefusedEnds"},
	},
	{
		Name: "a refused login is final, even after an earlier one succeeded", Origin: "one server may not know a new password yet",
		Edits: []Edit{{"internal/conn/proxy.go", "\t\tt.link.login.admit()\n", ""}},
		Test:  Test{"internal/evidence/promises", "TestASessionWhoseLoginIsRefusedEnds"},
	},
	{
		Name: "an existing connection is kept open without a login", Origin: "Attach is called after the client library has connected",
		Edits: []Edit{{"internal/conn/handshake.go", "if conn != nil {\n\t\tconn.Close()\n\t}\n}\n\n// IsDenied", "_ = conn\n}\n\n// IsDenied"}},
		Test:  Test{"internal/evidence/promises", "TestAnExistingConnectionLogsInWhenItReconnects"},
	},
	{
		Name: "only the first connection logs in", Origin: "a login belongs to a connection, not to a session",
		Edits:   []Edit{{"internal/conn/proxy.go", "if login != nil {", "if login != nil && t.link.Latest() == nil {"}},
		Trouble: "logins",
	},
	{
		Name: "a node is not searched for after the reply to its create was lost", Origin: "CURATOR-45; go-zookeeper's CreateProtectedEphemeralSequential",
		Edits: []Edit{{"internal/queue/create.go", `if t.Name != "" || outcome.WasNotSent(t.creation.err) {`, "if t.creation.err != nil || true {"}},
	},
	{
		Name: "a node whose create had no reply is searched for on a server that lags", Origin: "go-zookeeper's CreateProtectedEphemeralSequential searches without a sync",
		Edits: []Edit{{"internal/session/request.go", "if err := r.askQuorum(ctx, s); err != nil {", "if err := ctx.Err(); err != nil {"}},
		Test:  Test{"internal/evidence/promises", "TestInspectShowsNoStateOfALaggingServer"},
	},
	{
		Name: "the queue is ordered by the nodes' names", Origin: "the GUID comes before the number in a name (C1, ZooKeeper's own recipe)",
		Edits: []Edit{{"internal/node/order.go", "e.Name != own.Name && Compare(e, own) < 0", "e.Name != own.Name && e.Name < own.Name"}},
	},
	{
		Name: "two nodes with the largest number are ordered by number", Origin: "go-zookeeper, Curator and kazoo after 2^31 creates",
		Edits: []Edit{{"internal/node/order.go", "{ return rank(a.Seq) == rank(b.Seq) }", "{ return a.Seq == b.Seq && a.Seq > math.MaxInt32 }"}},
	},
	{
		Name: "negative numbers are ordered before all others", Origin: "go-zookeeper's Lock after the counter overflows",
		Edits: []Edit{{"internal/node/order.go", "ranks := cmp.Compare(rank(a.Seq), rank(b.Seq));", "ranks := cmp.Compare(a.Seq, b.Seq);"}},
	},
	{
		Name: "nodes with equal numbers keep the order of the listing", Origin: "sorting by number alone after the counter has ended",
		Edits: []Edit{{"internal/node/order.go", "if tied {", "if tied = false; tied {"}},
	},
	{
		Name: "each contender waits for the second node ahead of it", Origin: "an off-by-one error in the choice of the predecessor",
		Edits: []Edit{{"internal/node/rules.go", "{ return len(ahead) - 1 }", "{ return len(ahead) - 2 }"}},
	},
	{
		Name: "other children of the directory are treated as contenders", Origin: "go-zookeeper's Lock and Curator's semaphore count every child",
		Edits: []Edit{{"internal/node/names.go", "if e, ok := ParseEntry(name); ok {", "if e, ok := ParseEntry(name); ok || func() bool { e.Name = name; return true }() {"}},
	},
	{
		Name: "a contender takes the lock when its predecessor has left", Origin: "the predecessor may have been a waiter that gave up",
		Edits: []Edit{{"internal/queue/wait.go", "\tt.nearest.remove(left)\n", "\tt.nearest.remove(left)\n\tt.nearest.ahead = slices.Clone(behind)\n"}},
	},
	{
		Name: "Ahead counts only the contenders whose names are kept", Origin: "the event of a waiter for permits",
		Edits: []Edit{{"internal/queue/turn.go", "Node: t.Name, Ahead: t.nearest.seen}", "Node: t.Name, Ahead: len(t.nearest.ahead)}"}},
		Test:  Test{"internal/evidence/promises", "TestEveryKindReportsHowManyAreAhead"},
	},
	{
		Name: "contenders that never held the lock write hand-off notes", Origin: "the only condition for writing a note is missing",
		Edits: []Edit{{"internal/queue/contender.go", "return t.removal.held && t.removal.note != nil &&", "return t.removal.note != nil &&"}},
		Seeds: 320,
	},
	{
		Name: "every predecessor that leaves is taken for a holder", Origin: "a mistake in reading notes",
		Edits: []Edit{{"internal/queue/note.go", "if named >= 0 && t.isTimely(dir.Stat) {", "if named = i; ours {"}},
	},
	{
		Name: "a contender that looks further ahead forgets the node it waits for", Origin: "the nodes behind the one that it reads are dropped",
		Edits: []Edit{{"internal/queue/wait.go", "slices.Clone(t.nearest.ahead[:i]), slices.Clone(t.nearest.ahead[i+1:])\n", "slices.Clone(t.nearest.ahead[:i]), t.nearest.ahead[:0]\n\tt.nearest.ahead = t.nearest.ahead[:i+1]\n"}},
	},
	{
		Name: "a read without a reply is taken for a missing node", Origin: "an error is treated like ErrNoNode",
		Edits: []Edit{{"internal/queue/wait.go", "\tif errors.Is(err, zk.ErrNoNode) {\n\t\tt.nearest.remove(e)", `	if err != nil && !t.Sess.IsOver() {
		t.nearest.remove(e)`}},
		Test: Test{"internal/evidence/promises", "TestACohortThroughAnyFault"},
	},
	{
		Name: "a note is taken to mean that all contenders ahead have left", Origin: "a mistake in reading notes",
		Edits: []Edit{{"internal/queue/nearest.go", "n.ahead, n.beyond = slices.Delete(n.ahead, 0, i+1), 0", "n.ahead, n.beyond = n.ahead[:0], 0"}},
	},
	{
		Name: "contenders beyond the nearest ones are forgotten", Origin: "a waiter keeps only the names of the nearest contenders",
		Edits: []Edit{{"internal/queue/nearest.go", "n.beyond = i + 1", "n.beyond = 0"}},
		Test:  Test{"internal/evidence/promises", "TestContendersBeyondTheNearestAreWaitedFor"},
	},
	{
		Name: "a contender whose nearest contenders have all left counts as the first", Origin: "a waiter keeps only the names of the nearest contenders",
		Edits: []Edit{{"internal/queue/wait.go", "case t.nearest.unsure || t.nearest.beyond > 0:", "case t.nearest.unsure:"}},
		Test:  Test{"internal/evidence/promises", "TestContendersBeyondTheNearestAreWaitedFor"},
	},
	{
		Name: "a note about a contender beyond the nearest is taken to mean that all of those have left", Origin: "a reader of the note cannot know how many contenders are between",
		Edits: []Edit{{"internal/queue/note.go", "\tif named >= 0 && t.isTimely(dir.Stat) {\n", "\tif ours {\n\t\tt.nearest.beyond = 0\n\t}\n\tif named >= 0 && t.isTimely(dir.Stat) {\n"}},
		Test:  Test{"internal/evidence/promises", "TestContendersBeyondTheNearestAreWaitedFor"},
	},
	{
		Name: "a listing keeps as many names as the last one, which were all of no use", Origin: "many listings in a row when many readers' writers let others pass",
		Edits: []Edit{{"internal/queue/nearest.go", "n.window = min(2*n.window, math.MaxInt32)", "n.window = min(n.window, math.MaxInt32)"}},
		Test:  Test{"internal/queue", "TestAPlaceWhoseNearestHaveLeftKeepsMore"},
	},
	{
		Name: "the contenders kept for the lock-delay start with the nearest one, not with the nearest unrecorded one", Origin: "a waiter keeps only the contenders that the lock-delay needs",
		Edits: []Edit{{"internal/queue/nearest.go", "\t\tif isUnrecorded(e) {\n\t\t\ti = j\n", "\t\tif isUnrecorded(e) {\n\t\t\ti = max(i, j)\n"}},
		Test:  Test{"internal/queue", "TestInitialAheadFindsTheUnrecordedContender"},
	},
	{
		Name: "a caller joins a listing that began before its call", Origin: "single flight, as caches use it",
		Edits: []Edit{{"internal/session/listing.go", "\t\treturn running.next\n", "\t\treturn running\n"}},
		Test:  Test{"internal/session", "TestAListingIsRequestedAfterTheCall"},
	},
	{
		Name: "every caller lists the queue itself", Origin: "our first version: the time for n contenders to arrive grew with the square of n",
		Edits: []Edit{{"internal/session/listing.go", "running := f.running[key]; running != nil {", "running := f.running[key]; running != nil && running.next != nil {"}},
		Test:  Test{"internal/session", "TestAListingIsRequestedAfterTheCall"},
	},
	{
		Name: "the number of long listings at the same time is not limited", Origin: "the heartbeats behind them come too late",
		Edits: []Edit{{"internal/session/listing.go", "\t\troom <- struct{}{}\n\t\tdefer func() { <-room }()\n", "\t\t_ = room\n"}},
		Test:  Test{"internal/session", "TestFewLongListingsAreUnderWay"},
	},
	{
		Name: "sequence numbers alone decide the order", Origin: "the counter has ended, and two nodes have the same number",
		Edits: []Edit{{"internal/node/queue.go", "return l.Entries[:from:from], known\n", "return l.Entries[:from:from], known || len(l.Entries) > 0\n"}},
		Test:  Test{"internal/node", "FuzzOrder"},
	},
	{
		Name: "a watch whose event was withheld is waited for without a check", Origin: "every other client: the server removes a watch even if the client may not see its event",
		Edits:   []Edit{{"internal/session/watch.go", "\t\t\tif !checking {\n", "\t\t\tif checking {\n"}},
		Trouble: "blind", Faults: "^blind$",
	},
	{
		Name: "a try does not list the queue again after a writer of Curator's has left", Origin: "the earlier listing does not contain the reader that replaces the writer",
		Edits: []Edit{{"internal/queue/turn.go", "\tfor t.nearest.unsure {\n", "\tfor t == nil {\n"}},
		Test:  Test{"internal/evidence/promises", "TestATryIsRefusedWhereCuratorsWriterBecomesAReader"},
	},
	{
		Name: "after the counter has ended, a reader of Curator's that was a writer is ordered by its own age", Origin: "it replaces the writer, so it has the writer's position",
		Edits: []Edit{{"internal/queue/position.go", "\tt.nearest.positionReplaced(tied)\n", ""}},
		Test:  Test{"internal/evidence/promises", "TestNoLockIsGrantedTogetherWithCuratorsDowngradedReader"},
	},
	{
		Name: "a waiter for permits fails if their number changed while it waited", Origin: "our first version: it compared the number again in each session",
		Edits: []Edit{{"internal/queue/permits.go", `		if !agreed {
`, `		if agreed = false; !agreed {
`}},
		Test: Test{"internal/evidence/promises", "TestAWaiterWhoseSessionExpiresAfterAResizeQueuesAgain"},
	},
	{
		Name: "a contender that gives up writes a hand-off note", Origin: "the only condition for writing a note is missing, while a holder remains",
		Edits: []Edit{{"internal/queue/contender.go", "return t.removal.held && t.removal.note != nil &&", "return t.removal.note != nil &&"}},
		Test:  Test{"internal/evidence/promises", "TestAWaiterThatGivesUpAfterAReleaseWritesNoNote"},
	},
	{
		Name: "a note that is older than the listing is used", Origin: "the first half of the check that a note is timely",
		Edits: []Edit{{"internal/queue/note.go", "return dir.Mzxid > t.listed && dir.Mzxid <= dir.Pzxid", "return dir.Mzxid <= dir.Pzxid"}},
		Test:  Test{"internal/evidence/promises", "TestAForgedNoteGrantsNothing"},
	},
	{
		Name: "a note that was written without a deletion is used", Origin: "the second half of the check that a note is timely",
		Edits: []Edit{{"internal/queue/note.go", "return dir.Mzxid > t.listed && dir.Mzxid <= dir.Pzxid", "return dir.Mzxid > t.listed"}},
		Test:  Test{"internal/evidence/promises", "TestAForgedNoteGrantsNothing"},
	},
	{
		Name: "a client with Untrusted uses hand-off notes", Origin: "the option is checked in two places",
		Edits:   []Edit{{"internal/queue/note.go", "\tif t.engine.Unnoted.untrusted {\n", "\tif t == nil {\n"}},
		Trouble: "forged", Faults: "forged|delete",
	},
	{
		Name: "a batch counts as complete if its first node exists", Origin: "only one of several nodes is looked for",
		Edits: []Edit{{"internal/queue/batch.go", "\t\tif !queue.Has(x.Name) {\n", "\t\tif x == &t.member && !queue.Has(x.Name) {\n"}},
		Test:  Test{"internal/evidence/promises", "TestABatchOfWhichAListingShowsAPartIsNotGranted"},
	},
	{
		Name: "the cached state of a directory is valid for hours", Origin: "a directory that is deleted and created again has the same versions",
		Edits: []Edit{{"internal/queue/dircache.go", "recentLife = 10 * time.Second", "recentLife = 10 * time.Hour"}},
		Test:  Test{"internal/evidence/promises", "TestADirectoryThatWasCreatedAgainKeepsItsData"},
	},
	{
		Name: "the first waiter for permits does not notice that its queue node was deleted", Origin: "it has two nodes, and only one is watched",
		Edits: []Edit{{"internal/queue/permits.go", "inside, stop := untilGone(ctx, &queueNode.OwnNode)", "inside, stop := session.Either(ctx, ctx)"}},
		Test:  Test{"internal/evidence/promises", "TestTheFirstInLineForPermitsWhoseQueueNodeIsGoneLetsOthersPass"},
	},
	{
		Name: "a lost create is no longer searched for one session timeout after its session", Origin: "a new leader gives every session its full timeout again",
		Edits: []Edit{{"internal/session/pending.go", "> 2*g.Sess.Lease.Term()", "> g.Sess.Lease.Term()"}},
		Test:  Test{"internal/evidence/promises", "TestALostCreateIsSearchedForUntilNoServerHasItsSession"},
	},
	{
		Name: "a try for permits succeeds although another caller is about to take them", Origin: "a caller in the queue has no permit node yet",
		Edits: []Edit{{"internal/queue/permits.go", "for i, sub := range []string{node.LeasesDir, node.PermitQueueDir} {", "for i, sub := range []string{node.LeasesDir} {"}},
		Test:  Test{"internal/evidence/promises", "TestATryForPermitsDoesNotOvertakeAnAcquireUnderWay"},
	},
	{
		Name: "an acquire of permits counts twice until its queue node is deleted", Origin: "a try is refused although a permit is free and no caller waits",
		Edits: []Edit{{"internal/queue/permits.go", `if group := node.GroupOf(e.Name); group == "" || !counted[group] {`, `if group := node.GroupOf(e.Name); group == "" || counted != nil {`}},
		Test:  Test{"internal/queue", "TestAnAcquireThatHasReturnedCountsOnce"},
	},
	{
		Name: "the log line about a slow observer lacks the session", Origin: "a program with two clients cannot tell which one it is about",
		Edits: []Edit{{"zklock.go", "append(sessionOf(l), \"duration\"", "append([]any(nil), \"duration\""}},
		Test:  Test{"internal/evidence/promises", "TestASlowObserverIsReported"},
	},
	{
		Name: "a call that has acquired its lock still counts as waiting", Origin: "the number of waiters only grows",
		Edits: []Edit{{"recipe.go", "\tdefer c.waiting.Add(-1)\n", ""}},
		Test:  Test{"internal/evidence/promises", "TestAClientHasStatistics"},
	},
	{
		Name: "the guardian does not enforce the command's timeout", Origin: "a job that hangs while zklock is stopped continues to run",
		Edits: []Edit{{"cmd/zklock/internal/guardian/guard.go", "g.job.Timeout > 0 && g.limit.left() <= 0", "g.job.Timeout < 0 && g.limit.left() <= 0"}},
		Test:  Test{"cmd/zklock/internal/guardian", "TestTheGuardianEndsACommandThatHasRunForItsTimeout"},
	},
	{
		Name: "the lock is released before a command that exceeded its timeout has ended", Origin: "a process that does not end at once on KILL runs at the same time as the next holder",
		Edits: []Edit{{"cmd/zklock/internal/guardian/orders.go", "r == leftover || r == overran", "r == leftover"}},
		Test:  Test{"cmd/zklock/internal/guardian", "TestTheGuardianEndsACommandThatHasRunForItsTimeout"},
	},
	{
		Name: "the error of a wait for permits does not say how many are missing", Origin: "it says only: context deadline exceeded",
		Edits: []Edit{{"internal/queue/permits.go", "\t\tqueueNode.setReason(lacksPermits{k, max(0, limit-made.nearest.seen), limit})\n", "\t\t_, _ = k, limit\n"}},
		Test:  Test{"internal/queue", "TestTheFirstInTheQueueForPermitsSaysHowManyItWaitsFor"},
	},
	{
		Name: "the error of a cohort's goroutine does not say what it waited for", Origin: "it says only: context deadline exceeded",
		Edits: []Edit{{"localqueue.go", "outcome.WaitedFor(context.Cause(w.ctx), waitedFor)", "outcome.CauseOf(w.ctx, errors.New(waitedFor))"}},
		Test:  Test{"internal/evidence/promises", "TestTheErrorOfACohortsGoroutineNamesWhatItWaitedFor"},
	},
	{
		Name: "a lock's path may look like a contender's node", Origin: "a lock named after a time stamp blocks the lock at its parent for ever",
		Edits: []Edit{{"internal/node/paths.go", "\treturn checkElement(path, BaseName(path))\n", "\treturn nil\n"}},
		Test:  Test{"internal/node", "TestPathsAreCheckedByZooKeepersRules"},
	},
	{
		Name: "a semaphore stores an earlier number of permits although it has read a newer one", Origin: "the waiters sent the earlier number",
		Edits: []Edit{{"internal/queue/permits.go", "cmp.Or(s.latest, s.Total)", "cmp.Or(s.Total, s.latest)"}},
		Test:  Test{"internal/queue", "TestANumberOfPermitsDoesNotReturnToAnEarlierOne"},
	},
	{
		Name: "a caller that accepts the stored number of permits creates a directory without one", Origin: "a number of zero permits would be stored",
		Edits: []Edit{{"internal/queue/permits.go", "s.number() == 0 && (err == nil", "s.number() < 0 && (err == nil"}, {"internal/queue/permits.go", "zk.ErrNoNode) && s.number() != 0:", "zk.ErrNoNode):"}},
		Test:  Test{"internal/evidence/promises", "TestACallerCanAcceptTheStoredNumber"},
	},
	{
		Name: "a hold that is acquired under an earlier one keeps all earlier ones in memory", Origin: "each step costs 1.3 kB and makes the search longer",
		Edits: []Edit{{"hold.go", "\tc.outer.Store(outer)\n\tif c.hold.hasNoEffect() {", "\tif c.hold.hasNoEffect() {"}},
		Test:  Test{"internal/evidence/promises", "TestChainedHoldsDoNotAccumulate"},
	},
	{
		Name: "Resize uses a node name that a lock can have", Origin: "our first version: a lock with that name makes Resize fail",
		Edits: []Edit{{"internal/queue/permits.go", "dir + \"/\" + node.ResizedName", "dir + \"/\" + node.ResizedName[:len(\"resized\")]"}},
		Test:  Test{"internal/queue", "TestResizeNeedsNoNameThatALockCanHave"},
	},
	{
		Name: "the error of a wait for proof of the session does not say so", Origin: "it says only: context deadline exceeded",
		Edits: []Edit{{"internal/queue/proof.go", "\t\tt.setReason(isUnproven{t.Sess.Lease})\n", ""}},
		Test:  Test{"internal/queue", "TestAWaitForProofOfTheSessionSaysSo"},
	},
	{
		Name: "a request to release that arrives while it is being forwarded is lost", Origin: "the check comes before the registration",
		Edits: []Edit{{"internal/session/ownnode.go", "\tr.mu.Lock()\n\tr.also = append(r.also, to)\n\tr.mu.Unlock()\n\tif r.Requested.IsSet() {\n", "\theard := r.Requested.IsSet()\n\tr.mu.Lock()\n\tr.also = append(r.also, to)\n\tr.mu.Unlock()\n\tif heard {\n"}},
		Test:  Test{"internal/session", "TestARequestToReleaseThatArrivesDuringForwardingIsNotLost"},
	},
	{
		Name: "a call remains registered with the client's context after it returns", Origin: "context.AfterFunc without a call of its stop function",
		Edits: []Edit{{"internal/session/wait.go", "\t\tstop()\n\t\tcancel(nil)\n", "\t\t_ = stop\n\t\tcancel(nil)\n"}},
		Test:  Test{"internal/session", "TestAReleasedContextIsNotKeptByItsOtherParent"},
	},
	{
		Name: "a contender with several nodes removes them from a shared listing", Origin: "slices.DeleteFunc modifies its argument",
		Edits: []Edit{{"internal/queue/batch.go", "slices.DeleteFunc(slices.Clone(ahead), ", "slices.DeleteFunc(ahead, "}},
		Test:  Test{"internal/queue", "TestTheListingIsLeftAsItIsWithoutOurNodes"},
	},
	{
		Name: "a caller changes the order of a shared listing", Origin: "the entries are modified in place",
		Edits: []Edit{{"internal/queue/position.go", "slices.Clone(queue.Entries), own", "queue.Entries, own"}},
		Test:  Test{"internal/queue", "TestTheListingIsLeftAsItIsWhenNumbersDoNotShowTheOrder"},
	},
	{
		Name: "Client.String shows a wait that has ended", Origin: "the wait is added to the list but not removed",
		Edits: []Edit{{"internal/queue/turn.go", "\tdefer c.waits.remove(w)\n\trevocation := new(session.Revocation)", "\trevocation := new(session.Revocation)"}},
		Test:  Test{"internal/queue", "TestAWaitForAContenderSaysForWhich"},
	},
	{
		Name: "a refused deletion is not logged", Origin: "a background retry that never ends and logs nothing",
		Edits: []Edit{{"internal/queue/delete.go", "\t\t\tc.Requests.Log.Warn(\"zklock: deletion of own node refused, trying again\", \"path\", c.Requests.Shown(t.Dir), \"node\", node.BaseName(t.anyPath()), \"err\", err)\n", "\t\t\t_ = node.BaseName\n"}},
		Test:  Test{"internal/queue", "TestANodeThatCannotBeDeletedIsReported"},
	},
	{
		Name: "pings renew the lease", Origin: "every client that trusts the state of its connection",
		Edits: []Edit{{"internal/lease/lease.go", "\tr.forget(got)\n\tif of != OfServer {", "\tl.prove(sent)\n\tr.forget(got)\n\tif of != OfServer {"}},
		Test:  Test{"internal/evidence/promises", "TestEveryHoldEndsBeforeAnotherHolds"},
	},
	{
		Name: "a reconnect to the same session renews the lease", Origin: "on real servers, a leader that was cut off lets its clients reconnect",
		Edits: []Edit{{"internal/lease/lease.go", "\tl.run = &Run{l: l, beats: []*beat{{sent: sent, steps: upstream, from: got.Mono}}}\n", "\tl.prove(sent)\n\tl.run = &Run{l: l, beats: []*beat{{sent: sent, steps: upstream, from: got.Mono}}}\n"}},
		Test:  Test{"internal/lease", "TestAReconnectCountsFromTheLeadersFirstReplyOnThatConnection"},
	},
	{
		Name: "a run of heartbeats continues on the next connection", Origin: "design: a deposed leader continues a run without a gap while the next leader lets the session expire",
		Edits: []Edit{{"internal/lease/lease.go", "\tl.run = &Run{l: l, beats: []*beat{{sent: sent, steps: upstream, from: got.Mono}}}\n", "\told := l.run\n\tl.run = &Run{l: l, beats: []*beat{{sent: sent, steps: upstream, from: got.Mono}}}\n\tif old != nil {\n\t\tl.run.heard, l.run.since = old.heard, old.since\n\t}\n"}},
		Test:  Test{"internal/lease", "TestARunExtendsNoProofAcrossConnections"},
	},
	{
		Name: "a reconnect is taken to mean that the leader has counted a touch", Origin: "design: the leader's reply can be to an earlier request",
		Edits: []Edit{{"internal/lease/lease.go", "\tl.run = &Run{l: l, beats", "\tl.run = &Run{l: l, heard: sent, since: got, beats"}},
		Test:  Test{"internal/lease", "TestAReconnectIsNotConfirmedByItsOwnReply"},
	},
	{
		Name: "a run of heartbeats continues after a gap", Origin: "design: the leader may have begun to end the session",
		Edits: []Edit{{"internal/lease/lease.go", "if r.l.leftOf(r.heard, got) <= 0 {", "if r.since.Mono.IsZero() {"}},
		Test:  Test{"internal/lease", "TestAfterAGapATransactionProvesOnlyWhenTheRunHasSettled"},
	},
	{
		Name: "a run counts as settled if it is settled when the transaction is answered", Origin: "the time of the reply is used instead of that of the request",
		Edits: []Edit{{"internal/lease/lease.go", "\t\tr.conclude(sent)\n", "\t\tr.conclude(got)\n"}},
		Test:  Test{"internal/lease", "TestAfterAGapATransactionProvesOnlyWhenTheRunHasSettled"},
	},
	{
		Name: "a late reply on an earlier connection counts", Origin: "design: all steps of a proof need the same connection",
		Edits: []Edit{{"internal/lease/lease.go", "\tif l.run != r {", "\tif l.run == nil {"}},
		Test:  Test{"internal/lease", "TestEveryStepOfAProofIsNeeded"},
	},
	{
		Name: "only the first contender of all watches its own node", Origin: "a reader behind other readers did not watch its own node",
		Edits: []Edit{{"internal/queue/wait.go", "if others == 0 {\n\t\tt.watchSelfWith(b)", "if others == 0 && t.nearest.seen == 1 {\n\t\tt.watchSelfWith(b)"}},
		Test:  Test{"internal/evidence/promises", "TestAReaderThatLostItsNodeIsNotGranted"},
	},
	{
		Name: "the lease counts from the receipt of a reply", Origin: "redsync, redisson and others",
		Edits: []Edit{{"internal/lease/lease.go", "\t\tl.proven = touch\n", "\t\tl.proven = l.now()\n"}},
		Seeds: 480,
		Test:  Test{"internal/lease", "TestAProofDatesFromTheOlderOfTwoTouches"},
	},
	{
		Name: "a request that was answered is taken to have reached the leader with the next write", Origin: "our first argument for the proof",
		Edits: []Edit{{"internal/lease/lease.go", "b.steps == upstream && !b.from.After(t)", "b.steps >= touched && !b.from.Add(r.l.halfTick()-r.l.lag()).After(t)"}},
		Test:  Test{"internal/lease", "TestEveryStepOfAProofIsNeeded"},
	},
	{
		Name: "one sync is taken as proof that the leader has sent its ping", Origin: "a leader that paused",
		Edits: []Edit{{"internal/lease/lease.go", "\tb.steps++\n", "\tif b.steps++; b.steps == 3 {\n\t\tb.steps = upstream\n\t}\n"}},
		Test:  Test{"internal/lease", "TestEveryStepOfAProofIsNeeded"},
	},
	{
		Name: "the leader's ping is assumed to be on time", Origin: "design: half a tick is needed",
		Edits: []Edit{{"internal/lease/lease.go", "got.Mono.Add(l.lag())", "got.Mono"}},
		Test:  Test{"internal/lease", "TestEveryStepOfAProofIsNeeded"},
	},
	{
		Name: "a touch is never lost", Origin: "LearnerSessionTracker replaces its table after it was serialized",
		Edits: []Edit{{"internal/lease/lease.go", "\tcase touched:\n", "\tcase touched:\n\t\tb.sent = sent\n"}},
		Test:  Test{"internal/lease", "TestAProofDatesFromTheOlderOfTwoTouches"},
	},
	{
		Name: "a lease that expired is valid again at once", Origin: "the leader expires all sessions of a bucket together",
		Edits: []Edit{{"internal/lease/lease.go", "r.joins() || !r.settled().After(sent.Mono)", "r.joins() || !r.since.Mono.After(sent.Mono)"}},
		Test:  Test{"internal/lease", "TestAfterAGapATransactionProvesOnlyWhenTheRunHasSettled"},
	},
	{
		Name: "heartbeats have no minimum interval", Origin: "our first version: sixty-five reads in a session of one tick",
		Edits: []Edit{{"internal/lease/schedule.go", "l.timeout/12)", "l.timeout/60)"}},
		Test:  Test{"internal/evidence/promises", "TestAShortSessionHasFewHeartbeats"},
	},
	{
		Name: "a queue at the servers makes heartbeats more frequent", Origin: "our third version: after a restart, a fleet of 6,000 clients lost a hold each",
		Edits: []Edit{{"internal/lease/schedule.go", "4*l.replies.distance(now, l.timeout)", "4*l.replies.slow"}},
		Test:  Test{"internal/evidence/scale", "TestARestartUnderLoadCostsNoHold"},
	},
	{
		Name: "fast syncs hide slow commits", Origin: "a trial: with slow commits no lock was ever granted",
		Edits: []Edit{{"internal/lease/replies.go", "range r.fastest {", "range r.fastest[:OfQuorum] {"}},
		Test:  Test{"internal/lease", "TestTheSlowestKindOfReplyIsTheDistance"},
	},
	{
		Name: "when a period begins, the fastest reply of the one before is forgotten", Origin: "a trial: every fourth reply of a queue counted as the network's distance",
		Edits: []Edit{{"internal/lease/replies.go", "fastest{d, f.now, now}", "fastest{d, d, now}"}},
		Test:  Test{"internal/lease", "TestAQueueDoesNotMakeHeartbeatsMoreFrequent"},
	},
	{
		Name: "a longer session timeout extends earlier proofs", Origin: "our first version",
		Edits: []Edit{{"internal/lease/lease.go", "l.timeout = min(l.timeout, timeout)", "l.timeout = timeout"}},
		Focus: "mutex", Trouble: "minimums", Faults: "^elect|partition",
	},
	{
		Name: "the lease lasts longer than the session timeout", Origin: "Curator reports LOST after 4/3 of the timeout",
		Edits: []Edit{{"internal/lease/lease.go", "(1-maxDrift)) - now", "(1+10*maxDrift)) - now"}},
	},
	{
		Name: "no timer ends a hold", Origin: "go-zookeeper, kazoo, Curator: only an event ends it",
		Edits: []Edit{
			{"holding.go", "timer.Reset(min(left, sess.Lease.Glance()))", "timer.Reset(1000 * time.Hour)"},
		},
	},
	{
		Name: "no heartbeats are sent", Origin: "they were forgotten",
		Edits: []Edit{{"internal/session/heartbeat.go", "due, wait := s.Lease.Next(b.h.kept.isAny(s))", "due, wait := lease.Due{}, time.Duration(never)"}},
	},
	{
		Name: "the client waits for a silent server as long as the client library does", Origin: "two thirds of the timeout; short leases have ended by then",
		Edits: []Edit{{"internal/session/silence.go", "\tr.Link.Abandon(s)\n", ""}},
		Test:  Test{"internal/evidence/promises", "TestAFollowerThatFailsCostsNoHold"},
	},
	{
		Name: "the client's patience does not grow after slow replies", Origin: "our first version: with slow disks, it left each server before it could reply",
		Edits: []Edit{{"internal/lease/schedule.go", "max(l.timeout/5, 2*l.replies.slow)", "l.timeout/5"}},
		Test:  Test{"internal/evidence/promises", "TestSlowServersDelayNoCallForEver"},
	},
	{
		Name: "a server counts as silent until it has sent a complete reply", Origin: "our first version: a long listing takes time to arrive",
		Edits: []Edit{{"internal/conn/proxy.go", "\t\ti.proxy.hear()\n", ""}},
		Test:  Test{"internal/conn", "TestAServerThatAnswersUsIsNotSilentForTheClientLibrary"},
	},
	{
		Name: "the client library's deadline considers only replies to its own requests", Origin: "our first version: most replies do not reach the client library",
		Edits: []Edit{{"internal/conn/proxy.go", "if i.proxy.bound > 0 {", "if i.proxy.bound < 0 {"}},
		Test:  Test{"internal/conn", "TestAServerThatAnswersUsIsNotSilentForTheClientLibrary"},
	},
	{
		Name: "a server is not left as silent if no request was pending at the first check", Origin: "our first version: it was left one heartbeat later than necessary",
		Edits: []Edit{{"internal/session/silence.go", "\t\treturn patience // a heartbeat", "\t\treturn never // a heartbeat"}},
		Test:  Test{"internal/evidence/promises", "TestAFollowerThatFailsCostsNoHold"},
	},
	{
		Name: "the client leaves a server that fails only after a third of the timeout", Origin: "our first version: a command did not have enough time to end",
		Edits: []Edit{{"internal/lease/schedule.go", "max(l.timeout/5, 2*l.replies.slow)", "max(l.timeout/3, 2*l.replies.slow)"}},
		Test:  Test{"internal/evidence/promises", "TestAFollowerThatFailsCostsNoHold"},
	},
	{
		Name: "only heartbeats start a proof of the session", Origin: "our first version: a contender that became the next in line waited long before it asked the quorum",
		Edits: []Edit{{"internal/queue/wait.go", `	t.watchSelfWith(b)
	t.engine.Heart.Keep(&t.OwnNode)
`, `	t.watchSelfWith(b)
`}, {"internal/queue/wait.go", `		t.engine.Heart.Keep(&t.OwnNode) // otherwise grant would have to wait for the quorum
`, ""}, {"internal/queue/proof.go", "t.Sess.Lease.IsAmple; !isEnough()", "t.Sess.Lease.Fresh; !isEnough()"}},
		Test: Test{"internal/evidence/promises", "TestAnUnexpectedHoldHasFourTenthsOfTheTimeoutLeft"},
	},
	{
		Name: "the next in line does not prove its session while it waits", Origin: "our first version: its grant waited for a reply",
		Edits: []Edit{{"internal/queue/wait.go", `		t.engine.Heart.Keep(&t.OwnNode) // otherwise grant would have to wait for the quorum
`, ""}},
		Test: Test{"internal/evidence/promises", "TestEveryHandOffTakesOneRoundTrip"},
	},
	{
		Name: "a grant does not require a fresh lease", Origin: "etcd's lock returned without checking its own lease",
		Edits: []Edit{{"internal/queue/proof.go", "for isEnough := t.Sess.Lease.IsAmple; !isEnough(); isEnough = t.Sess.Lease.Fresh {", "for isEnough := t.Sess.Lease.IsAmple; !isEnough() && t.Sess.IsOver(); {"}, {"internal/queue/proof.go", "return !t.isUnseen() && t.Sess.Lease.Fresh() && ", "return !t.isUnseen() && "}},
		Test:  Test{"internal/evidence/promises", "TestAGrantOnStaleEvidenceIsConfirmedByTheQuorum"},
	},
	{
		Name: "holders do not watch their own nodes", Origin: "Curator, kazoo, go-zookeeper",
		Edits: []Edit{{"internal/queue/selfwatch.go", `	for !g.left.Load() {
		v, err := g.watch(g.engine.Requests.Life)
`, `	for g == nil {
		v, err := g.watch(g.engine.Requests.Life)
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
		Name: "the clean-up stops when the caller's context is done", Origin: "etcd, Vitess, CURATOR-45",
		Edits: []Edit{{"internal/queue/turn.go", "\toutcomes := []<-chan error{c.remove(t.contender)}\n", "\tvar outcomes []<-chan error\n\tif ctx.Err() == nil {\n\t\toutcomes = append(outcomes, c.remove(t.contender))\n\t}\n"}},
	},
	{
		Name: "a failed delete is not repeated", Origin: "go-zookeeper's Lock after an error, CURATOR-315",
		Edits: []Edit{{"internal/queue/delete.go", "case outcome.IsRefusal(err) || ctx.Err() != nil:", "default:"}},
	},
	{
		Name: "a try that fails leaves its node", Origin: "kazoo #732",
		Edits: []Edit{{"internal/queue/turn.go", "\toutcomes := []<-chan error{c.remove(t.contender)}\n", "\tvar outcomes []<-chan error\n\tif !errors.Is(err, outcome.ErrLocked) {\n\t\toutcomes = append(outcomes, c.remove(t.contender))\n\t}\n"}},
	},
	{
		Name: "the node of a session that was replaced is not deleted", Origin: "the old session may still exist on servers that do not restore sessions",
		Edits: []Edit{{"internal/queue/delete.go", "case t.creation == nil && t.Sess.HasExpired():", "case t.Sess != nil && t.Sess.IsOver():"}},
		Seeds: 320,
	},
	{
		Name: "an acquire fails if its directory was deleted", Origin: "CURATOR-724, kazoo #563",
		Edits: []Edit{{"internal/queue/position.go", "err = t.engine.Directories.MakeDir(ctx, s, t.Dir, t.recipe.depth())", "err = a.err"}},
	},
	{
		Name: "a waiter whose session ended does not queue again", Origin: "CURATOR-518, twitter-commons #20",
		Edits: []Edit{{"internal/queue/turn.go", "if !errors.Is(err, outcome.ErrSessionOver) && !errors.Is(err, outcome.ErrGone) {", "if ctx.Err() != nil || !errors.Is(err, outcome.ErrGone) {"}},
	},
	{
		Name: "a waiter whose node was deleted does not queue again", Origin: "an operator's deletion ends the acquire",
		Edits: []Edit{{"internal/queue/turn.go", "if !errors.Is(err, outcome.ErrSessionOver) && !errors.Is(err, outcome.ErrGone) {", "if !errors.Is(err, outcome.ErrSessionOver) {"}},
	},
	{
		Name: "a waiter does not notice the end of its session", Origin: "kazoo #282, etcd #19597",
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
		Name: "the token is the sequence number", Origin: "it starts again from zero when the directory is created again",
		Edits: []Edit{{"internal/queue/contender.go", "t.Name, t.czxid = node.BaseName(path), czxid", "own, _ := node.ParseEntry(node.BaseName(path))\n\t\tt.Name, t.czxid = own.Name, int64(own.Seq)+1"}},
	},
	{
		Name: "the token is the zxid of the directory's last change", Origin: "contenders in the middle of the queue have smaller ones",
		Edits: []Edit{{"internal/queue/position.go", "t.listed, t.looked = l.Stat.Mzxid, l.At\n", "t.listed, t.looked, t.czxid = l.Stat.Mzxid, l.At, l.Stat.Pzxid\n"}},
	},
	{
		Name: "a guarded transaction is sent without its guard", Origin: "a process that was stopped continues later",
		Edits: []Edit{{"hold.go", "guard := h.Guard()\n", "guard := h.Guard()[:0]\n"}},
	},
	{
		Name: "Close does not end a wait for a watch", Origin: "the wait listens only to its caller and to the watch",
		Edits: []Edit{{"internal/session/watch.go", "\t\tcase <-t.requests.Life.Done():\n", "\t\tcase <-t.requests.CleanupCtx.Done():\n"}},
		Test:  Test{"internal/evidence/promises", "TestCloseEndsEveryWaitAtOnce"},
	},
	{
		Name: "after Close, a wait continues until watches can be set again", Origin: "that does not happen while no server accepts its credentials",
		Edits: []Edit{{"internal/session/rearm.go", "Ask(r.requests.Life, r.requests, s,", "Ask(r.requests.CleanupCtx, r.requests, s,"}},
		Test:  Test{"internal/evidence/promises", "TestCloseEndsEveryWaitAtOnce"},
	},
	{
		Name: "after Close, a call that has not sent anything yet continues", Origin: "its two contexts are not joined",
		Edits: []Edit{{"internal/session/wait.go", "return c.Context.Done(), c.life.Done()", "return c.Context.Done(), nil"}},
		Test:  Test{"internal/evidence/promises", "TestCloseEndsEveryWaitAtOnce"},
	},
	{
		Name: "every call joins its contexts", Origin: "that costs half a kilobyte for each waiter",
		Edits: []Edit{{"internal/session/wait.go", "return c.Context.Done(), c.life.Done()", "return c.Done(), nil"}},
		Test:  Test{"internal/evidence/promises", "TestAWaiterTakesTwoKilobytes"},
	},
	{
		Name: "a connection keeps the buffer of its longest listing", Origin: "the buffer is as long as the queue",
		Edits: []Edit{{"internal/frames/reader.go", "cap(r.buf) > short", "cap(r.buf) > 16*chunk"}},
		Test:  Test{"internal/evidence/promises", "TestAWaiterTakesTwoKilobytes"},
	},
	{
		Name: "a waiter whose node was deleted does not notice it", Origin: "only the next in line watches its own node",
		Edits: []Edit{{"internal/queue/member.go", "\treturn m.Gone.Done()\n", "\treturn nil\n"}},
		Test:  Test{"internal/evidence/promises", "TestAWaiterWhoseNodeWasDeletedQueuesAgainAtOnce"},
	},
	{
		Name: "the deadline of the acquire ends the hold", Origin: "Vitess #11794, etcd",
		Edits: []Edit{{"recipe.go", "h := c.hold(ctx, w.recipe, w.path, granted)\n", "h := c.hold(ctx, w.recipe, w.path, granted)\n\tcontext.AfterFunc(ctx, func() { h.holding().cancel(context.Cause(ctx)) })\n"}},
	},
	{
		Name: "an exists watch is set on a missing node", Origin: "go-zookeeper keeps it for ever",
		Edits: []Edit{{"internal/session/watch.go", `request, read := key.request()
`, `request, read := key.request()
		if key.children {
			missing := frames.Exists(key.path + "/_c_missing")
			missing[len(missing)-1] = 1
			add(b, missing, readNothing, nil)
		}
`}},
		Focus: "election",
	},
	{
		Name: "unlocking an inner level ends the outermost hold", Origin: "etcd: one Unlock releases two mutexes",
		Edits: []Edit{{"holding.go", "if g.levels > 0 && !all {", "if g.levels > 100 && !all {"}},
		Focus: "reentrant",
	},
	{
		Name: "entering a lost lock again succeeds", Origin: "Curator increments the count in any case",
		Edits: []Edit{{"reentrant.go", "case cause != nil:", "case cause == context.Canceled:"}},
		Test:  Test{"internal/evidence/promises", "TestEnteringALostHoldFails"},
	},
	{
		Name: "entering a lock again queues again", Origin: "a lock that is not reentrant",
		Edits: []Edit{{"reentrant.go", "return h == nil && err == nil\n", "h = nil\n\t\treturn err == nil\n"}},
		Focus: "reentrant",
	},
	{
		Name: "a leader resigns while its function still runs", Origin: "client-go's ReleaseOnCancel",
		Edits: []Edit{{"do.go", "\terr := fn(inside)\n", "\tcontext.AfterFunc(inside, func() { h.Unlock(context.Background()) })\n\terr := fn(inside)\n"}},
		Focus: "election",
	},
	{
		Name: "readers do not wait for writers", Origin: "a reader overtakes a waiting writer",
		Edits: []Edit{{"internal/node/rules.go", "if !ahead[i].Shared {", "if !ahead[i].Shared && i == 0 {"}},
		Focus: "rw",
	},
	{
		Name: "readers wait for readers", Origin: "they do not share the lock: kazoo #649 waited for the wrong node",
		Edits: []Edit{{"internal/node/rules.go", "if !ahead[i].Shared {", "if len(ahead) > 0 {"}},
		Focus: "rw",
	},
	{
		Name: "a writer waits only for writers", Origin: "CURATOR-621: a writer and a reader held at the same time",
		Edits: []Edit{{"rwmutex.go", "Infix: node.WriterInfix, Rule: node.AfterAll}", "Infix: node.WriterInfix, Rule: node.AfterExclusive}"}},
		Focus: "rw",
	},
	{
		Name: "readers do not notice a downgrade", Origin: "they wait until the writer's node is gone",
		Edits: []Edit{{"rwmutex.go", "Rule: node.AfterExclusive, Shared: true, Passes: node.IsDowngraded}", "Rule: node.AfterExclusive, Shared: true}"}},
		Test:  Test{"internal/evidence/promises", "TestReadersBehindADowngradedWriterDoNotWaitForTheLockDelay"},
	},
	{
		Name: "a downgrade deletes the writer's node", Origin: "Curator before CURATOR-621",
		Edits: []Edit{{"rwmutex.go", `	o.Shared = true
	return h.rewrite(ctx, o.Encode())`, `	o.Shared = true
	return h.holding().engine.Requests.Delete(ctx, h.holding().nodes[0].Sess, h.holding().nodes[0].Path(), -1)`}},
		Focus: "rw",
	},
	{
		Name: "Downgrade returns before the servers have replied", Origin: "a request whose reply is not needed is not waited for",
		Edits: []Edit{{"rwmutex.go", `	o.Shared = true
	return h.rewrite(ctx, o.Encode())`, `	o.Shared = true
	go func() { _ = h.rewrite(ctx, o.Encode()) }()
	return nil`}},
		Focus: "rw",
	},
	{
		Name: "the gap before a touch is measured at the time of its request", Origin: "time passes while the reply is on its way",
		Edits: []Edit{{"internal/lease/lease.go", "if r.l.leftOf(r.heard, got) <= 0 {", "if r.l.leftOf(r.heard, sent) <= 0 {"}},
		Test:  Test{"internal/lease", "TestATouchWhoseAnswerComesWhenTheLastRanOutBeginsARun"},
	},
	{
		Name: "an unknown tick is treated as zero", Origin: "half of zero is used",
		Edits: []Edit{{"internal/lease/lease.go", "if l.tick > 0 {", "if l.tick >= 0 {"}},
		Test:  Test{"internal/lease", "TestATickThatIsNotKnownIsTakenForHalfTheTimeout"},
	},
	{
		Name: "one permit too many is granted", Origin: "an off-by-one error in the limit",
		Edits: []Edit{{"internal/queue/permits.go", "return limit, made.nearest.seen+k <= limit, err", "return limit, made.nearest.seen+k <= limit+1, err"}},
		Focus: "semaphore",
	},
	{
		Name: "the permits of one acquire are created one after the other", Origin: "Curator's semaphore, our first version",
		Edits: []Edit{
			{"internal/queue/batch.go", "\t\tops = append(ops, t.creationOf(x, data))\n\t}\n\tcreated :=", `		if x == &t.member {
			ops = append(ops, t.creationOf(x, data))
			continue
		}
		path, _ := t.engine.Requests.Create(t.engine.Requests.Life, t.Sess, t.nameless(x), data, zk.FlagEphemeralSequential, t.engine.Directories.ACL)
		x.Name = node.BaseName(path)
	}
	created :=`},
			{"internal/queue/batch.go", "\t\tmembers := t.members()\n", "\t\tmembers := []*member{&t.member}\n"},
		},
		Test: Test{"internal/evidence/promises", "TestPermitsAreAcquiredAndReleasedTogether"},
	},
	{
		Name: "only one of several permits is released", Origin: "each node needs an owner until it is gone (C7)",
		Edits: []Edit{{"internal/queue/batch.go", "left := slices.DeleteFunc(t.members(), func", "left := slices.DeleteFunc([]*member{&t.member}, func"}},
		Focus: "semaphore",
	},
	{
		Name: "the client continues to check released permits, except for the first", Origin: "our first version: of a batch that was deleted, only the first node was removed from the checked set",
		Edits: []Edit{{"internal/queue/delete.go", "defer t.unkeep()", "defer c.Heart.Unkeep(&t.OwnNode)"}},
		Test:  Test{"internal/evidence/promises", "TestReleasedPermitsAreNoLongerChecked"},
	},
	{
		Name: "the permits of a failed acquire remain", Origin: "CURATOR-315, CURATOR-335",
		Edits: []Edit{{"internal/queue/turn.go", "\t\tc.discard(ctx, err, t)\n\t\tif ctx.Err() != nil {", "\t\tif t == nil || !t.recipe.limited {\n\t\t\tc.discard(ctx, err, t)\n\t\t}\n\t\tif ctx.Err() != nil {"}},
		Focus: "semaphore",
	},
	{
		Name: "the queue node of a caller that has its permits remains", Origin: "CURATOR-462",
		Edits: []Edit{{"internal/queue/permits.go", "defer s.Engine.remove(queueNode.contender)", "defer s.Engine.Heart.Unkeep(&queueNode.OwnNode)"}},
		Focus: "semaphore",
	},
	{
		Name: "a new number of permits does not wake the waiters", Origin: "the watch on a directory's children does not fire when its data changes",
		Edits: []Edit{
			{"internal/queue/permits.go", "resized := dir", "_ = dir"},
			{"internal/queue/permits.go", `				&zk.CreateRequest{Path: resized, Acl: s.Engine.Directories.ACL},
				&zk.DeleteRequest{Path: resized, Version: -1})`, ")"},
		},
		Focus: "semaphore",
	},
	{
		Name: "a waiter uses the number of permits that it was created with", Origin: "Curator's semaphore trusts each caller",
		Edits: []Edit{{"internal/queue/permits.go", "session.Again(ctx, func() (int, error) { return s.limitThat(ctx, made.Sess, enough) })", "s.Total, enough(s.Total)"}},
		Focus: "semaphore",
	},
	{
		Name: "a create that shows other children is granted without a listing", Origin: "the only condition of that path is missing",
		Edits: []Edit{{"internal/queue/position.go", "counted.dir == nil || counted.dir.NumChildren != 1 {", "counted.dir == nil {"}},
	},
	{
		Name: "the last check of our own node never becomes too old", Origin: "our first version: a slow read came between the check and the grant",
		Edits: []Edit{{"internal/queue/proof.go", "return time.Since(t.looked) > aloneGrace", "return time.Since(t.looked) > aloneGrace && t.engine == nil"}},
		Test:  Test{"internal/evidence/promises", "TestPermitsThatVanishBeforeTheGrantAreNotGranted"},
	},
	{
		Name: "a number of permits is read from a server that lags", Origin: "our first version",
		Edits: []Edit{{"internal/queue/permits.go", "session.UpToDate(ctx, s.Engine.Requests, sess, func() (int, error) { return s.limit(ctx, sess) })", "s.limit(ctx, sess)"}},
		Test:  Test{"internal/evidence/promises", "TestALaggingServerCausesNoMismatchOfTheLimit"},
	},
	{
		Name: "permits are granted before the queue node is checked", Origin: "our first version: the check waited for a reconnect, and by then the permits were gone",
		Edits: []Edit{
			{"internal/queue/permits.go", `		err = made.grant(ctx, queueNode)
`, `		if err = made.grant(ctx, nil); err == nil && queueNode != nil {
			err = queueNode.isThere(ctx)
		}
`},
		},
		Test: Test{"internal/evidence/promises", "TestNodesThatWereCheckedFirstAreCheckedAgain"},
	},
	{
		Name: "one of several nodes may disappear while another one is checked", Origin: "our first version: permits were checked one after the other",
		Edits: []Edit{{"internal/queue/proof.go", "if t.allIntact() && (queueNode == nil || queueNode.isIntact()) {", "if t.Sess != nil {"}},
		Test:  Test{"internal/evidence/promises", "TestNodesThatWereCheckedFirstAreCheckedAgain"},
	},
	{
		Name: "LockAll acquires the locks in the caller's order", Origin: "Curator's multi lock",
		Edits: []Edit{{"lockall.go", "ordered = slices.SortedFunc(slices.Values(lockers), comparePaths)", "ordered = slices.Clone(lockers)"}},
		Focus: "mutex",
	},
	{
		Name: "LockAll waits for itself if one of its locks is already held by the caller", Origin: "our first version",
		Edits: []Edit{{"lockall.go", "c.holdsUnder(ctx, is.path, is.enters) {", "c.holdsUnder(ctx, is.path, is.enters) && c == nil {"}},
		Focus: "mutex",
	},
	{
		Name: "LockAll keeps the other locks if one fails", Origin: "Curator's multi lock continues",
		Edits: []Edit{{"lockall.go", "h.Unlock(ctx) // if", "_ = h // if"}},
		Focus: "mutex",
	},
	{
		Name: "the departure of a writer of Curator's is taken to leave nobody in its place", Origin: "our first version, in all branches but one",
		Edits: []Edit{{"internal/queue/nearest.go", "\tn.noticeReplaced(n.ahead[i])\n", ""}},
		Test:  Test{"internal/evidence/promises", "TestNoLockIsGrantedTogetherWithCuratorsDowngradedReader"},
	},
	{
		Name: "a contender whose predecessor has left is granted the lock although its own node is gone", Origin: "our first version: two goroutines received the two events",
		Edits: []Edit{
			{"internal/queue/selfwatch.go", "\tn := g.node\n", "\tn := g.node\n\tif g.view.Load() != nil && !n.IsGone() {\n\t\treturn nil\n\t}\n"},
			{"internal/queue/selfwatch.go", " && v.Latest().IsCurrent()\n", "\n"},
		},
		Test: Test{"internal/evidence/promises", "TestAWaiterWhoseOwnNodeWasDeletedFirstIsNotGranted"},
	},
	{
		Name: "a sync is taken for a quorum check", Origin: "our first version: a leader that was replaced answers a sync",
		Edits: []Edit{{"internal/session/request.go", "if err := r.askQuorum(ctx, s); err != nil {", `if err := r.Sync(ctx, s, "/"); err != nil {`}},
		Seeds: 480,
		Test:  Test{"internal/evidence/promises", "TestAListingIsConfirmedByTheQuorum"},
	},
	{
		Name: "a node that does not exist now is taken never to have been created", Origin: "our first version: the create was still on its way to the leader",
		Edits: []Edit{{"internal/queue/create.go", `t.findNames(genuine)
	if t.Name == "" {`, `t.findNames(genuine)
	if t.Name == "" && t.engine == nil {`}},
		Seeds: 480,
		Test:  Test{"internal/evidence/promises", "TestACreateThatRunsLateIsRemovedWhenItAppears"},
	},
	{
		Name: "a heartbeat waits for the reply to the previous one", Origin: "with slow replies, each proves too late what the last one has touched",
		Edits: []Edit{{"internal/lease/schedule.go", "\td, period := Due", "\tfor _, b := range r.beats {\n\t\tif b.steps < upstream {\n\t\t\treturn\n\t\t}\n\t}\n\td, period := Due"}},
		Test:  Test{"internal/evidence/promises", "TestAHoldFarFromItsServersIsCertainAllTheTime"},
	},
	{
		Name: "a guarded transaction that the end of its hold interrupts is reported as not executed", Origin: "our first version: the transaction had been committed",
		Edits: []Edit{{"hold.go", "\t\tif errors.Is(err, end) {\n\t\t\treturn fmt.Errorf(\"%w: %v\", ErrUncertain, err)", "\t\tif errors.Is(err, end) {\n\t\t\treturn err"}},
		Test:  Test{"internal/evidence/promises", "TestAGuardedTransactionReportsItsOutcome"},
	},
	{
		Name: "the marks that were written last are forgotten first", Origin: "marks were kept in the order of writing, and the newest slot was marked first",
		Edits: []Edit{{"slots/marks.go", "slices.SortFunc(p.Done, func(a, b mark) int { return strings.Compare(a.Slot, b.Slot) })", "_ = strings.Compare"}},
		Test:  Test{"internal/evidence/promises", "TestASlotThatIsForgottenIsNotDone"},
	},
	{
		Name: "Mark decides the outcome before the node of its hold is gone", Origin: "a transaction can remain in a server that the client has left",
		Edits: []Edit{{"slots/slots.go", "if errors.Is(err, zk.ErrNoNode) {\n\t\t\tfound, err", "if err == nil || errors.Is(err, zk.ErrNoNode) {\n\t\t\tfound, err"}},
		Test:  Test{"internal/evidence/promises", "TestAMarkWaitsUntilItsHoldsNodeIsGone"},
	},
	{
		Name: "a host whose clock is ahead marks slots of the future", Origin: "our first version: no host ran the job for fifty minutes",
		Edits: []Edit{{"slots/slots.go", "case err != nil || !s.isTimed() || s.name <= s.latest(n):", "case err != nil || s.cut.period >= 0:"}},
		Test:  Test{"internal/evidence/promises", "TestAClockThatIsAheadStopsNoOtherHost"},
	},
	{
		Name: "marks of future slots count among the last sixteen", Origin: "the leader's clock was ahead, too",
		Edits: []Edit{{"slots/marks.go", "return d.Slot > latest })", "return d.Slot > latest && false })"}},
		Test:  Test{"internal/evidence/promises", "TestMarksOfServersWhoseClockWasAheadStopNoHost"},
	},
	{
		Name: "a forgotten slot counts as done", Origin: "our first version: no caller learned that it was not done",
		Edits: []Edit{{"slots/marks.go", "return mark{}, ErrForgotten", "return mark{}, ErrDone"}},
		Test:  Test{"internal/evidence/promises", "TestASlotThatIsForgottenIsNotDone"},
	},
	{
		Name: "finished work is not marked if its context has ended", Origin: "our first version: the next host did the work again",
		Edits: []Edit{{"slots/slots.go", "context.WithTimeout(context.WithoutCancel(ctx), 2*", "context.WithTimeout(ctx, 2*"}},
		Test:  Test{"internal/evidence/promises", "TestFinishedWorkIsMarkedThoughItsContextHasEnded"},
	},
	{
		Name: "a day always has 24 hours", Origin: "our first version: a run was skipped when the clocks changed",
		Edits: []Edit{{"slots/marks.go", "if c.period <= time.Hour {", "if c.period > 0 {"}},
		Test:  Test{"internal/evidence/promises", "TestADayIsOneOfTheCalendar"},
	},
	{
		Name: "Evict removes holders before waiters", Origin: "our first version: each next waiter was granted the lock for an instant",
		Edits: []Edit{{"operate/evict.go", "return append(waiting, holding...)", "return append(holding, waiting...)"}},
		Test:  Test{"internal/evidence/promises", "TestEvictingAllGrantsNoneAndLeavesNone"},
	},
	{
		Name: "an evicted waiter queues again", Origin: "our first version",
		Edits: []Edit{{"internal/queue/grant.go", "slices.Contains(b.Evicted, x.guid) {", "slices.Contains(b.Evicted, x.guid) && t.engine == nil {"}},
		Test:  Test{"internal/evidence/promises", "TestAnEvictedWaiterGetsErrEvictedHoweverLongItWaits"},
	},
	{
		Name: "FailStop is called for a hold that Close ended", Origin: "the two reasons for the end of a hold are not distinguished",
		Edits: []Edit{{"do.go", "if !errors.Is(why, ErrLost) {", "if !errors.Is(why, ErrLost) && g.engine.FailStop == nil {"}},
		Test:  Test{"internal/evidence/promises", "TestASuddenLossGivesAFunctionTimeToReturn"},
	},
	{
		Name: "FailStop is called although the function returns at once", Origin: "our first version: an eviction ended the process",
		Edits: []Edit{{"do.go", "time.NewTimer(grace - time.Since(endedAt))", "time.NewTimer(-time.Since(endedAt))"}},
		Test:  Test{"internal/evidence/promises", "TestASuddenLossGivesAFunctionTimeToReturn"},
	},
	{
		Name: "a contender that does not know yet that it holds is evicted without a mark", Origin: "our first version: it queued again and did its work",
		Edits: []Edit{{"operate/evict.go", `if guid == "" || !c.Unnoted.MayNote`, `if contender.Holds || guid == "" || !c.Unnoted.MayNote`}},
		Test:  Test{"internal/evidence/promises", "TestAStoppedContenderThatIsEvictedGetsErrEvicted"},
	},
	{
		Name: "a process that was stopped does not look for an eviction mark when its session is over", Origin: "our first version: it queued again and did its work",
		Edits: []Edit{{"internal/queue/grant.go", "!errors.Is(err, outcome.ErrGone) && !errors.Is(err, outcome.ErrSessionOver) || t.guid", "!errors.Is(err, outcome.ErrGone) || t.guid"}},
		Test:  Test{"internal/evidence/promises", "TestAStoppedContenderThatIsEvictedGetsErrEvicted"},
	},
	{
		Name: "a node with children cannot be evicted", Origin: "our first version: any client that may create nodes could block a lock for ever",
		Edits: []Edit{{"operate/evict.go", `if errors.Is(err, zk.ErrNotEmpty) {
			_, err = session.Persist`, `if errors.Is(err, zk.ErrNotEmpty) && c.Engine == nil {
			_, err = session.Persist`}},
		Test: Test{"internal/evidence/promises", "TestANodeWithChildrenCanBeEvicted"},
	},
	{
		Name: "Evict fails if a permit was deleted together with an evicted one", Origin: "our first version, if the operator was slow",
		Edits: []Edit{{"operate/evict.go", "errors.Is(err, zklock.ErrNotHeld) && evicted[group]", "errors.Is(err, zklock.ErrNotHeld) && evicted[group] && c.Engine == nil"}},
		Test:  Test{"internal/evidence/promises", "TestASlowOperatorEvictsAllPermits"},
	},
	{
		Name: "a node that Inspect showed as persistent is evicted although a session owns it now", Origin: "our first version: session 0 matched every session",
		Edits: []Edit{{"operate/evict.go", "err == nil && n.Stat.EphemeralOwner != contender.Session {", "err == nil && (contender.Session == 0 || n.Stat.EphemeralOwner != contender.Session) {"}},
		Test:  Test{"internal/evidence/promises", "TestAPersistentNodeCanBeEvicted"},
	},
	{
		Name: "Do waits for a server after its function has returned", Origin: "our first version",
		Edits: []Edit{{"holding.go", "\t\t\treturn errUnanswered\n", "\t\t\tleft = time.Second\n"}},
		Test:  Test{"internal/evidence/promises", "TestDoReturnsThoughThereIsNoServer"},
	},
	{
		Name: "a try waits for another connection", Origin: "our first version: it searched for the node of the lost create",
		Edits: []Edit{{"internal/queue/turn.go", "if c.Requests.Link.AwaitLoss(inside, s, changed, again) {", "if c.Requests.Link.AwaitLoss(inside, s, changed, again) && s == nil {"}},
		Test:  Test{"internal/evidence/promises", "TestATryReturnsWhenItsConnectionIsLost"},
	},
	{
		Name: "container nodes are requested regardless of how often servers close the connection", Origin: "our first version",
		Edits: []Edit{{"internal/session/support.go", "p.hangUps, p.hungUp = p.hangUps+1, on", "p.hungUp = on"}},
		Test:  Test{"internal/evidence/promises", "TestServersThatCloseOnUnknownRequestsCanBeUsed"},
	},
	{
		Name: "a connection that has carried a session is replaced without a pause", Origin: "our first version: 500 connections in no time",
		Edits: []Edit{{"internal/conn/handshake.go", "if time.Since(l.since) >= steady {", "if time.Since(l.since) >= 0 {"}},
		Test:  Test{"internal/evidence/promises", "TestAConnectionThatEndsWithItsHandshakeIsNotRepeatedAtOnce"},
	},
	{
		Name: "the connection of a session that has ended remains open", Origin: "our first version: no new session was requested",
		Edits: []Edit{{"internal/conn/proxy.go", "return ErrSessionOver // some servers", "return nil // some servers"}},
		Test:  Test{"internal/evidence/promises", "TestAnExpiryOnAnOpenConnectionIsFollowedByAnotherSession"},
	},
	{
		Name: "a request for a new session contains the last zxid of the old one", Origin: "go-zookeeper: an ensemble that was restored from a backup refuses it for ever",
		Edits: []Edit{{"internal/conn/handshake.go", "return frames.NewSessionRequest(p)", "return p"}},
		Test:  Test{"internal/evidence/promises", "TestAClientReconnectsToAnEnsembleWithEarlierTransactions"},
	},
	{
		Name: "a refused release is not repeated", Origin: "our first version",
		Edits:   []Edit{{"internal/queue/delete.go", "\t\t\t\tt.keepDeleting(c.Requests.Life)\n", ""}},
		Trouble: "withheld", Faults: "^withheld$",
	},
	{
		Name: "a hold whose node cannot be read counts as held", Origin: "our first version: Confirm could not read the node and returned nil",
		Edits: []Edit{{"internal/queue/selfwatch.go", `		g.node.MarkGone(session.ErrUnreadable)
`, ""}, {"internal/session/heartbeat.go", `			t.MarkGone(ErrUnreadable)
`, "\t\t\tcontinue\n"}},
		Test: Test{"internal/evidence/promises", "TestAHoldWhoseNodeCanNoLongerBeReadIsLost"},
	},
	{
		Name: "a request to release reaches only contenders that already hold", Origin: "an operator asks a waiter, which holds a moment later",
		Edits: []Edit{{"internal/queue/selfwatch.go", "\tif g.node.Hear(seen) {", "\tif g.left.Load() && g.node.Hear(seen) {"}},
	},
	{
		Name: "any write into a node counts as a request to release", Origin: "some clients notice Curator's Revoker by any write",
		Edits: []Edit{{"internal/session/ownnode.go", "\tif !node.IsRevocation(d.Data) {", "\tif len(d.Data) == 0 {"}},
	},
	{
		Name: "a request to release is lost with the queue node of a waiter for permits", Origin: "our first version",
		Edits: []Edit{{"internal/queue/delete.go", `		t.Hear(n)
		t.removal.hasRead(n.Stat.Version)`, `		t.removal.hasRead(n.Stat.Version)`}},
		Test: Test{"internal/evidence/promises", "TestARevocationIsNotLostBetweenQueueNodeAndPermits"},
	},
	{
		Name: "a waiter for permits ignores a request to release", Origin: "our first version",
		Edits: []Edit{{"internal/queue/permits.go", `			x.Revocation = queueNode.Revocation //`, `			_, _ = x, queueNode.Revocation //`}},
		Test:  Test{"internal/evidence/promises", "TestARevokedWaiterForPermitsIsNotifiedWhenItHolds"},
	},
	{
		Name: "a holder that writes its node's data overwrites a request to release", Origin: "our first version",
		Edits: []Edit{{"hold.go", "t.Path(), t.Shown(value), n.Stat.Version)", "t.Path(), value, n.Stat.Version)"}},
		Test:  Test{"internal/evidence/promises", "TestWritingTheOwnDataKeepsARevocation"},
	},
	{
		Name: "Proclaim calls run at the same time", Origin: "our first version: the node had one value, the client the other",
		Edits: []Edit{{"hold.go", "\tcase turn <- struct{}{}:\n\t\tdefer func() { <-turn }()\n", "\tcase turn <- struct{}{}:\n\t\t<-turn\n"}},
		Test:  Test{"internal/evidence/promises", "TestARefusedProclaimLeavesTheValueOfTheNext"},
	},
	{
		Name: "a leader's function is called after its leadership has ended", Origin: "our first version",
		Edits: []Edit{{"do.go", "\tif err := h.unlessOver(\"do\"); err != nil {\n\t\treturn term{", "\tif err := ctx.Err(); err != nil {\n\t\treturn term{"}},
		Test:  Test{"internal/evidence/promises", "TestRunSkipsALeadershipThatHasEnded"},
	},
	{
		Name: "terms of leadership follow one another without a pause", Origin: "our first version: 10,130 terms in a second",
		Edits: []Edit{{"election.go", `		p.Next(pausing) // if`, `		_ = pausing // if`}},
		Test:  Test{"internal/evidence/promises", "TestRunPausesAfterTermsThatEndAtOnce"},
	},
	{
		Name: "Inspect does not show permits beyond the limit as held", Origin: "our first version, after a Resize",
		Edits: []Edit{{"operate/inspect.go", "\t\t\tp.Holds = true\n", "\t\t\tp.Holds = within(i)\n"}},
		Test:  Test{"internal/evidence/promises", "TestInspectShowsAllHoldersAfterAResize"},
	},
	{
		Name: "Inspect shows a waiter for permits twice", Origin: "our first version",
		Edits: []Edit{{"operate/inspect.go", "\t\t\tcontinue // its place in the queue is shown instead\n", "\t\t\tp.Holds = false // its place in the queue is shown instead\n"}},
		Test:  Test{"internal/evidence/promises", "TestInspectShowsAWaiterForPermitsOnce"},
	},
	{
		Name: "Inspect reads the contenders one after the other", Origin: "our first version: 10,002 round trips",
		Edits: []Edit{{"operate/inspect.go", "const readersAtOnce = 16", "const readersAtOnce = 1"}},
		Test:  Test{"internal/evidence/promises", "TestInspectOfAThousandIsNotAThousandRoundTrips"},
	},
	{
		Name: "a failed attempt causes no event", Origin: "our first version",
		Edits: []Edit{{"recipe.go", "\t\tc.observeFailure(ctx, w, time.Since(start), err)\n", ""}},
		Test:  Test{"internal/evidence/promises", "TestAFailedAttemptIsObserved"},
	},
	{
		Name: "no proof of the session is requested while a node is being deleted", Origin: "our first version: a release that lost one reply was not waited for",
		Edits: []Edit{{"internal/queue/delete.go", "\t\tc.Heart.Leave(&x.OwnNode)\n", "\t\tc.Heart.Unkeep(&x.OwnNode)\n"}},
		Test:  Test{"internal/evidence/promises", "TestNoFaultOfAHolderShortensTheLockDelay"},
	},
	{
		Name: "a client that holds nothing does not leave a silent server", Origin: "it waited as long as the client library does",
		Edits: []Edit{{"internal/session/heartbeat.go", "\treturn b.h.requests.leaveIfSilent", "\tif !b.h.kept.isAny(b.s) {\n\t\treturn never\n\t}\n\treturn b.h.requests.leaveIfSilent"}},
		Test:  Test{"internal/evidence/promises", "TestALockRequestedFromASilentServerIsGrantedByAnother"},
	},
	{
		Name: "the event of a grant lacks the time it waited for proof of the session", Origin: "the lease is checked in two places",
		Edits: []Edit{{"internal/queue/proof.go", "\tt.proving += time.Since(began)\n", "\t_ = began\n"}},
		Test:  Test{"internal/evidence/promises", "TestAGrantReportsHowLongItWaitedForTheProof"},
	},
	{
		Name: "the event of a try that succeeds has no duration", Origin: "our first version",
		Edits: []Edit{{"recipe.go", "ev.Elapsed, ev.Proving = took, proving", "ev.Proving = proving"}},
		Test:  Test{"internal/evidence/promises", "TestATryThatSucceedsReportsHowLongItTook"},
	},
	{
		Name: "a hold that Close ends causes no event", Origin: "our first version",
		Edits: []Edit{{"holding.go", "case !errors.Is(why, ErrReleased):\n\t\tg.report(observe.Ended, why)\n", "case true:\n"}},
		Test:  Test{"internal/evidence/promises", "TestEveryHoldEndsWithOneEvent"},
	},
	{
		Name: "a silent server causes no HeartbeatMissed event", Origin: "our first version: no early warning came when the network was cut",
		Edits: []Edit{{"internal/session/silence.go", "\treport(errSilent)\n", ""}},
		Test:  Test{"internal/evidence/promises", "TestAMissedHeartbeatIsObservedBeforeTheLoss"},
	},
	{
		Name: "New waits for the hooks of another connection", Origin: "our first version",
		Edits: []Edit{{"zklock.go", "\t\tif apart == 4 {", "\t\tif apart < 0 {"}},
		Test:  Test{"internal/evidence/promises", "TestHooksOfAnotherConnectionAreRefused"},
	},
	{
		Name: "the tick applies only from the next session on", Origin: "our first version, with Attach",
		Edits: []Edit{{"internal/conn/link.go", "\t\tl.session.Lease.SetTick(tick)\n", "\t\t_ = tick\n"}},
		Test:  Test{"internal/evidence/promises", "TestATickTimeAppliesToAnExistingConnection"},
	},
	{
		Name: "a refusal by one server counts as proof by the quorum", Origin: "our first version",
		Edits: []Edit{{"internal/conn/evidence.go", "case frames.CodeOK, frames.CodeNoNode,", "case frames.CodeOK, -102, frames.CodeNoNode,"}},
		Test:  Test{"internal/evidence/promises", "TestARefusalByOneServerIsNotProofOfAQuorum"},
	},
	{
		Name: "only the version of the directory guards a new number of permits", Origin: "our first version: a directory that was created again has the same version",
		Edits: []Edit{{"internal/queue/permits.go", "if err := keeps.enter(ctx, sess); err != nil {", "if err := ctx.Err(); err != nil {"},
			{"internal/queue/permits.go", "s.setLimit(n, s.number()), &zk.DeleteRequest{Path: keeps.Path(), Version: -1})", "s.setLimit(n, s.number()))"}},
		Test: Test{"internal/evidence/promises", "TestNoNumberOfPermitsIsStoredInADirectoryThatWasCreatedAgain"},
	},
	{
		Name: "a waiter that queues again is counted twice", Origin: "our first version: waiters got ErrLimit when their nodes were deleted",
		Edits: []Edit{{"internal/queue/turn.go", " && !errors.Is(err, outcome.ErrGone) {\n\t\treturn\n", " {\n\t\treturn\n"}},
		Test:  Test{"internal/evidence/promises", "TestWaitersThatQueueAgainAreCountedOnce"},
	},
	{
		Name: "a create that may still be executed is not counted", Origin: "our first version: more than two megabytes of nodes ended with one session",
		Edits: []Edit{{"internal/queue/create.go", "Owns: t.countedFor(x), ", ""}, {"internal/queue/create.go", "\t\tt.counted = 0 // from now on it is counted there\n", ""}},
		Test:  Test{"internal/evidence/promises", "TestACreateThatRunsLateCountsTowardTheLimit"},
	},
	{
		Name: "a create that can no longer be executed counts for ever", Origin: "hypothetical: a network that loses requests would use up the limit",
		Edits: []Edit{{"internal/session/pending.go", "g.Sess.Own(-g.Owns, 0)", "_ = g"}},
		Test:  Test{"internal/evidence/promises", "TestACreateThatCannotRunAnyMoreIsNotCounted"},
	},
	{
		Name: "a throttled request is not sent again", Origin: "our first version: with half of the requests throttled, few heartbeats were complete",
		Edits: []Edit{{"internal/session/request.go", "const maxAsks = 6", "const maxAsks = 1"}},
		Test:  Test{"internal/evidence/promises", "TestAServerThatThrottlesCostsNoHold"},
	},
	{
		Name: "a try waits for ever for a server that throttles it", Origin: "our first version: for as long as the session lived",
		Edits: []Edit{{"internal/queue/turn.go", "func() { cut(errUnserved) }", "func() {}"}, {"internal/queue/turn.go", "	errUnserved = fmt", "	_ = fmt"}},
		Test:  Test{"internal/evidence/promises", "TestATryThatIsAlwaysThrottledEnds"},
	},
	{
		Name: "a lock and a semaphore can share a path", Origin: "our first version: both were held",
		Edits: []Edit{{"internal/queue/conflicts.go", "if !queue.Permits {", `if !queue.Permits || dir != "" {`}},
		Test:  Test{"internal/evidence/promises", "TestALockAndASemaphoreAtOnePathAreRefused"},
	},
	{
		Name: "a hand-off note that was refused is tried at every release", Origin: "our first version: each time cost two round trips",
		Edits: []Edit{{"internal/queue/dircache.go", "!m.refused.has(dir, math.MaxInt64)", "(!m.refused.has(dir, math.MaxInt64) || dir != \"\")"}},
		Test:  Test{"internal/evidence/promises", "TestWithoutWritePermissionANoteIsTriedOnce"},
	},
	{
		Name: "an observer that panics leaves a hold that nobody can release", Origin: "our first version: until the client was closed",
		Edits: []Edit{{"recipe.go", "if !returned {", "if !returned && h == nil {"}},
		Test:  Test{"internal/evidence/promises", "TestAnObserverThatPanicsLeavesNoHold"},
	},
	{
		Name: "a lock's path may be that of another lock's record", Origin: "our first version: each overwrote the other",
		Edits: []Edit{{"internal/node/names.go", " || strings.HasSuffix(name, RecordSuffix)", ""}},
		Test:  Test{"./internal/node", "TestPathsAreCheckedByZooKeepersRules"},
	},
	{
		Name: "heartbeats check the same nodes of many", Origin: "our first version: the nodes were drawn at random each time",
		Edits: []Edit{{"internal/session/checkqueue.go", "	k.last++\n	for", "	for"}},
		Test:  Test{"internal/evidence/promises", "TestHeartbeatsOfManyHoldsAreSmallAndCheckEachInTurn"},
	},
	{
		Name: "short holds prevent the check of a long one", Origin: "our second version: nodes that had not been found were checked first",
		Edits: []Edit{{"internal/session/checkqueue.go", "	k.last++\n	k.kept[t], t.Kept = k.last, true", "	k.last++\n	k.kept[t], t.Kept = 1, true"}},
		Test:  Test{"internal/evidence/promises", "TestShortHoldsDoNotTakeTheTurnOfALongOne"},
	},
	{
		Name: "a heartbeat checks a thousand nodes", Origin: "our first version: 70 kB in the log of each server",
		Edits: []Edit{{"internal/session/checkqueue.go", "const maxChecks = 10_000", "const maxChecks = 1_000_000"}},
		Test:  Test{"internal/evidence/promises", "TestHeartbeatsOfManyHoldsAreSmallAndCheckEachInTurn"},
	},
	{
		Name: "one request asks about all nodes at once", Origin: "our first version: larger than the servers' limit on requests",
		Edits: []Edit{{"internal/session/checkqueue.go", "size > most && i > 0 {", "size < 0 {"}},
		Test:  Test{"internal/evidence/promises", "TestRequestsAboutManyHoldsStayWithinALimit"},
	},
	{
		Name: "the interval of heartbeats does not consider how long replies take", Origin: "our first version: with a timeout of two ticks, 0.335 of it remained",
		Edits: []Edit{{"internal/lease/schedule.go", "-4*l.replies.distance(now, l.timeout)", ""}},
		Test:  Test{"internal/lease", "TestHeartbeatsKeepFourTenthsCertain"},
	},
	{
		Name: "a heartbeat starts with two reads although a sync is due", Origin: "our first version: 91 requests a minute instead of 68",
		Edits: []Edit{{"internal/lease/schedule.go", "if next.Step == Sync &&", "if next.Step == Sync && r == nil &&"}},
		Test:  Test{"internal/evidence/promises", "TestOnlyHoldersAndTheNextInLineAskTheQuorum"},
	},
	{
		Name: "heartbeats that assumed another tick remain valid", Origin: "found by reading the code: SetTick kept them",
		Edits: []Edit{{"internal/lease/lease.go", "\t\tl.run.beats = nil\n", ""}},
		Test:  Test{"internal/lease", "TestHeartbeatsThatAssumedAnotherTickProveNothing"},
	},
	{
		Name: "a grant does not consider how long the transaction under way takes", Origin: "our first version: 0.397 remained with round trips of 300 ms",
		Edits: []Edit{{"internal/lease/schedule.go", "left-wait >= l.timeout*2/5", "left-0*wait >= l.timeout*2/5"}},
		Test:  Test{"internal/lease", "TestALeaseIsAmpleWithTwoFifthsLeft"},
	},
	{
		Name: "a transaction proves the touch that it was sent for, even if it failed", Origin: "the sender is trusted instead of the reply",
		Edits: []Edit{{"internal/lease/schedule.go", "\tk.pending--\n", "\tk.pending--\n\tif d.Step == Quorum {\n\t\tl.prove(d.touch)\n\t}\n"}},
		Test:  Test{"internal/lease", "TestALeaseKnowsNoMoreThanAProverThatFollowsEveryTouch"},
	},
	{
		Name: "ages are taken from the monotonic clock alone", Origin: "it stands still while a machine sleeps",
		Edits: []Edit{{"internal/lease/clock.go", "max(a.Mono.Sub(b.Mono), a.Wall.Sub(b.Wall))", "a.Mono.Sub(b.Mono)"}},
		Test:  Test{"internal/evidence/promises", "TestEnteringChecksTheLease"},
	},
	{
		Name: "a throttled sync counts as answered by the leader", Origin: "one server throttles by itself",
		Edits: []Edit{{"internal/lease/lease.go", " || b.steps >= touched && of != OfLeader", ""}},
		Test:  Test{"internal/lease", "TestARequestThatFailedIsDueAgainAPauseLater"},
	},
	{
		Name: "heartbeats are so rare that less than four tenths of the timeout remain", Origin: "our first version: 12 % remained after a wait",
		Edits: []Edit{{"internal/lease/schedule.go", "l.timeout*548/1000", "l.timeout*748/1000"}},
		Test:  Test{"internal/evidence/promises", "TestAWarmHoldHasFourTenthsOfTheTimeoutLeftAtEveryMoment"},
	},
	{
		Name: "a session that expired early is not reported", Origin: "two clients held a lock, and nobody learned of it",
		Edits: []Edit{{"internal/session/heartbeat.go", "left := b.s.EndedEarly(); left > 0", "left := b.s.EndedEarly(); left < 0"}},
		Test:  Test{"internal/evidence/promises", "TestALeaderWithALongTickIsReported"},
	},
	{
		Name: "the end of a session is dated when a server reports it", Origin: "after a long reconnect, the lease has already expired",
		Edits: []Edit{{"internal/conn/session.go", "s.deleted.Store(&deletion{s.Lease.Remaining(), time.Now()})", "s.deleted.Store(&deletion{0, time.Now()})"}},
		Test:  Test{"internal/evidence/promises", "TestASessionThatExpiredEarlyIsReportedAfterALongReconnect"},
	},
	{
		Name: "every deleted node is taken for that of an expired session", Origin: "a deletion by an operator before an outage is reported as a violated assumption",
		Edits: []Edit{{"internal/conn/proxy.go", "\ts.replied()\n", ""}},
		Test:  Test{"internal/evidence/promises", "TestANodeDeletedByAnOperatorIsNotReportedAsAnEarlyExpiry"},
	},
	{
		Name: "a node that was deleted before the server became silent is taken for that of an expired session", Origin: "our first version: seed 2, once in 80 runs",
		Edits: []Edit{{"internal/conn/handshake.go", "\t\ts.disconnected()\n", "\t\t_ = s\n"}},
		Test:  Test{"internal/evidence/promises", "TestANodeDeletedBeforeTheServerFellSilentIsNotReportedAsAnEarlyExpiry"},
	},
	{
		Name: "a lost lock looks like a cancellation by the caller", Origin: "our first version: a program treats it as a clean stop",
		Edits: []Edit{{"do.go", "err != nil && err == inside.Err()", "err == ErrLost"}},
		Test:  Test{"internal/evidence/promises", "TestAFunctionStoppedByALossReturnsErrLost"},
	},
	{
		Name: "a server in memory has the address of a real one", Origin: "our first version: a test without a dialer uses a developer's server, and passes",
		Edits: []Edit{{"zktest/network.go", "233.252.0.%d:2181", "127.0.0.%d:2181"}},
		Test:  Test{"internal/evidence/promises", "TestAServerInMemoryIsNotDialedWithASocket"},
	},
	{
		Name: "the tick is limited to a quarter of the timeout", Origin: "our first version",
		Edits: []Edit{{"internal/lease/lease.go", "func (l *Lease) SetTick(tick time.Duration) {\n", "func (l *Lease) SetTick(tick time.Duration) {\n\ttick = min(tick, l.timeout/4)\n"}},
		Test:  Test{"internal/evidence/promises", "TestATickTimeAppliesToAnExistingConnection"},
	},
	{
		Name: "two goroutines of a process hold a cohort's lock at once", Origin: "the first condition of a shared place is missing",
		Edits: []Edit{{"sharedplace.go", "return !p.isHeld() && p.holding.ctx", "return p.holding.ctx"}, {"localqueue.go", "\tif len(q.waiting) > 0 && p.admits(", "\tfor len(q.waiting) > 0 && p.admits("}},
		Focus: "cohort",
	},
	{
		Name: "goroutines of a cohort hold one after the other with the same node", Origin: "their tokens are equal, and a guarded transaction can commit during a later hold",
		Edits: []Edit{{"localqueue.go", "\t\tq.wakeRun()\n", "\t\tif len(q.waiting) > 0 && !p.isHeld() {\n\t\t\tq.admitFirst(p, q.engine.Requests.Link.Now())\n\t\t\treturn\n\t\t}\n\t\tq.wakeRun()\n"}},
		Focus: "cohort",
	},
	{
		Name: "the loss of a shared place does not end the goroutine's hold", Origin: "the hold's context does not derive from the place's",
		Edits: []Edit{{"hold.go", "life, end := context.WithCancelCause(g.ctx)", "life, end := context.WithCancelCause(context.WithoutCancel(g.ctx))"}},
		Focus: "cohort",
	},
	{
		Name: "an observer that panics at a release keeps the shared place occupied", Origin: "our first version: a caller that recovers, as net/http does, kept the lock",
		Edits: []Edit{{"localqueue.go", "\tdefer func() {\n\t\tp.free()\n\t\tq.changed(p)\n\t}()\n\tp.report(observe.Released, h.since, nil)\n", "\tp.report(observe.Released, h.since, nil)\n\tp.free()\n\tq.changed(p)\n"}},
		Test:  Test{"internal/evidence/promises", "TestAnObserverThatPanicsAtAReleaseLeavesThePlaceOfACohortFree"},
	},
	{
		Name: "the next node of a cohort is created before the old one is deleted", Origin: "a hand-off in two requests, of which one can be lost",
		Edits: []Edit{{"internal/queue/alone.go", "ops = append(ops, &zk.DeleteRequest{Path: old.Path(), Version: -1})", "ops = append(ops, old.Exists())"}},
		Focus: "cohort",
	},
	{
		Name: "a failed attempt to replace a node leaves the old node", Origin: "the transaction would have deleted it",
		Edits: []Edit{{"internal/queue/turn.go", "outcomes = append(outcomes, c.remove(a.replaces))", "c.Heart.Unkeep(&a.replaces.OwnNode)"}},
		Test:  Test{"internal/evidence/promises", "TestACancelledHandOffLeavesNothing"},
	},
	{
		Name: "an old node that cannot be replaced is not deleted", Origin: "the transaction was refused, but the node still exists",
		Edits: []Edit{{"internal/queue/position.go", "\t\t\tt.engine.remove(a.takeReplaced())\n", "\t\t\ta.takeReplaced()\n"}},
		Test:  Test{"internal/evidence/promises", "TestAHandOffThatIsRefusedLeavesNoOldNode"},
	},
	{
		Name: "a node that somebody has deleted is replaced again and again", Origin: "the transaction is refused each time",
		Edits: []Edit{{"internal/queue/position.go", "\t\t\tt.engine.remove(a.takeReplaced())\n", "\t\t\tt.engine.remove(a.replaces)\n"}},
		Test:  Test{"internal/evidence/promises", "TestAKeptNodeThatAThirdPartyDeletedIsNotReplaced"},
	},
	{
		Name: "a contender that queued before the watch was set is not noticed", Origin: "the reply that comes with the watch is not read",
		Edits: []Edit{{"sharedplace.go", "p.wanted || wanted || v == nil", "p.wanted || v == nil"}},
		Test:  Test{"internal/evidence/promises", "TestAnotherContenderThatQueuedDuringAHoldEndsAKeptPlace"},
	},
	{
		Name: "a shared place waits for its watch without a limit", Origin: "our first version, with a withheld event",
		Edits: []Edit{{"sharedplace.go", "Lease.Term()/8 - now", "Lease.Term()*100 - now"}},
		Test:  Test{"internal/evidence/promises", "TestAPlaceWhoseWatchIsWithheldIsReleased"},
	},
	{
		Name: "all goroutines that wait when the place is granted may hold in it", Origin: "some may have asked after other processes' contenders",
		Edits: []Edit{{"localqueue.go", "q.current, p.lastAhead, p.runs = p, q.lastAhead, q.runs", "q.current, p.lastAhead, p.runs = p, q.lastNumber, q.runs"}},
		Test:  Test{"internal/evidence/promises", "TestAGoroutineDoesNotHoldInAPlaceRequestedBeforeItsCall"},
	},
	{
		Name: "a busy process never releases the lock for a moment", Origin: "contenders that only try leave no node in the queue",
		Edits: []Edit{{"sharedplace.go", "return now.Mono.Sub(r.since) >= r.length }", "return now.Mono.Sub(r.since) >= 1000*r.length }"}},
		Test:  Test{"internal/evidence/promises", "TestATryInALoopSucceedsNextToABusyCohort"},
	},
	{
		Name: "a busy process replaces its node instead of releasing it briefly", Origin: "the next node exists before any other contender can look",
		Edits: []Edit{{"internal/cohort/nextstep.go", "case s.Waiting > 0 && s.RunOver:", "case s.Waiting > 1000 && s.RunOver:"}},
		Test:  Test{"internal/evidence/promises", "TestATryInALoopSucceedsNextToABusyCohort"},
	},
	{
		Name: "a shared place that was revoked is kept", Origin: "the request to release concerns the whole place",
		Edits: []Edit{{"sharedplace.go", "\tp.wanted = p.wanted || p.holding.revocation.Requested.IsSet()\n", ""}},
		Test:  Test{"internal/evidence/promises", "TestARevocationEndsASharedPlace"},
	},
	{
		Name: "a shared place that cannot be watched is kept", Origin: "an error is taken for the absence of events",
		Edits: []Edit{{"sharedplace.go", "p.wanted || wanted || v == nil", "p.wanted || wanted"}},
		Test:  Test{"internal/evidence/promises", "TestAPlaceThatCannotBeWatchedIsNotShared"},
	},
	{
		Name: "a goroutine that locks a cohort under its own hold waits for itself", Origin: "the check for such a hold leaves out cohorts",
		Edits: []Edit{{"cohort.go", "case c.holdsUnder(ctx, k.path, \"\"):", "case c.holdsUnder(ctx, k.path, cohortRecipe.Name):"}},
		Test:  Test{"internal/evidence/promises", "TestACohortUnderItsOwnHoldIsADeadlock"},
	},
	{
		Name: "an ended hold of a cohort counts as the caller's own while its place is kept", Origin: "the place exists longer than the hold",
		Edits: []Edit{{"hold.go", "if h.local != nil && h.Context().Err() != nil {", "if h.local != nil && h.Context() == nil {"}},
		Test:  Test{"internal/evidence/promises", "TestACohortUnderItsOwnHoldIsADeadlock"},
	},
	{
		Name: "a watch that has not been sent yet counts as lapsed", Origin: "our first version: a reconnect between two statements ended the program",
		Edits: []Edit{{"internal/session/view.go", "if !w.isSet() || !w.view.on", "if w.fired != 0 || !w.view.on"}},
		Test:  Test{"internal/session", "TestAWatchThatIsNotRequestedYetDoesNotLapse"},
	},
	{
		Name: "a watch that nobody waits for does not call its owner", Origin: "a hold has no goroutine while nothing happens",
		Edits: []Edit{{"internal/session/watch.go", "\t\towner.Fired(saw)\n\t\tw.end()", "\t\tw.end()"}},
		Test:  Test{"internal/evidence/promises", "TestClientsOfOneConnectionAllLearnOfALoss"},
	},
	{
		Name: "an event that arrives before the reply to its watch is ignored", Origin: "go-zookeeper registers a watch only when the reply arrives",
		Edits: []Edit{{"internal/session/view.go", "case w.view.State == Requested:\n\t\tw.fired = saw\n", ""}},
		Test:  Test{"internal/session", "TestAChangeBeforeTheReplyIsNotLost"},
	},
	{
		Name: "a watch is not set again after a reconnect", Origin: "it was set again only for waiters",
		Edits: []Edit{{"internal/session/watch.go", "t.rearming.renew(s, t.of(s))", "t.rearming.renew(s, t.of(nil))"}},
		Test:  Test{"internal/evidence/promises", "TestAWaiterWakesThoughItsWatchWasLostInAReconnect"},
	},
	{
		Name: "a watch is set again relative to the last zxid of the session", Origin: "a reply on the new connection may already have shown a later one",
		Edits: []Edit{{"internal/session/view.go", "return w.view.on.Seen(), true", "return w.key.sess.Seen(), true"}},
		Test:  Test{"internal/session", "TestAWatchIsSetAgainUntilAConnectionLastsLongEnough"},
	},
	{
		Name: "a watch whose connection is lost while it is being set again stays unset", Origin: "the next reconnect takes it for one that is being set",
		Edits: []Edit{{"internal/session/view.go", " || errors.Is(err, zk.ErrConnectionClosed)", ""}, {"internal/session/view.go", "\tcase err != nil:\n\t\treturn false\n", "\tcase err != nil && !errors.Is(err, zk.ErrConnectionClosed):\n\t\treturn false\n"}},
		Test:  Test{"internal/session", "TestAWatchIsSetAgainUntilAConnectionLastsLongEnough"},
	},
	{
		Name: "a check of watches asks only for changes since the check began", Origin: "a withheld change is older",
		Edits: []Edit{{"internal/session/rearm.go", "r.setWatches(s, since, chunk); err == nil {", "r.setWatches(s, max(since, now), chunk); err == nil {"}},
		Test:  Test{"internal/evidence/promises", "TestAWithheldEventDelaysAnObserverByASessionTimeout"},
	},
	{
		Name: "a directory whose counter has ended is watched by SetWatches", Origin: "its Pzxid does not change at creates",
		Edits: []Edit{{"internal/session/view.go", "return !w.key.children || w.latest().Stat.Cversion >= 0", "return true"}},
		Test:  Test{"internal/session", "TestTheChildrenOfADirectoryWhoseCounterHasEndedAreReadOneByOne"},
	},
	{
		Name: "only the last client of a connection receives events", Origin: "our first version",
		Edits: []Edit{{"internal/conn/carried.go", "return append(all, added) })", "return append(all[:0], added) })"}},
		Test:  Test{"internal/evidence/promises", "TestClientsOfOneConnectionAllLearnOfALoss"},
	},
	{
		Name: "a goroutine that gives up leaves the process in the queue", Origin: "the place was only for this goroutine",
		Edits: []Edit{{"localqueue.go", "if len(q.waiting) == 0 && q.cancel != nil {", "if len(q.waiting) == 0 && q.over.Load() {"}},
		Test:  Test{"internal/evidence/promises", "TestCancelledWaitsOfACohortLeaveNothing"},
	},
	{
		Name: "the lock-delay is not waited for", Origin: "clients without a lock-delay do not wait",
		Edits:   []Edit{{"internal/queue/delay.go", "case left <= 0:", "case left <= r.Delay:"}},
		Trouble: "delays",
	},
	{
		Name: "a try is refused after the lock-delay has passed", Origin: "hypothetical: the checker had no rule against it",
		Edits:   []Edit{{"internal/queue/delay.go", "case left <= 0:", "case left <= 0 && waits:"}},
		Trouble: "delays",
	},
	{
		Name: "a lost lock is recorded as released", Origin: "its own client deletes its node in both cases",
		Edits:   []Edit{{"recipe.go", "granted.Release(errors.Is(why, ErrLost), done)", "granted.Release(errors.Is(why, ErrInvalid), done)"}},
		Trouble: "delays",
	},
	{
		Name: "several locks are released at once if one of them is lost", Origin: "our first version: the function may still work under the others",
		Edits: []Edit{{"holding.go", "if g.end(why) && len(g.parts) == 0 {", "if g.end(why) {"}},
		Test:  Test{"internal/evidence/promises", "TestALostPartEndsTheWholeAndUnlockReleasesTheRest"},
	},
	{
		Name: "a function's context is cancelled in a goroutine of its own", Origin: "our first version: context.AfterFunc, which was late 284 times of 300",
		Edits: []Edit{{"do.go", "stop := h.OnEnd(cut)", "stop := context.AfterFunc(h.Context(), func() { cut(context.Cause(h.Context())) })"}},
		Test:  Test{"internal/evidence/promises", "TestEveryContextOfAHoldEndsBeforeTheNextGoroutineHolds"},
	},
	{
		Name: "unlocking a level ends only contexts that package context derived from it", Origin: "Unlock of a level, or of a cohort's hold, does not end a holding",
		Edits: []Edit{{"holding.go", "\tdefer g.mu.Unlock()\n\tg.callHooks()\n", "\tdefer g.mu.Unlock()\n"}},
		Test:  Test{"internal/evidence/promises", "TestAnUnlockEndsTheContextOfAFunctionAtOnce"},
	},
	{
		Name: "LockAll acquires a lock again that an operator has taken away", Origin: "our first version: it undid an eviction",
		Edits: []Edit{{"lockall.go", "case errors.Is(fate, outcome.ErrSessionOver):", "case errors.Is(fate, outcome.ErrSessionOver), fate != nil:"}},
		Test:  Test{"internal/evidence/promises", "TestLockAllEndsWhenALockIsTakenAwayWhileItWaits"},
	},
	{
		Name: "LockAll returns holds of a session whose end it did not notice", Origin: "a missing node may also have been deleted by the end of its session",
		Edits: []Edit{{"internal/queue/grant.go", "if errors.Is(err, outcome.ErrSessionOver) {\n\t\treturn err", "if errors.Is(err, outcome.ErrLocked) {\n\t\treturn err"}},
		Test:  Test{"internal/evidence/promises", "TestLockAllStartsAgainWhenItsSessionEnds"},
	},
	{
		Name: "LockAll calls a Locker that returns the same ended hold again and again", Origin: "our first version: 5,017 requests in 10 s",
		Edits: []Edit{{"lockall.go", "case h.done.Load():", "case h == nil:"}},
		Test:  Test{"internal/evidence/promises", "TestALockerThatReturnsAHoldThatHasEndedIsRefused"},
	},
	{
		Name: "an observer is called for a loss while other holds of the session are still valid", Origin: "planted by hand: an observer that took 30 s left them valid for 39.5 s",
		Edits: []Edit{{"holding.go", "\t\tif !g.end(why) {\n\t\t\tdelete(lost, g)\n\t\t}\n\t}\n\tfor g := range lost {\n\t\tg.settleLater()\n", "\t\tif g.end(why) {\n\t\t\tg.settle()\n\t\t}\n"}},
		Test:  Test{"internal/evidence/promises", "TestAllHoldsOfASessionEndBeforeAnObserverIsCalledForTheFirst"},
	},
	{
		Name: "the first of several holds is settled before the last one has ended", Origin: "planted by hand: one loop instead of two",
		Edits: []Edit{{"holding.go", "\t\tif !g.end(why) {\n\t\t\tdelete(lost, g)\n\t\t}\n\t}\n\tfor g := range lost {\n\t\tg.settleLater()\n", "\t\tif g.end(why) {\n\t\t\tg.settleLater()\n\t\t}\n"}},
		Test:  Test{"internal/evidence/promises", "TestAllHoldsOfASessionEndBeforeAnObserverIsCalledForTheFirst"},
	},
	{
		Name: "a value that was refused counts as the holder's", Origin: "planted by hand: it is written when Curator's Revoker overwrites the data",
		Edits: []Edit{{"hold.go", "\t\t\tt.SetOwnData(before)\n", ""}, {"hold.go", "before := t.SetOwnData(value)", "t.SetOwnData(value)"}},
		Test:  Test{"internal/evidence/promises", "TestARefusedProclaimIsNotTheValueThatIsRestored"},
	},
	{
		Name: "a holder does not write into the record that it holds", Origin: "a grant would need one request less",
		Edits:   []Edit{{"internal/queue/delay.go", `case lost == "" && (shared || r.Fate == node.IsHeld):`, "case lost == \"\":"}},
		Trouble: "delays",
	},
	{
		Name: "a contender uses the record that it read when it queued", Origin: "a record that is deleted and created again has the same version",
		Edits: []Edit{{"internal/queue/delay.go", "\tdefault:\n\t\tt.record.forget()\n", "\tdefault:\n"}},
		Test:  Test{"internal/queue", "TestARecordThatWasReadBeforeQueueingIsReadAgain"},
	},
	{
		Name: "a reader uses the record that it read when it queued", Origin: "writers must not, because they overwrite the version that they have read",
		Edits:   []Edit{{"internal/queue/delay.go", "\tcase t.recipe.Shared:\n\t\tt.record.forget()\n", ""}},
		Trouble: "delays", Focus: "rw", Seeds: 480,
	},
	{
		Name: "a failed wait for the lock-delay counts as done", Origin: "our first version: a reply was lost before the wait began",
		Edits: []Edit{{"internal/queue/delay.go", "if next == awaitDelay && err == nil {", "if next == awaitDelay {"}},
		Test:  Test{"internal/evidence/promises", "TestNoFaultOfAWaiterShortensTheLockDelay"},
	},
	{
		Name: "contenders of other libraries are treated as if they appeared in the record", Origin: "the record may be older than their holds",
		Edits: []Edit{{"internal/queue/nearest.go", "{ return !e.Shared && !node.IsDelayed(e.Name) }", "{ return !e.Shared && !node.IsDelayed(e.Name) && e.Name == \"\" }"}},
		Test:  Test{"internal/evidence/promises", "TestAForeignPredecessorIsFollowedAfterTheLockDelay"},
	},
	{
		Name: "a record remains after a release", Origin: "our first version: one node for each path, for ever",
		Edits: []Edit{{"internal/queue/record.go", "if t.record.isNeeded || ", "if t != nil || "}},
		Test:  Test{"internal/evidence/promises", "TestALockThatWasReleasedHasNoRecord"},
	},
	{
		Name: "a release behind another library's contender leaves no record", Origin: "a waiter behind both takes the other contender for the last holder",
		Edits: []Edit{{"internal/queue/delay.go", "t.record.isNeeded = t.initialAhead.unrecordedBehind(\"\") != \"\"\n", "_ = t.record.isNeeded\n"}},
		Test:  Test{"internal/queue", "TestAReleaseBehindAnotherLibrarysContenderIsRecorded"},
	},
	{
		Name: "a release does not find a record that is created late", Origin: "the reply to its create was lost, and it did not exist when it was read",
		Edits: []Edit{{"internal/queue/record.go", "\tcase !at.exists: // make sure that it does not exist\n", "\tcase !at.exists && t == nil:\n"}},
		Test:  Test{"internal/queue", "TestAReleaseDeletesARecordThatAppearsMeanwhile"},
	},
	{
		Name: "a release leaves a record that it may not delete unchanged", Origin: "the holder then counts as lost",
		Edits: []Edit{{"internal/queue/record.go", "\t\tt.engine.fixedRecords.put(t.Dir, struct{}{})\n\t\treturn\n", "\t\tt.record.wasRefused(false)\n\t\treturn\n"}},
		Test:  Test{"internal/queue", "TestAReleaseIsWrittenIntoARecordThatMayNotBeDeleted"},
	},
	{
		Name: "a lost hold is followed after the delay of the next contender", Origin: "each client knows only its own delay",
		Edits: []Edit{{"internal/queue/delay.go", "\tif r.By == lost {\n", "\tif r.By == lost && lost == \"\" {\n"}},
		Test:  Test{"internal/queue", "TestOnlyAnExistingHoldRefusesAnotherDelay"},
	},
	{
		Name: "the record of a lost hold makes clients with another delay fail", Origin: "our first version: until an operator deleted the record",
		Edits: []Edit{{"internal/queue/record.go", "_, err = c.Requests.Stat(ctx, s, dir+\"/\"+r.By)\n", "\n"}},
		Test:  Test{"internal/queue", "TestOnlyAnExistingHoldRefusesAnotherDelay"},
	},
	{
		Name: "the lock-delay is read from a server that lags", Origin: "our first version made this mistake with a semaphore's number of permits",
		Edits: []Edit{{"internal/queue/record.go", "return session.UpToDate(ctx, c.Requests, s, func()", "return session.Again(ctx, func()"}},
		Test:  Test{"internal/evidence/promises", "TestALaggingServerCausesNoMismatchOfTheLockDelay"},
	},
	{
		Name: "a client without a lock-delay queues together with clients that have one", Origin: "clients without a lock-delay do not read the record",
		Edits: []Edit{{"internal/queue/conflicts.go", "if !r.Delays || c.Delay > 0 ||", "if c != nil || !r.Delays || c.Delay > 0 ||"}},
		Test:  Test{"internal/evidence/promises", "TestClientsWithDifferentLockDelaysGetErrMismatch"},
	},
	{
		Name: "the guardian creates its threads when it needs them", Origin: "the Go runtime's behavior: a command that uses up the processes ended it",
		Edits: []Edit{{"cmd/zklock/internal/guardian/guardian_unix.go", "\tReserveThreads()\n", ""}},
		Test:  Test{"cmd/zklock", "TestTheGuardianHasItsThreadsBeforeTheCommandStarts"},
	},
	{
		Name: "the arguments of a command are encoded as text", Origin: "encoding/json replaces bytes that are not UTF-8",
		Edits: []Edit{{"cmd/zklock/internal/proc/spec.go", "all = append(all, Raw(text))", "all = append(all, Raw(string([]rune(text))))"}},
		Test:  Test{"cmd/zklock", "TestTheCommandGetsItsArgumentsByteByByte"},
	},
	{
		Name: "a terminal is taken to send the command every signal that zklock gets", Origin: "a hang-up is sent only to the leader of a session",
		Edits: []Edit{{"cmd/zklock/internal/proc/tree_linux.go", "shares := s.Terminal && !s.Leader", "shares := s.Terminal"}},
		Test:  Test{"cmd/zklock", "TestRunAsTheLeaderOfASessionPassesSignalsOnOnce"},
	},
	{
		Name: "a text that looks like a period but is not one is taken for a name", Origin: "our first version: such a job ran once and never again",
		Edits: []Edit{{"cmd/zklock/internal/period/period.go", "\tcase isPeriodic(name):\n", "\tcase name == \"@daily\":\n"}},
		Test:  Test{"cmd/zklock/internal/period", "TestNoTextIsBothAPeriodAndAName"},
	},
	{
		Name: "a day in a given time zone is a day of the host", Origin: "cron on hosts with different time zones",
		Edits: []Edit{{"cmd/zklock/internal/period/period.go", "now = now.In(place)", "_ = place"}},
		Test:  Test{"cmd/zklock/internal/period", "TestAPeriodMeansWhatCronMeans"},
	},
	{
		Name: "the hour that is repeated when clocks are put back has its slots twice", Origin: "our first version: 90m in New York skipped a run",
		Edits: []Edit{{"slots/marks.go", "if before.After(wall) {", "if before.Before(wall) && wall.IsZero() {"}},
		Test:  Test{"slots", "TestNoSlotComesAgainWhenClocksArePutBack"},
	},
	{
		Name: "a directory that could not be read once is never read again", Origin: "our first version: a page showed the lock as free",
		Edits: []Edit{{"operate/watch.go", "if d.place == nil && d.path != b.dirs.base {", "if d.place == nil && d.path != b.dirs.base && d.fate != isUnreadable {"}},
		Test:  Test{"operate", "TestADirectoryThatCouldNotBeReadIsShownLater"},
	},
	{
		Name: "a client that makes many directories uses up all watches", Origin: "our first version: one neighbor made everybody's page fail",
		Edits: []Edit{{"operate/follow.go", "own < d.most[c]/(others+1)", "own < 0*others"}},
		Test:  Test{"operate", "TestANeighbourWithManyDirectoriesHidesNoLocks"},
	},
	{
		Name: "a server that accepts a connection counts as having answered", Origin: "our first version: a page showed no notice about a server that hangs",
		Edits: []Edit{{"cmd/zklock/internal/servers/contact.go", "c.lost = c.lost || c.open == 0", "c.lost = c.open == 0"}},
		Test:  Test{"cmd/zklock/internal/servers", "TestASilentServerIsNotedThoughItsConnectionIsOpen"},
	},
	{
		Name: "a wait that ends without a reply is reported as another holder", Origin: "our first version: with -E 0, no host ran a cron job",
		Edits: []Edit{{"cmd/zklock/internal/job/acquire.go", "\tcase !j.answered(q):\n", "\tcase !j.answered(q) && j.Election && ctx.Err() == nil:\n"}},
		Test:  Test{"cmd/zklock", "TestWaitingForServersThatDoNotAnswerIsNoOtherHolder"},
	},
	{
		Name: "a command waits for the lock under which it runs", Origin: "our first version: it waited for ever",
		Edits: []Edit{{"cmd/zklock/internal/job/nested.go", "if slices.Contains(nodes, who.Node) {", "if slices.Contains(nodes, who.Node) && !who.Holds {"}},
		Test:  Test{"cmd/zklock", "TestACommandUnderALockMayNotTakeItAgain"},
	},
	{
		Name: "a healthy job is ended when the wall clock is set forward", Origin: "our first version: the smaller of two clocks' values counted",
		Edits: []Edit{{"cmd/zklock/internal/guardian/deadline.go", "\t\treturn time.Duration(d.Boot - n.Boot)\n", "\t\treturn min(time.Duration(d.Boot-n.Boot), time.Duration(d.Wall-n.Wall))\n"}},
		Test:  Test{"cmd/zklock/internal/guardian", "TestADeadlineComesByTheClockThatCannotBeSet"},
	},
	{
		Name: "a signal to the command's parent is lost in the guardian", Origin: "our first version: kill -TERM $PPID",
		Edits: []Edit{{"cmd/zklock/internal/guardian/supervise.go", "s.pass(syscall.Signal(r.Told), toGuardian)", "s.passed[syscall.Signal(r.Told)] = passing{}"}},
		Test:  Test{"cmd/zklock", "TestASignalToTheParentReachesTheCommand"},
	},
	{
		Name: "errors of libraries are printed unchanged", Origin: "our first version: context deadline exceeded",
		Edits: []Edit{{"cmd/zklock/internal/outcome/explain.go", "reworded(part), 1)", "part.Error(), 1)"}},
		Test:  Test{"cmd/zklock/internal/outcome", "TestErrorsOfLibrariesAreReworded"},
	},
	{
		Name: "--acl auth: is accepted without credentials", Origin: "our first version: it was reported as a failure of the servers",
		Edits: []Edit{{"cmd/zklock/internal/servers/flags.go", "len(o.Auth) == 0 && o.Login == nil && s.cert == \"\"", "len(o.Auth) < 0 && s.cert == \"\""}},
		Test:  Test{"cmd/zklock/internal/servers", "TestAnACLForOnesOwnCredentialsNeedsSome"},
	},
	{
		Name: "an exit code of the command is taken for one of zklock's own", Origin: "our first version: with -E 0 a command's 75 became a success, and 80 kept the lock",
		Edits: []Edit{{"cmd/zklock/internal/guardian/supervise.go", "return outcome.Ended{Code: *s.exited}", "return outcome.Verdict(*s.exited).Of(nil)"}},
		Test:  Test{"cmd/zklock", "TestTheCodeOfTheCommandIsNotTouched"},
	},
	{
		Name: "a leader's value may look like a writer that became a reader", Origin: "our first version: readers passed a leader",
		Edits: []Edit{{"election.go", "\tcase node.IsDowngraded(value):\n", "\tcase false:\n"}},
		Test:  Test{"internal/evidence/promises", "TestALeadersValueAdmitsNoReader"},
	},
	{
		Name: "a latch's value can be written through another kind of election", Origin: "our first version: Curator's latches took the event for their turn",
		Edits: []Edit{{"election.go", " && g.nodes[0].Fixed == e.recipe().Fixed", ""}},
		Test:  Test{"internal/evidence/promises", "TestALatchsDataIsNotWrittenByAnotherKindOfElection"},
	},
	{
		Name: "FailStop runs in the goroutine that Close waits for", Origin: "our first version: FailStop could not close the client",
		Edits: []Edit{{"do.go", "\t\t\tgo g.engine.FailStop(", "\t\t\tg.engine.FailStop("}},
		Test:  Test{"internal/evidence/promises", "TestFailStopMayCloseTheClient"},
	},
	{
		Name: "permits are created although their queue node is gone", Origin: "our first version: an evicted contender was granted permits",
		Edits: []Edit{{"internal/queue/permits.go", "\t\tmade.createOnlyIf(&queueNode.member)", "\t\t_ = made.createOnlyIf"}},
		Test:  Test{"internal/evidence/promises", "TestAnAcquireEvictedWhileItCreatesItsPermitsGetsErrEvicted"},
	},
	{
		Name: "an eviction leaves permits that were created meanwhile", Origin: "our first version: the evicted contender held",
		Edits: []Edit{{"operate/evict.go", "if contender.Kind != KindPermit || !isPlace", "if contender.Kind == KindPermit || !isPlace"}},
		Test:  Test{"internal/evidence/promises", "TestAnEvictedContenderHoldsNoPermits"},
	},
	{
		Name: "a contender that is evicted before it finds its queue node queues again", Origin: "our first version",
		Edits: []Edit{{"internal/queue/permits.go", "return nil, queueNode.unlessEvicted(ctx, err)", "return nil, err"}},
		Test:  Test{"internal/evidence/promises", "TestAnAcquireOfPermitsEvictedBeforeItListsGetsErrEvicted"},
	},
	{
		Name: "a goroutine holds in a shared place although it asked later than another process", Origin: "our first version: it overtook the other process",
		Edits: []Edit{{"sharedplace.go", "number <= p.lastAhead || !p.grant.Waited", "number <= p.lastAhead || number > 0"}},
		Test:  Test{"internal/evidence/promises", "TestAGoroutineDoesNotHoldInAPlaceRequestedBeforeItsCall"},
	},
	{
		Name: "a goroutine starts to hold in a place that is lost", Origin: "our first version",
		Edits: []Edit{{"sharedplace.go", "!p.isHeld() && p.holding.ctx.Err() == nil", "!p.isHeld()"}},
		Test:  Test{".", "TestWaitersThatMayHoldInAPlaceThatWasJustGranted"},
	},
	{
		Name: "each LockAll under a long hold leaves something in that hold", Origin: "our first version",
		Edits: []Edit{{"holding.go", "range g.stopForwarding {", "range g.stopForwarding[:0] {"}},
		Test:  Test{"internal/evidence/promises", "TestLockAllUnderALongHoldLeavesNothing"},
	},
	{
		Name: "owner data with a label that is not UTF-8 is not recognized as this library's", Origin: "our first version: the writer was taken for lost",
		Edits: []Edit{{"internal/node/owner.go", "\to.Host, o.Label = strings.", "\to.Host, _ = strings."}},
		Test:  Test{"internal/evidence/promises", "TestAWriterWhoseLabelIsNotUTF8IsDowngraded"},
	},
	{
		Name: "a mark that is too large is tried again and again", Origin: "our first version",
		Edits: []Edit{{"slots/slots.go", "\tif err := node.CheckSize(ops); err != nil {\n", "\tif err := node.CheckSize(ops); err != nil && h == nil {\n"}},
		Test:  Test{"internal/evidence/promises", "TestAMarkUnderManyPermitsEnds"},
	},
	{
		Name: "Mark decides when the first of several locks is gone", Origin: "our first version: a lock that was entered again remains",
		Edits: []Edit{{"slots/slots.go", "\tfor _, n := range nodes {\n", "\tfor _, n := range nodes[:1] {\n"}},
		Test:  Test{"internal/evidence/promises", "TestAMarkIsDecidedThoughOneOfItsLocksRemainsHeld"},
	},
	{
		Name: "a path may contain characters that servers refuse", Origin: "our first version: the acquire failed only at the server",
		Edits: []Edit{{"internal/node/paths.go", "r >= 0xe000 &&", "r >= 0xf000 &&"}},
		Test:  Test{"internal/node", "TestPathsAreCheckedByZooKeepersRules"},
	},
	{
		Name: "a Locker may return no hold", Origin: "our first version: LockAll called it again and again",
		Edits: []Edit{{"lockall.go", "\tcase h.holding().engine != c.engine: //", "\tcase h == nil:\n\tcase h.holding().engine != c.engine: //"}},
		Test:  Test{"internal/evidence/promises", "TestALockerWithoutAHoldIsRefused"},
	},
	{
		Name: "a hold's timer is trusted until the lease expires", Origin: "our first version: timers do not run while a machine sleeps",
		Edits: []Edit{{"internal/lease/lease.go", "{ return max(l.Term()/20, time.Millisecond) }", "{ return l.Term() }"}},
		Test:  Test{"internal/evidence/promises", "TestAMachineThatWakesUpWithoutANetworkNoticesTheLossSoon"},
	},
	{
		Name: "the program closes the connection before the client's holds end", Origin: "our first version, with Attach: the servers released the locks first",
		Edits: []Edit{{"internal/conn/proxy.go", "r.Op() == frames.OpClose {", "r.Op() == frames.OpClose+1000 {"}},
		Test:  Test{"internal/evidence/promises", "TestAHoldEndsBeforeItsConnectionIsClosed"},
	},
	{
		Name: "a refused credential does not count as a refusal", Origin: "our first version: the session was renewed for ever",
		Edits: []Edit{{"internal/conn/proxy.go", "case asked.op == frames.OpAuth && r.Code != frames.CodeOK:", "case asked.op == frames.OpAuth && r.Code > frames.CodeOK:"}},
		Test:  Test{"internal/evidence/promises", "TestASessionWhoseCredentialsAreRefusedEnds"},
	},
	{
		Name: "a session that only tested whether the servers work is kept", Origin: "our first version: an outage cost half of the waiters their places",
		Edits: []Edit{{"internal/conn/handshake.go", "\tcase probed:\n\t\treturn nil, nil, errProbe\n", ""}},
		Test:  Test{"internal/evidence/promises", "TestAnOutageOfAnyLengthCostsNoWaiterItsPlace"},
	},
	{
		Name: "a failed heartbeat is repeated until one is answered", Origin: "our first version: four at once",
		Edits: []Edit{{"internal/lease/schedule.go", "c.Step != Nothing || k.failed && k.pending > 0:", "c.Step != Nothing:"}},
		Test:  Test{"internal/evidence/promises", "TestAHeartbeatThatWasThrottledIsRepeatedOnce"},
	},
	{
		Name: "one lost connection is counted once for each request that was lost with it", Origin: "our first version: directories remained for ever",
		Edits: []Edit{{"internal/session/support.go", "if p.hungUp != on {", "if p.hungUp != on || on != nil {"}},
		Test:  Test{"internal/evidence/promises", "TestOneLostConnectionIsNotTakenForAServerWithoutContainers"},
	},
	{
		Name: "an exceeded quota counts as an unknown outcome", Origin: "our first version: an acquire waited without an error",
		Edits: []Edit{{"internal/outcome/outcome.go", "\tframes.ErrLocalSession, frames.ErrQuota,\n", "\tframes.ErrLocalSession,\n"}},
		Test:  Test{"internal/evidence/promises", "TestAnAcquireThatExceedsAQuotaFailsAtOnce"},
	},
	{
		Name: "a throttled request is taken to be possibly executed", Origin: "our first version: its node was searched for again and again",
		Edits: []Edit{{"internal/outcome/outcome.go", " || errors.Is(err, frames.ErrThrottled)", ""}},
		Test:  Test{"internal/evidence/promises", "TestAThrottledCreateIsNotSearchedFor"},
	},
	{
		Name: "the time waited before the crash of a holder does not count", Origin: "our first version: the delay started again",
		Edits: []Edit{{"internal/queue/delay.go", "n.Stat.Ctime >= r.mtime || t.recipe.Fixed", "n.Stat.Ctime >= 0 || t.recipe.Fixed"}},
		Test:  Test{"internal/evidence/promises", "TestAWaitThatBeganBeforeTheCrashCounts"},
	},
	{
		Name: "a label shows text in quotes", Origin: "our first version: ssh host 'mysql -psecret'",
		Edits: []Edit{{"cmd/zklock/internal/job/label.go", " || strings.ContainsFunc(w, unicode.IsSpace)", " || unicode.IsSpace(0)"}},
		Test:  Test{"cmd/zklock/internal/job", "TestLabelsDistinguishJobsAndContainNoSecrets"},
	},
	{
		Name: "an empty --node means every holder", Origin: "our first version: an unset variable of a script",
		Edits: []Edit{{"cmd/zklock/internal/command/revoke.go", "\tcase f.Given(\"node\") && c.node == \"\":\n", "\tcase f.Given(\"node\") && c.node == \"-\":\n"}},
		Test:  Test{"cmd/zklock", "TestRevokeAndEvictAffectOnlyTheNamedContenders"},
	},
	{
		Name: "without waiting, a silent server is reported as another holder", Origin: "our first version: no host ran a cron job",
		Edits: []Edit{{"cmd/zklock/internal/servers/connect.go", "errors.Is(answer, context.DeadlineExceeded) && !errors.Is(answer, zklock.ErrLocked)", "answer == context.DeadlineExceeded"}},
		Test:  Test{"cmd/zklock", "TestWithoutWaitingServersThatDoNotAnswerAreNoOtherHolder"},
	},
	{
		Name: "a request to release reaches no process after the command has ended", Origin: "our first version: a daemon kept the lock",
		Edits: []Edit{{"cmd/zklock/internal/guardian/supervise.go", "\t\t\ts.pass(signals.Terminate, toZklock)\n", "\t\t\ts.order(order{Signal: int(signals.Terminate)})\n"}},
		Test:  Test{"cmd/zklock", "TestRunEndsTheProcessesLeftOnASignal"},
	},
	{
		Name: "zklock waits for the reader of its log", Origin: "our first version: a pager cost the lock",
		Edits: []Edit{{"cmd/zklock/internal/servers/logwriter.go", "\tcase <-time.After(100 * time.Millisecond):\n", "\tcase <-time.After(time.Hour):\n"}},
		Test:  Test{"cmd/zklock", "TestRunHoldsThoughItsLogIsNotRead"},
	},
	{
		Name: "an eviction waits for ever for a server that stopped answering", Origin: "our first version",
		Edits: []Edit{{"cmd/zklock/internal/command/evict.go", "err := server.Ask(ctx, func(ctx context.Context) error { return operate.Evict(ctx, client, who) })", "err := operate.Evict(ctx, client, who)"}},
		Test:  Test{"cmd/zklock", "TestAChangeWithoutAReplyEnds"},
	},
	{
		Name: "an unknown time zone is treated as UTC", Origin: "our first version: TZ=CET-1CEST",
		Edits: []Edit{{"cmd/zklock/internal/period/period.go", "\tif err != nil {\n\t\treturn fmt.Errorf(\"the host's time zone", "\tif err != nil && tz == \"\" {\n\t\treturn fmt.Errorf(\"the host's time zone"}},
		Test:  Test{"cmd/zklock/internal/period", "TestADayIsNotCountedInAnotherZoneThanTheHosts"},
	},
	{
		Name: "a script continues after Ctrl-C", Origin: "our first version: zklock exited by itself",
		Edits: []Edit{{"cmd/zklock/internal/guardian/supervise.go", "Again: by == os.Interrupt && hasTerminal", "Again: by == nil && hasTerminal"}},
		Test:  Test{"cmd/zklock", "TestCtrlCEndsTheScriptThatRunsTheCommand"},
	},
	{
		Name: "a command does not receive rarely used signals", Origin: "our first version: STOPSIGNAL SIGRTMIN+3",
		Edits: []Edit{{"cmd/zklock/internal/signals/signals_unix.go", "const lastSignal = 64", "const lastSignal = 31"}},
		Test:  Test{"cmd/zklock", "TestRunPassesOnAllSignalsThatProgramsUse"},
	},
	{
		Name: "elect succeeds although the leader could not be printed", Origin: "our first version: elect >/dev/full",
		Edits: []Edit{{"cmd/zklock/internal/command/elect.go", "\t_, err := fmt.Fprintln(std.Out, show.Value(leader))\n\treturn err", "\tfmt.Fprintln(std.Out, show.Value(leader))\n\treturn nil"}},
		Test:  Test{"cmd/zklock", "TestFailedOutputIsAFailure"},
	},
	{
		Name: "a hold's timer is set only once", Origin: "our first version: a reconnect may give the session a shorter timeout",
		Edits: []Edit{
			{"holding.go", "\t\tcase <-again:\n", "\t\tcase <-map[bool]<-chan struct{}{false: again}[true]:\n"},
			{"internal/lease/lease.go", "{ return max(l.Term()/20, time.Millisecond) }", "{ return time.Hour }"},
		},
		Test: Test{"internal/evidence/promises", "TestAHoldEndsInTimeThoughItsSessionBecomesShorter"},
	},
	{
		Name: "each connection numbers its requests from the start", Origin: "our first version: a follower distinguishes a session's requests only by their numbers",
		Edits: []Edit{
			{"internal/conn/proxy.go", "\tended       bool\n", "\tended       bool\n\tlast        int32\n"},
			{"internal/conn/proxy.go", "\tnumber := t.link.number()\n", "\tt.last++\n\tnumber := t.last\n"},
		},
		Test: Test{"internal/evidence/promises", "TestNoNumberIsGivenTwiceInASession"},
	},
	{
		Name: "waiters learn of a node's end before its owner", Origin: "our first version: two goroutines of a client held for an instant",
		Edits: []Edit{{"internal/session/watch.go", "\tend := func() {\n\t\towner.Fired(saw)\n\t\tw.end()\n", "\tw.end()\n\tend := func() {\n\t\towner.Fired(saw)\n"}},
		Test:  Test{"internal/session", "TestTheOwnerOfANodeLearnsOfItsEndBeforeItsWaiters"},
	},
	{
		Name: "a failed write discards what the server has sent before", Origin: "our first version: a server that ends a session sends the event of its node and hangs up",
		Edits: []Edit{{"internal/conn/outbox.go", "o.to.SetReadDeadline(time.Now().Add(drain))", "o.to.SetReadDeadline(time.Now().Add(drain))\n\t\to.to.Close()"}},
		Test:  Test{"internal/conn", "TestAFailedWriteLosesNoEvent"},
	},
	{
		Name: "a sender overtakes the frames that another goroutine writes", Origin: "why the outbox has one goroutine that writes",
		Edits: []Edit{{"internal/conn/outbox.go", "if o.busy || o.closed || o.isEmpty() {", "if o.closed || o.isEmpty() {"}},
		Test:  Test{"internal/conn", "TestSenderWritesWhatTheConnectionTakes"},
	},
	{
		Name: "frames that come while a sender writes are not written", Origin: "the sender does not look again",
		Edits: []Edit{{"internal/conn/outbox.go", "o.busy = !o.isEmpty()\n\treturn !o.busy", "o.busy = false\n\treturn true"}},
		Test:  Test{"internal/conn", "TestSenderWritesNoFramesThatCameMeanwhile"},
	},
	{
		Name: "a deletion that is refused or not sent counts as done", Origin: "the fast path of a release",
		Edits: []Edit{{"internal/queue/delete.go", "func(err error) { then(isGone(err)) }", "func(err error) { then(isGone(err) || err != nil) }"}},
		Test:  Test{"internal/evidence/promises", "TestARefusedReleaseContinuesWhenItIsAllowed"},
	},
	{
		Name: "Shutdown waits for the reply to a deletion on a connection that stays", Origin: "our first version of a release without a goroutine",
		Edits: []Edit{{"internal/queue/delete.go", "if !over.Swap(true) {\n\t\t\tslowly() // which ends at once\n\t\t}", ""}},
		Test:  Test{"internal/evidence/promises", "TestShutdownKeepsItsLimitOnAConnectionThatStays"},
	},
	{
		Name: "a listing that its first caller has not sent fails for all callers", Origin: "our first version of listings without a goroutine",
		Edits: []Edit{{"internal/session/listing.go", "errors.Is(err, frames.ErrThrottled), errors.Is(err, conn.ErrNotSent):", "errors.Is(err, frames.ErrThrottled):"}},
		Test:  Test{"internal/session", "TestAListingThatIsNotSentIsRequestedAgain"},
	},
	{
		Name: "a watch that is throttled is not requested again by itself", Origin: "our first version: its waiter repeated all requests of the step, with longer and longer pauses",
		Edits: []Edit{{"internal/session/watch.go", "errors.Is(err, frames.ErrThrottled) && ", "errors.Is(err, frames.ErrTooLong) && "}},
		Test:  Test{"internal/session", "TestAThrottledWatchIsRequestedAgain"},
	},
	{
		Name: "a watch that has fired before its reply is waited for", Origin: "our first version: the grant waited until the session ended",
		Edits: []Edit{{"internal/session/view.go", "\tif v.State > Set {\n\t\treturn happened\n\t}\n", ""}},
		Test:  Test{"internal/queue", "TestAGrantSetsAnotherWatchIfTheFirstHasFiredBeforeItsReply"},
	},
	{
		Name: "the pauses of a waiter become longer with each error of a long wait", Origin: "our first version: up to a second, whatever has succeeded meanwhile",
		Edits: []Edit{{"internal/queue/wait.go", "\t\t*p = session.Pace{}\n", ""}},
		Test:  Test{"internal/queue", "TestAWaitersPausesAreShortAgainAfterASuccess"},
	},
	{
		Name: "callers get the cause of the context of another caller with whom they share a request", Origin: "the first caller sends it",
		Edits: []Edit{{"internal/session/bundle.go", "\t\terr = conn.ErrNotSent\n", "\t\terr = errors.Join(err, conn.ErrNotSent)\n"}},
		Test:  Test{"internal/session", "TestABundleThatIsNotSent"},
	},
	{
		Name: "a server that sends only events does not count as silent", Origin: "our first version: it can fail to answer a session, and still send it events",
		Edits: []Edit{{"internal/conn/proxy.go", "handshaking || xid != frames.XidEvent", "handshaking || xid != 0"}},
		Test:  Test{"internal/evidence/promises", "TestAServerThatSendsEventsButNoRepliesIsLeft"},
	},
	{
		Name: "the first part of a long reply does not show that the server is alive", Origin: "our first version: on a slow link, the next part can take as long",
		Edits: []Edit{{"internal/conn/proxy.go", "\t\tt.hear()\n", ""}},
		Test:  Test{"internal/conn", "TestEachPartOfAnAnswerIsASignOfLife"},
	},
	{
		Name: "a directory of permits without a stored number is taken for that of a lock", Origin: "our first version: the semaphore's users are about to store the number",
		Edits: []Edit{{"internal/queue/conflicts.go", "return c.unlessPermits(ctx, sess, leases)", "return nil"}},
		Test:  Test{"internal/evidence/promises", "TestALockIsNotHeldTogetherWithPermitsWithoutANumber"},
	},
	{
		Name: "the number of a client's nodes is not limited", Origin: "our first version: its crash stopped ZooKeeper for good",
		Edits: []Edit{{"internal/queue/quota.go", "s.Own(n, maxOwned)", "s.Own(n, 100*maxOwned)"}},
		Test:  Test{"internal/evidence/promises", "TestAllNodesOfAClientCanEndInOneTransaction"},
	},
	{
		Name: "released nodes still count toward the limit", Origin: "a forgotten subtraction",
		Edits: []Edit{{"internal/queue/delete.go", "zk.ErrNoNode):\n\t\t\tt.uncount()\n", "zk.ErrNoNode):\n"}, {"internal/queue/delete.go", "stop()\n\t\t\tt.uncount()\n", "stop()\n"}},
		Test:  Test{"internal/evidence/promises", "TestAllNodesOfAClientCanEndInOneTransaction"},
	},
	{
		Name: "replaced nodes still count toward the limit", Origin: "at a hand-off, no separate request deletes the old node",
		Edits: []Edit{{"internal/queue/create.go", "if takesOver {\n\t\tmore", "if old != nil && s == nil {\n\t\tmore"}},
		Test:  Test{"internal/evidence/promises", "TestAllNodesOfAClientCanEndInOneTransaction"},
	},
	{
		Name: "only the last of several permits is watched while the lease is being proven", Origin: "our first version: the others were checked again after each wait",
		Edits: []Edit{{"internal/queue/proof.go", "\t\t\tx.watchSelf() // when the wait ends, our nodes will not have been seen recently", "\t\t\tif x == &t.member {\n\t\t\t\tx.watchSelf()\n\t\t\t}"}},
		Test:  Test{"internal/evidence/promises", "TestManyPermitsAreGrantedAsFastAsOne"},
	},
	{
		Name: "a grant does not check the holds of its own client", Origin: "our first version: each holder watches only its own node",
		Edits: []Edit{{"internal/queue/proof.go", "\tfor !t.recipe.limited {\n\t\tunwatched", "\tfor t.recipe == nil {\n\t\tunwatched"}},
		Test:  Test{"internal/evidence/promises", "TestNoCallerOfAClientHoldsTogetherWithOneWhoseNodeIsGone"},
	},
	{
		Name: "a listing that lacks a hold's node does not end the hold", Origin: "our first version: each holder watches only its own node",
		Edits: []Edit{{"internal/queue/position.go", "\tt.engine.holders.endMissing(t.contender, queue.Has)\n", ""}},
		Test:  Test{"internal/evidence/promises", "TestNoCallerOfAClientHoldsTogetherWithOneWhoseNodeIsGone"},
	},
	{
		Name: "the order within a client depends only on sequence numbers", Origin: "our first version: a directory can be deleted and created again",
		Edits: []Edit{{"internal/queue/holders.go", "\tif before != 0 {", "\tif before < 0 {"}},
		Test:  Test{"internal/evidence/promises", "TestNoCallerOfAClientHoldsTogetherWithOneWhoseNodeIsGoneWithAnyNumbers"},
	},
	{
		Name: "a node is marked as gone before its holder is notified", Origin: "our first version: another goroutine could act in between",
		Edits: []Edit{{"internal/session/ownnode.go", "\tif notify != nil {\n\t\tnotify()\n\t}\n\tn.Gone.Set()", "\tn.Gone.Set()\n\tif notify != nil {\n\t\tnotify()\n\t}"}},
		Test:  Test{"internal/session", "TestANodeIsGoneAfterItsHolderWasNotified"},
	},
	{
		Name: "a number of permits is stored without checking the path", Origin: "our first version: Resize turned a held lock's path into a semaphore",
		Edits: []Edit{{"internal/queue/permits.go", "\t\t\terr = s.Engine.notAQueue(ctx, sess, s.Dir)\n\t\t}\n\t\treturn n, err", "\t\t\terr = nil\n\t\t}\n\t\treturn n, err"}},
		Test:  Test{"internal/evidence/promises", "TestNoNumberOfPermitsIsStoredWhereALockIs"},
	},
	{
		Name: "a lock does not remove the empty directory of a semaphore that is about to start", Origin: "our first version",
		Edits: []Edit{{"internal/queue/conflicts.go", "\tcase !numbered && len(n.Data) > 0:", "\tcase !numbered:"}},
		Test:  Test{"internal/evidence/promises", "TestALockAndASemaphoreThatComeAtOnceAreNotBothHeld"},
	},
	{
		Name: "a Locker that panics leaves the locks already acquired", Origin: "our first version handled only errors",
		Edits: []Edit{{"lockall.go", "\tinside, all := ctx, false\n\tdefer func() {\n\t\tif all {", "\tinside, all := ctx, false\n\tdefer func() {\n\t\tif all || err == nil {"}},
		Test:  Test{"internal/evidence/promises", "TestALockerThatDoesNotReturnLeavesNoLock"},
	},
	{
		Name: "the end of another hold is reported as the end of the caller's own", Origin: "our first version: a context can be derived from another hold's",
		Edits: []Edit{{"internal/outcome/outcome.go", "!isEnd(end) && isEnd(why)", "isEnd(end) && isEnd(why)"}},
		Test:  Test{"internal/evidence/promises", "TestACallThatEndsWithAnotherHoldDoesNotReportItsOwnAsLost"},
	},
	{
		Name: "Unlock with the hold's own context does not wait for the release", Origin: "our first version: that context ends first",
		Edits: []Edit{{"hold.go", "\tif ctx.Err() != nil || !h.isAround(ctx) {", "\tif ctx.Err() != nil || h != nil {"}},
		Test:  Test{"internal/evidence/promises", "TestUnlockUnderTheHoldsOwnContextWaits"},
	},
	{
		Name: "a second Close returns while the first is under way", Origin: "a flag instead of sync.Once",
		Edits: []Edit{{"zklock.go", "\t<-c.closed.Done() // a sync.Once", "\t// a sync.Once"}},
		Test:  Test{"internal/evidence/promises", "TestTwoConcurrentClosesBothWait"},
	},
	{
		Name: "a refused watch is reported as ended by its caller", Origin: "our first version: it cancels a context of its own",
		Edits: []Edit{{"operate/watch.go", "failed(c.Requests.Explain(callCtx, err))\n\t\t}\n\t}\n}", "failed(c.Requests.Explain(following, err))\n\t\t}\n\t}\n}"}},
		Test:  Test{"internal/evidence/promises", "TestAWatchWithoutReadPermissionEnds"},
	},
	{
		Name: "a hold that is reported as lost before its grant remains the oldest for ever", Origin: "a gauge must not rely on the order of the two events",
		Edits: []Edit{{"observe/oldest.go", "\tcase Released, Lost, Ended:\n", "\tcase Released, Ended:\n"}},
		Test:  Test{"observe", "TestALossBeforeTheGrantLeavesNoHold"},
	},
	{
		Name: "a method of a Client that New did not create uses a nil engine", Origin: "our first version, in operate and slots",
		Edits: []Edit{{"zklock.go", "c := client.(*Client).orNone()", "c := client.(*Client)"}},
		Test:  Test{"internal/evidence/promises", "TestAClientNotCreatedByConnectIsInvalid"},
	},
	{
		Name: "an election is reported as having no leader as soon as the first node goes", Origin: "a loop that ends too early: the checker had no rule about reports of no leader", Focus: "election",
		Edits: []Edit{{"election.go", "\t\t\tcase !errors.Is(err, zk.ErrNoNode):\n\t\t\t\treturn Contender{}, err\n", "\t\t\tdefault:\n\t\t\t\treturn Contender{}, nil\n"}},
	},
	{
		Name: "a shared place does not wake its queue when it starts to be watched", Origin: "our first version: after one goroutine gave up, others waited for an hour",
		Edits: []Edit{{"localqueue.go", "\tq.changed(p) // run may be", "\t// run may be"}},
		Test:  Test{"internal/evidence/promises", "TestAnotherContenderThatQueuedDuringAHoldEndsAKeptPlace"},
	},
	{
		Name: "Examine does not report a server that accepts a check of a missing node", Origin: "a probe that looks only for errors",
		Edits: []Edit{{"operate/examine.go", "\tcase err == nil:\n\t\tm.void = true\n", "\tcase err == nil:\n"}},
		Test:  Test{"internal/evidence/promises", "TestExamineFindsEachDefect"},
	},
	{
		Name: "Examine compares the longest tick with the session timeout instead of its half", Origin: "a follower's own minimum is two ticks",
		Edits: []Edit{{"operate/checks.go", "largest > f.shortest()/2", "largest > f.shortest()"}},
		Test:  Test{"internal/evidence/promises", "TestExamineFindsEachDefect"},
	},
	{
		Name: "Examine compares the longest tick with the requested timeout", Origin: "each server grants another timeout",
		Edits: []Edit{{"operate/checks.go", "if g := f.granted(m); i == 0 || g < least {", "if g := f.granted(m); i < 0 && g < least {"}},
		Test:  Test{"internal/evidence/promises", "TestExamineFindsEachDefect"},
	},
	{
		Name: "Examine's trial of a lock is committed", Origin: "a trial that succeeds needs a clean-up, which a crash prevents",
		Edits: []Edit{{"operate/examine.go", "\t\t&zk.CreateRequest{Path: dir, Acl: x.ACL}, // exists\n", ""}},
		Test:  Test{"internal/evidence/promises", "TestExamineFindsNothingInAHealthyEnsemble"},
	},
	{
		Name: "Examine takes every server for a member of the same ensemble", Origin: "it checks only the modes: followers of two ensembles look alike",
		Edits: []Edit{{"operate/examine.go", "return again.Session == hello.Session\n", "return again.Timeout > 0 || hello.Timeout > 0\n"}},
		Test:  Test{"internal/evidence/promises", "TestExamineDistinguishesTwoEnsembles"},
	},
	{
		Name: "Examine leaves its sessions to expire", Origin: "closing a connection does not close its session",
		Edits: []Edit{{"internal/conn/direct.go", "\td.Ask(frames.Close())\n", ""}},
		Test:  Test{"internal/evidence/promises", "TestExamineFindsNothingInAHealthyEnsemble"},
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
