// SPDX-License-Identifier: Apache-2.0

package mutants

// Table is every mutant.
var Table = []Mutant{
	{
		Name: "a client that joins a connection makes its heartbeats start again", Origin: "our first version: Lease.SetTick dropped all heartbeats even if the tick was the same",
		Edits: []Edit{{"internal/lease/lease.go", "if l.run != nil && l.halfTick() > before {", "if _ = before; l.run != nil {"}},
	},
	{
		Name: "each client of a connection knows only its own holders", Origin: "our first version: a waiter was granted the lock before the hold of another client of its connection had ended",
		Edits: []Edit{{"zklock.go", "Hub: hub, Requests: r,", "Hub: queue.NewHub(l), Requests: r,"}},
		Focus: "mutex", Faults: "delete",
	},
	{
		Name: "Close waits for an observer before it ends the holds", Origin: "our first version: nobody watched the lease meanwhile",
		Edits: []Edit{
			{"zklock.go", "\tended := c.endHolds()\n\tc.cancelLife(ErrClosed)\n\tsettleAll(ended)\n", "\tc.cancelLife(ErrClosed)\n"},
			{"holding.go", "\t\t\ths.loseAll(sess, ErrClosed)\n\t\t\treturn\n", "\t\t\treturn\n"},
		},
		Test: Test{"internal/evidence/promises", "TestCloseEndsTheHoldsBeforeItWaits"},
	},
	{
		Name: "the removal of a node ends when its client is closed", Origin: "our first version: on a connection that clients share, the node stayed in the queue for as long as the program's session",
		Edits: []Edit{{"internal/queue/delete.go", "if err != nil {\n\t\tco.engine.Hub", "if outcome.IsRefusal(err) {\n\t\tco.engine.Hub"}},
		Focus: "mutex", Faults: "^stop$|^close$",
	},
	{
		Name: "the tick of a client whose Attach was refused counts", Origin: "our first version: nothing was granted on the connection any more",
		Edits: []Edit{{"zklock.go", "\tif !link.CanProve(c.tickTime) {\n\t\treturn fmt.Errorf(", "\tif !link.CanProve(c.tickTime) {\n\t\tlink.AddTick(c.tickTime)\n\t\treturn fmt.Errorf("}},
	},
	{
		Name: "heartbeats keep a node that has been removed", Origin: "design: a connection that rests asks the quorum forever",
		Edits: []Edit{{"internal/queue/delete.go", "co.engine.Heart.Unkeep(&x.OwnNode)", "_ = x.OwnNode.Kept"}},
	},
	{
		Name: "each client that logs in replaces the connection that it shares", Origin: "our first version: clients with a longer tick that came and went cost a hold",
		Edits: []Edit{{"internal/conn/handshake.go", "if l.login.has(login) && l.Carried() != nil {", "if false {"}},
	},
	{
		Name: "Close leaves the node of a call whose observer does not return", Origin: "our first version",
		Edits: []Edit{{"zklock.go", "\tc.engine.Recall()\n", ""}},
		Test:  Test{"internal/evidence/promises", "TestAnObserverOfACloseKeepsNoNodeInTheQueue"},
	},
	{
		Name: "a session that has been replaced is still used", Origin: "go-zookeeper's Lock treats a lock of an earlier session as its own",
		Edits: []Edit{
			{"internal/conn/carried.go", "return l.session == s && !s.IsOver()", "return s != nil"},
		},
		Test:  Test{"internal/conn", "TestAnotherSessionIDEndsTheSession"},
		Focus: "mutex", Faults: "expire|partition",
	},
	{
		Name: "a handshake reply with another session ID is taken for the same session", Origin: "go-zookeeper's Conn, on servers that do not restore sessions",
		Edits: []Edit{{"internal/conn/handshake.go", "same := l.session != nil && l.session.ID == id && !l.session.IsOver()", "same := l.session != nil && id != 0 && !l.session.IsOver()"}},
		Test:  Test{"internal/evidence/promises", "TestASessionReplacedWithoutAnEventEndsEveryHold"},
	},
	{
		Name: "the client library waits for the log handler", Origin: "our first version: the client library wrote to the log between two dials",
		Edits: []Edit{{"zklock.go", "h.notices.Put(func() {", "func(do func()) { do() }(func() {"}},
		Test:  Test{"internal/evidence/promises", "TestASlowObserverOrLogHandlerCostsNoHold"},
	},
	{
		Name: "a server without a leader is taken to have created a session", Origin: "our first version: ClickHouse Keeper reports it only in the protocol version",
		Edits: []Edit{{"internal/frames/checks.go", "binary.BigEndian.Uint32(body) == versionRejected", "binary.BigEndian.Uint32(body) == versionRejected+1"}},
		Test:  Test{"internal/evidence/promises", "TestAKeeperWithoutALeaderGivesNoSession"},
	},
	{
		Name: "any transaction on a new connection extends holds", Origin: "our first version; found by the simulator with seed 117696774340842",
		Edits: []Edit{{"internal/lease/lease.go", "case !r.blind:", "case true:"}},
		Test:  Test{"internal/evidence/promises", "TestAHoldWhoseNodeWasDeletedIsNotExtendedByOtherRequests"},
	},
	{
		Name: "a Keeper is asked for container nodes", Origin: "our first version; found by the simulator with seed 117696002785482",
		Edits: []Edit{{"internal/session/support.go", "found := err == nil", "found := false"}},
		Test:  Test{"internal/evidence/promises", "TestOnAKeeperANewDirectoryCostsNoHold"},
	},
	{
		Name: "two searches at once for a lost create end the search", Origin: "our first version: after a reconnect the sweeper saw the new session, and was woken for it as well",
		Edits: []Edit{{"internal/session/pending.go", "\t}\n\treturn time.Since(pc.first)", "\t\treturn 0\n\t}\n\treturn never"}},
		Test:  Test{"internal/session", "TestALostCreateIsSearchedForLaterAlsoIfTheSweeperRanTwice"},
	},
	{
		Name: "an existing connection is kept open without a login", Origin: "Attach is called after the client library has connected",
		Edits: []Edit{{"internal/conn/handshake.go", "if conn != nil {\n\t\tconn.hangUp()\n\t}\n}\n\n// IsDenied", "_ = conn\n}\n\n// IsDenied"}},
		Test:  Test{"internal/evidence/promises", "TestAnExistingConnectionLogsInWhenItReconnects"},
	},
	{
		Name: "a refused Attach leaves its login on the program's connection", Origin: "our first version, seen with Kerberos",
		Edits: []Edit{{"zklock.go", "\t\tundo()\n", "\t\t_ = undo\n"}},
		Test:  Test{"internal/evidence/promises", "TestARefusedAttachLeavesTheConnectionAsItWas"},
	},
	{
		Name: "a refusal of a former login counts for the next", Origin: "Attach after a refused Attach",
		Edits: []Edit{{"internal/conn/loginstate.go", "\tif ls.login != login {\n\t\treturn false\n\t}\n\tls.denials++", "\tls.denials++"}},
		Test:  Test{"internal/conn", "TestARefusalOfAFormerLoginSaysNothingAboutTheNext"},
	},
	{
		Name: "a request that is younger than an answered ping is taken for lost", Origin: "our first version: reconnects in an outage of slow servers",
		Edits: []Edit{{"internal/conn/pending.go", "r.sent.Mono.Before(ping.Mono) && ", ""}},
		Test:  Test{"internal/conn", "TestAServerThatAnswersAnEarlierPingLateIsKept"},
	},
	{
		Name: "a server that answers too late is asked first again and again", Origin: "our first version: its late request took the session from each connection",
		Edits: []Edit{{"internal/conn/race.go", "\t\t\tr.link.servers.lost(other.server)\n", ""}},
		Test:  Test{"internal/evidence/promises", "TestASlowServerThatWasNotWaitedForIsNotAskedFirstAgain"},
	},
	{
		Name: "a server that is asked again gets more time", Origin: "our third version: with a frozen server, and others that had just refused, a client waited until the frozen one came back",
		Edits: []Edit{{"internal/conn/race.go", "if r.until[a.target].IsZero() {", "if a != nil {"}},
		Test:  Test{"internal/conn", "TestASearchForAServerEndsIfOneIsFrozen"},
	},
	{
		Name: "a server that has refused is not asked again while the client waits for a frozen one", Origin: "our first version: with a frozen leader a client waited for it for up to a session timeout, although there was another leader",
		Edits: []Edit{{"internal/conn/race.go", "len(r.failed) > 0 && r.mayAdd()", "false && r.mayAdd()"}},
		Test:  Test{"internal/conn", "TestAServerThatHasRefusedIsAskedAgainWhileAnotherIsFrozen"},
	},
	{
		Name: "dials that all fail are up to a second apart, however little remains of the lease", Origin: "our first version: with servers away for 0.3 T, a third of the holds were lost at T = 3 s",
		Edits: []Edit{{"internal/conn/dialer.go", "if left := l.left(); left > 0 {", "if left := l.left(); left > time.Hour {"}},
		Test:  Test{"internal/evidence/promises", "TestAHoldOutlivesServersThatServeAgainInTime"},
	},
	{
		Name: "to ask a server again resolves its name again", Origin: "our first version: a frozen server that is one of the addresses of a name was asked instead of those that had refused",
		Edits: []Edit{{"internal/conn/race.go", "	a.address = found[0].address\n", ""}},
		Test:  Test{"internal/conn", "TestAnAddressThatHasRefusedIsAskedAgainWhileAnotherIsFrozen"},
	},
	{
		Name: "a name with several addresses is the only server", Origin: "our first version: a new session had to wait a whole timeout for a frozen server",
		Edits: []Edit{{"internal/conn/race.go", " && len(r.tried) <= 1 && len(r.spare) == 0", ""}},
		Test:  Test{"internal/conn", "TestHowLongAServerMayTakeToReplyToAConnectionRequest"},
	},
	{
		Name: "a login that one address of a name refuses is refused", Origin: "our first version: if one server of a headless service did not know the user yet, Connect failed now and then",
		Edits: []Edit{{"internal/conn/race.go", "	r.link.login.know(a.server, len(found))\n", ""}},
		Test:  Test{"internal/evidence/promises", "TestALoginThatOneServerAcceptsIsEnough"},
	},
	{
		Name: "servers that have failed are asked again without a lease", Origin: "an unfinished mend: 80 clients that stood for 8,000 came back all at once after their leader was frozen, and the queues at the servers remained",
		Edits: []Edit{{"internal/conn/race.go", "r.mayAdd() && r.link.left() > 0", "r.mayAdd()"}},
		Test:  Test{"internal/conn", "TestAServerThatHasFailedIsAskedAgainWhileTheLeaseRuns"},
	},
	{
		Name: "a large request is sent however little remains of the lease", Origin: "our first version: heartbeats waited behind several large requests, one after the other",
		Edits: []Edit{{"internal/conn/pace.go", "!s.Lease.HasRoomFor(takes) && ", "!s.Lease.HasRoomFor(takes) && s.IsOver() && "}},
		Test:  Test{"internal/evidence/promises", "TestLargeTransactionsOverASlowLinkCostNoHold"},
	},
	{
		Name: "a large request waits for a lease that no node needs", Origin: "our first version: it waited while the session had any node; found by the simulator with pairs/87, seed 117697507098772",
		Edits: []Edit{{"internal/lease/room.go", "l.run == nil || !l.run.sender.proves", "l.run == nil"}},
		Test:  Test{"internal/evidence/promises", "TestALargeWriteOfTheProgramDoesNotWaitForALeaseThatNobodyNeeds"},
	},
	{
		Name: "LockAll takes a lock for lost alone if its client is closed before the servers say why", Origin: "our first version; found by the simulator with triples/14, seed 117697507098720",
		Edits: []Edit{{"lockall.go", "outcome.ErrSessionOver), ctx.Err() != nil:", "outcome.ErrSessionOver):"}},
		Test:  Test{"internal/evidence/promises", "TestLockAllEndsWithItsContextWhileItAsksWhyALockWasLost"},
	},
	{
		Name: "replies that waited for large requests show how far away the servers are", Origin: "our first version: right after the connect, large requests were sent however little remained of the lease",
		Edits: []Edit{{"internal/conn/proxy.go", "if sr.late {", "if false {"}},
		Test:  Test{"internal/evidence/promises", "TestLargeTransactionsOfANewSessionCostNoHold"},
	},
	{
		Name: "a server is left while a large request is on its way", Origin: "our first version: each repetition ended likewise",
		Edits: []Edit{{"internal/conn/proxy.go", "if px.pending.large == 0 ||", "if px.pending.large >= 0 ||"}},
		Test:  Test{"internal/evidence/promises", "TestLargeTransactionsOverASlowLinkCostNoHold"},
	},
	{
		Name: "a TLS handshake that takes longer than a second is begun again", Origin: "our first version: go-zookeeper's limit for a dial",
		Edits: []Edit{{"internal/conn/race.go", "ctx, cancel := context.WithTimeout(a.ctx, r.term)\n", "ctx, cancel := context.WithTimeout(a.ctx, time.Second)\n"}},
		Test:  Test{"internal/conn", "TestASlowServerGetsOneHandshake"},
	},
	{
		Name: "a server that does not answer has a third of the session timeout before another one is asked", Origin: "our first version",
		Edits: []Edit{{"internal/conn/race.go", "min(left*2/5, r.term/3)", "max(left*2/5, r.term/3)"}},
		Test:  Test{"internal/evidence/promises", "TestAFrozenServerThatIsTriedFirstCostsNoHold"},
	},
	{
		Name: "the client library waits at the end of a round of servers", Origin: "go-zookeeper's Conn",
		Edits: []Edit{{"internal/conn/known.go", "if !isTried(server) {\n\t\t\t\treturn server, true\n\t\t\t}\n\t\t}\n\t\treturn \"\", false", "_ = server\n\t\t}\n\t\treturn \"\", false"}},
		Test:  Test{"internal/evidence/promises", "TestTheEndOfARoundOfServersCostsNoAttachedHold"},
	},
	{
		Name: "a server that was dialed long ago can end the session", Origin: "design: its address may belong to another ensemble by now",
		Edits: []Edit{{"internal/conn/race.go", "r.asks == 0 || r.link.servers.hosts != nil ||", "true ||"}},
		Test:  Test{"internal/conn", "TestAServerAskedInAdditionThatDoesNotKnowTheSessionIsIgnored"},
	},
	{
		Name: "a node is not searched for after the reply to its create was lost", Origin: "CURATOR-45; go-zookeeper's CreateProtectedEphemeralSequential",
		Edits: []Edit{{"internal/queue/create.go", `if co.Name != "" || outcome.WasNotDone(co.creation.err) {`, "if co.creation.err != nil || true {"}},
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
		Name: "other children of the directory are treated as contenders", Origin: "go-zookeeper's Lock and Curator's semaphore count every child",
		Edits: []Edit{{"internal/node/names.go", "if e, ok := ParseEntry(name); ok {", "if e, ok := ParseEntry(name); ok || func() bool { e.Name = name; return true }() {"}},
	},
	{
		Name: "pings renew the lease", Origin: "every client that trusts the state of its connection",
		Edits: []Edit{{"internal/lease/lease.go", "\tr.forget(got)\n\tif of != OfServer {", "\tl.prove(sent, l.halfTick())\n\tr.forget(got)\n\tif of != OfServer {"}},
		Test:  Test{"internal/evidence/promises", "TestEveryHoldEndsBeforeAnotherHolds"},
	},
	{
		Name: "a reconnect to the same session renews the lease", Origin: "on real servers, a leader that was cut off lets its clients reconnect",
		Edits: []Edit{{"internal/lease/lease.go", "\tl.timeout = min(l.timeout, timeout)\n\tl.dialed = dialed\n", "\tl.timeout = min(l.timeout, timeout)\n\tl.dialed = dialed\n\tl.prove(sent, l.halfTick())\n"}},
		Test:  Test{"internal/lease", "TestAReconnectCountsFromTheLeadersFirstReplyOnThatConnection"},
	},
	{
		Name: "a run of heartbeats continues on the next connection", Origin: "design: a deposed leader continues a run without a gap while the next leader lets the session expire",
		Edits: []Edit{{"internal/lease/lease.go", "\tl.run.sender.begun, l.run.sender.proves =", "\tl.run.heard, l.run.since = former.heard, former.since\n\tl.run.sender.begun, l.run.sender.proves ="}},
		Test:  Test{"internal/lease", "TestARunExtendsNoProofAcrossConnections"},
	},
	{
		Name: "a reconnect is taken to mean that the leader has counted a touch", Origin: "design: the leader's reply can be to an earlier request",
		Edits: []Edit{{"internal/lease/lease.go", "\tl.run = &Run{l: l, blind: former.blind || former.sender.proves, beats", "\tl.run = &Run{l: l, blind: former.blind || former.sender.proves, heard: sent, since: got, beats"}},
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
		Name: "the lease counts from the receipt of a reply", Origin: "redsync, redisson and others",
		Edits: []Edit{{"internal/lease/lease.go", "l.proven, l.under = touch, under", "l.proven, l.under = l.now(), under"}},
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
		Edits: []Edit{{"internal/lease/lease.go", "got.Mono.Add(l.lag() + l.standstill(got.Mono))", "got.Mono"}},
		Test:  Test{"internal/lease", "TestEveryStepOfAProofIsNeeded"},
	},
	{
		Name: "the leader's clock is assumed never to stand still", Origin: "our first version: a virtual machine that is moved stops with its clock",
		Edits: []Edit{{"internal/lease/lease.go", "got.Mono.Add(l.lag() + l.standstill(got.Mono))", "got.Mono.Add(l.lag())"}},
	},
	{
		Name: "a touch is never lost", Origin: "LearnerSessionTracker replaces its table after it was serialized",
		Edits: []Edit{{"internal/lease/lease.go", "\tcase touched:\n", "\tcase touched:\n\t\tb.sent = sent\n"}},
		Test:  Test{"internal/lease", "TestAProofDatesFromTheOlderOfTwoTouches"},
	},
	{
		Name: "a lease that expired is valid again at once", Origin: "the leader expires all sessions of a bucket together",
		Edits: []Edit{{"internal/lease/lease.go", "case !r.settled().After(sent.Mono):", "case !r.since.Mono.After(sent.Mono):"}},
		Test:  Test{"internal/lease", "TestAfterAGapATransactionProvesOnlyWhenTheRunHasSettled"},
	},
	{
		Name: "heartbeats have no minimum interval", Origin: "our first version: sixty-five reads in a session of one tick",
		Edits: []Edit{{"internal/lease/schedule.go", "l.timeout), l.timeout/12", "l.timeout), l.timeout/60"}},
		Test:  Test{"internal/evidence/promises", "TestAShortSessionHasFewHeartbeats"},
	},
	{
		Name: "a queue at the servers makes heartbeats more frequent", Origin: "our third version: after a restart, a fleet of 6,000 clients lost a hold each",
		Edits: []Edit{{"internal/lease/schedule.go", "l.room(min(distance, l.near()))", "l.room(l.replies.slow)"}},
		Test:  Test{"internal/lease", "TestAQueueDoesNotMakeHeartbeatsMoreFrequent"},
	},
	{
		Name: "fast replies are forgotten while a queue lasts", Origin: "our third version: if no lock could be granted, the fastest replies of two timeouts counted, and a fleet did not come back after an outage",
		Edits: []Edit{{"internal/lease/replies.go", "const lookback = 12", "const lookback = 1"}},
		Test:  Test{"internal/lease", "TestTheDistanceIsKnownForTenTimeoutsOfAQueue"},
	},
	{
		Name: "the queue of a fleet that starts counts as the network's distance", Origin: "our third version: 6,000 processes that started together had no end of it",
		Edits: []Edit{{"internal/lease/schedule.go", "2*l.dialed + l.timeout/200", "l.timeout"}},
		Test:  Test{"internal/evidence/scale", "TestAFleetThatStartsAtOnceGetsItsLocks"},
	},
	{
		Name: "a lock is granted at the beginning of the queue that follows an outage", Origin: "our first version: nearly all locks of 6,000 clients were lost a second time",
		Edits: []Edit{{"internal/lease/lease.go", "case l.follows && l.under == created:", "case false:"}},
		Test:  Test{"internal/evidence/scale", "TestAFleetComesBackAfterAnOutage"},
	},
	{
		Name: "a lock is granted while the queue of a fleet that starts becomes longer", Origin: "our first version: up to 31 % of the first locks of 6,000 clients were lost at once",
		Edits: []Edit{{"internal/lease/lease.go", "case queued > l.timeout/20 && now.Sub(l.began) < l.timeout && l.replies.grow(now, l.timeout):", "case false:"}},
		Test:  Test{"internal/lease", "TestNoLockIsGrantedThatAQueueWouldCostAgain"},
	},
	{
		Name: "a lock is granted although the next heartbeat will be too late", Origin: "a trial: most locks of 6,000 clients were lost a second time",
		Edits: []Edit{{"internal/lease/lease.go", "return l.newest(l.replies.usually(now, l.timeout)) >= l.period(now)", "return true"}},
		Test:  Test{"internal/lease", "TestNoLockIsGrantedThatAQueueWouldCostAgain"},
	},
	{
		Name: "a watch that another caller has set shows the members", Origin: "our third version: without members, an observer listed them 250 times in a second",
		Edits: []Edit{{"internal/session/watch.go", "ws.subscribeNow(ctx, watchKey{sess: s, path: dir, children: true})", "func() (*View, error) {\n\t\tv, _, err := ws.subscribe(ctx, watchKey{sess: s, path: dir, children: true})\n\t\treturn v, err\n\t}()"}},
		Test:  Test{"internal/evidence/promises", "TestAnObserverDoesNotListTheMembersAgainAndAgain"},
	},
	{
		Name: "a queue makes the period so long that no lock can be granted", Origin: "a trial: behind slow commits a lock took an hour",
		Edits: []Edit{{"internal/lease/schedule.go", ", l.timeout/3, l.longest(l.replies.usually(now, l.timeout))))", ", l.timeout/3))"}},
		Test:  Test{"internal/lease", "TestAQueueMakesHeartbeatsRarer"},
	},
	{
		Name: "fast syncs hide slow commits", Origin: "a trial: with slow commits no lock was ever granted",
		Edits: []Edit{{"internal/lease/replies.go", "range r.fastest {", "range r.fastest[:OfQuorum] {"}},
		Test:  Test{"internal/lease", "TestTheSlowestKindOfReplyIsTheDistance"},
	},
	{
		Name: "heartbeats become more frequent in a queue in which no lock can be granted", Origin: "our first version: of 10,000 processes that started within 3 s, the clients of one follower got no lock in two of 600 runs",
		Edits: []Edit{{"internal/lease/schedule.go", "most >= least && l.newest(l.replies.usually(now, l.timeout)) >= most", "most >= least"}},
		Test:  Test{"internal/lease", "TestAQueueInWhichNoLockCanBeGrantedMakesHeartbeatsNoMoreFrequent"},
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
		Name: "the client's patience does not grow after slow replies", Origin: "our first version: with slow disks, it left each server before it could reply",
		Edits: []Edit{{"internal/lease/schedule.go", "max(l.timeout/5, 2*l.replies.slow)", "l.timeout/5"}},
		Test:  Test{"internal/evidence/promises", "TestSlowServersDelayNoCallForEver"},
	},
	{
		Name: "the client library's deadline considers only replies to its own requests", Origin: "our first version: most replies do not reach the client library",
		Edits: []Edit{{"internal/conn/proxy.go", "if rd.bound > 0 {", "if rd.bound < 0 {"}},
		Test:  Test{"internal/conn", "TestAServerThatAnswersUsIsNotSilentForTheClientLibrary"},
	},
	{
		Name: "the client leaves a server that fails only after a third of the timeout", Origin: "our first version: a command did not have enough time to end",
		Edits: []Edit{{"internal/lease/schedule.go", "max(l.timeout/5, 2*l.replies.slow)", "max(l.timeout/3, 2*l.replies.slow)"}},
		Test:  Test{"internal/evidence/promises", "TestAFollowerThatFailsCostsNoHold"},
	},
	{
		Name: "a grant does not require a fresh lease", Origin: "etcd's lock returned without checking its own lease",
		Edits: []Edit{{"internal/queue/proof.go", "for isEnough := wa.Sess.Lease.IsAmple; !isEnough(); isEnough = wa.Sess.Lease.Fresh {", "for isEnough := wa.Sess.Lease.IsAmple; !isEnough() && wa.Sess.IsOver(); {"}, {"internal/queue/proof.go", "return !wa.isUnseen() && wa.Sess.Lease.Fresh() && ", "return !wa.isUnseen() && "}},
		Test:  Test{"internal/evidence/promises", "TestAGrantOnStaleEvidenceIsConfirmedByTheQuorum"},
	},
	{
		Name: "holders do not watch their own nodes", Origin: "Curator, kazoo, go-zookeeper",
		Edits: []Edit{{"internal/queue/selfwatch.go", `	sw.engine.Watches.AddTo(b, sw.node.Path()).AwaitAnswer(sw)
`, ``}, {"internal/queue/selfwatch.go", `	return v != nil && !sw.node.IsGone() && v.Latest().IsCurrent()
`, `	return v == nil
`}, {"internal/queue/selfwatch.go", `	n := sw.node
`, `	n := sw.node
	if sw != nil {
		return nil
	}
`}},
	},
	{
		Name: "the clean-up stops when the caller's context is done", Origin: "etcd, Vitess, CURATOR-45",
		Edits: []Edit{{"internal/queue/turn.go", "\toutcomes := wa.abandon()\n", "\tvar outcomes []<-chan error\n\tif ctx.Err() == nil {\n\t\toutcomes = wa.abandon()\n\t}\n"}},
	},
	{
		Name: "a failed delete is not repeated", Origin: "go-zookeeper's Lock after an error, CURATOR-315",
		Edits: []Edit{{"internal/queue/delete.go", "case outcome.IsRefusal(err) || ctx.Err() != nil:", "default:"}},
	},
	{
		Name: "a try that fails leaves its node", Origin: "kazoo #732",
		Edits: []Edit{{"internal/queue/turn.go", "\toutcomes := wa.abandon()\n", "\tvar outcomes []<-chan error\n\tif !errors.Is(err, outcome.ErrLocked) {\n\t\toutcomes = wa.abandon()\n\t}\n"}},
	},
	{
		Name: "an acquire fails if its directory was deleted", Origin: "CURATOR-724, kazoo #563",
		Edits: []Edit{{"internal/queue/position.go", "err = wa.engine.Directories.MakeDir(ctx, s, wa.Dir, wa.recipe.depth())", "err = a.err"}},
	},
	{
		Name: "a waiter whose session ended does not queue again", Origin: "CURATOR-518, twitter-commons #20",
		Edits: []Edit{{"internal/queue/turn.go", "if !errors.Is(err, outcome.ErrSessionOver) && !errors.Is(err, outcome.ErrGone) {", "if ctx.Err() != nil || !errors.Is(err, outcome.ErrGone) {"}},
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
		Name: "the deadline of the acquire ends the hold", Origin: "Vitess #11794, etcd",
		Edits: []Edit{{"recipe.go", "h := c.hold(ctx, w.recipe, w.path, granted)\n", "h := c.hold(ctx, w.recipe, w.path, granted)\n\tcontext.AfterFunc(ctx, func() { h.holding().cancel(context.Cause(ctx)) })\n"}},
	},
	{
		Name: "an exists watch is set on a missing node", Origin: "go-zookeeper keeps it forever",
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
		Edits: []Edit{{"holding.go", "if ho.levels > 0 {", "if ho.levels > 100 {"}},
		Focus: "reentrant",
	},
	{
		Name: "entering a lost lock again succeeds", Origin: "Curator increments the count in any case",
		Edits: []Edit{{"reentrant.go", "case cause != nil:", "case cause == context.Canceled:"}},
		Test:  Test{"internal/evidence/promises", "TestEnteringALostHoldFails"},
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
		Name: "a downgrade deletes the writer's node", Origin: "Curator before CURATOR-621",
		Edits: []Edit{{"rwmutex.go", `	o.Shared = true
	g.downgraded.Store(true)
	return h.rewrite(ctx, o.Encode())`, `	o.Shared = true
	return h.holding().engine.Requests.Delete(ctx, h.holding().nodes[0].Sess, h.holding().nodes[0].Path(), -1)`}},
		Focus: "rw",
	},
	{
		Name: "the gap before a touch is measured at the time of its request", Origin: "time passes while the reply is on its way",
		Edits: []Edit{{"internal/lease/lease.go", "if r.l.leftOf(r.heard, got) <= 0 {", "if r.l.leftOf(r.heard, sent) <= 0 {"}},
		Test:  Test{"internal/lease", "TestATouchWhoseAnswerComesWhenTheLastRanOutBeginsARun"},
	},
	{
		Name: "an unknown tick is treated as zero", Origin: "half of zero is used",
		Edits: []Edit{{"internal/lease/lease.go", "if t.Assumed || t.Largest == 0 {", "if t.Largest < 0 {"}},
		Test:  Test{"internal/lease", "TestATickThatIsNotKnownIsTakenForHalfTheTimeout"},
	},
	{
		Name: "the permits of one acquire are created one after the other", Origin: "Curator's semaphore, our first version",
		Edits: []Edit{
			{"internal/queue/batch.go", "\t\tops = append(ops, co.creationOf(x, data))\n\t}\n\tcreated :=", `		if x == &co.member {
			ops = append(ops, co.creationOf(x, data))
			continue
		}
		path, _ := co.engine.Requests.Create(co.engine.Requests.Life, co.Sess, co.nameless(x), data, zk.FlagEphemeralSequential, co.engine.Directories.ACL)
		x.Name = node.BaseName(path)
	}
	created :=`},
			{"internal/queue/batch.go", "\t\tmembers := co.members()\n", "\t\tmembers := []*member{&co.member}\n"},
		},
		Test: Test{"internal/evidence/promises", "TestPermitsAreAcquiredAndReleasedTogether"},
	},
	{
		Name: "the permits of a failed acquire remain", Origin: "CURATOR-315, CURATOR-335",
		Edits: []Edit{{"internal/queue/turn.go", "\t\ten.discard(ctx, err, wa)\n\t\tif ctx.Err() != nil {", "\t\tif wa == nil || !wa.recipe.limited {\n\t\t\ten.discard(ctx, err, wa)\n\t\t}\n\t\tif ctx.Err() != nil {"}},
		Focus: "semaphore",
	},
	{
		Name: "the queue node of a caller that has its permits remains", Origin: "CURATOR-462",
		Edits: []Edit{{"internal/queue/permits.go", "defer pe.Engine.remove(queueNode.contender)", "defer pe.Engine.Heart.Unkeep(&queueNode.OwnNode)"}},
		Focus: "semaphore",
	},
	{
		Name: "a waiter uses the number of permits that it was created with", Origin: "Curator's semaphore trusts each caller",
		Edits: []Edit{{"internal/queue/permits.go", "session.Again(ctx, func() (int, error) { return pe.limitThat(ctx, made.Sess, enough) })", "pe.Total, enough(pe.Total)"}},
		Focus: "semaphore",
	},
	{
		Name: "a resize fails if a third party deletes the node that keeps the directory", Origin: "our first version",
		Edits: []Edit{{"internal/queue/permits.go", "\t\treturn zk.ErrNoNode // as if it were deleted after that\n", "\t\treturn err\n"}},
		Test:  Test{"internal/queue", "TestANumberIsStoredThoughTheNodeThatKeepsTheDirectoryIsDeleted"},
		Focus: "semaphore", Faults: "delete|parents",
	},
	{
		Name: "a lock of AtMost waits behind one contender more than its bound", Origin: "an easy mistake",
		Edits: []Edit{{"recipe.go", "if ahead > b.most {", "if ahead > b.most+1 {"}},
		Test:  Test{"internal/evidence/promises", "TestALockDoesNotWaitBehindMoreContendersThanItsBound"},
	},
	{
		Name: "a lock of AtMost is refused behind as many contenders as its bound", Origin: "an easy mistake",
		Edits: []Edit{{"recipe.go", "if ahead > b.most {", "if ahead >= b.most && ahead > 0 {"}},
	},
	{
		Name: "a caller that has its permits counts for AtMost as one that waits", Origin: "our first version",
		Edits: []Edit{{"internal/queue/permits.go", "callersOf(held)[node.GroupOf(ahead[0].Name)] {", "len(ahead) < 0 {"}},
		Test:  Test{"internal/evidence/promises", "TestTheBoundOfASemaphoreDoesNotCountACallerThatHasItsPermits"},
	},
	{
		Name: "LockAll acquires the locks in the caller's order", Origin: "Curator's multi lock",
		Edits: []Edit{{"lockall.go", "ordered = slices.SortedFunc(slices.Values(lockers), comparePaths)", "ordered = slices.Clone(lockers)"}},
		Focus: "mutex",
	},
	{
		Name: "LockAll keeps the other locks if one fails", Origin: "Curator's multi lock continues",
		Edits: []Edit{{"lockall.go", "h.unlock(ctx) // if", "h // if"}},
		Focus: "mutex",
	},
	{
		Name: "a heartbeat waits for the reply to the previous one", Origin: "with slow replies, each proves too late what the last one has touched",
		Edits: []Edit{{"internal/lease/schedule.go", "\tfirst, period :=", "\tfor _, b := range r.beats {\n\t\tif b.steps < upstream {\n\t\t\treturn\n\t\t}\n\t}\n\tfirst, period :="}},
		Test:  Test{"internal/evidence/promises", "TestAHoldFarFromItsServersIsCertainAllTheTime"},
	},
	{
		Name: "a request for a new session contains the last zxid of the old one", Origin: "go-zookeeper: an ensemble that was restored from a backup refuses it forever",
		Edits: []Edit{{"internal/conn/handshake.go", "return frames.NewSessionRequest(p)", "return p"}},
		Test:  Test{"internal/evidence/promises", "TestAClientReconnectsToAnEnsembleWithEarlierTransactions"},
	},
	{
		Name: "any write into a node counts as a request to release", Origin: "some clients notice Curator's Revoker by any write",
		Edits: []Edit{{"internal/session/ownnode.go", "\tif !node.IsRevocation(d.Data) {", "\tif len(d.Data) == 0 {"}},
	},
	{
		Name: "a client that holds nothing does not leave a silent server", Origin: "it waited as long as the client library does",
		Edits: []Edit{{"internal/session/heartbeat.go", "\treturn b.requests.leaveIfSilent", "\tif !b.kept.isAny(b.s) {\n\t\treturn never\n\t}\n\treturn b.requests.leaveIfSilent"}},
		Test:  Test{"internal/evidence/promises", "TestALockRequestedFromASilentServerIsGrantedByAnother"},
	},
	{
		Name: "the interval of heartbeats does not consider how long replies take", Origin: "our first version: with a timeout of two ticks, 0.335 of it remained",
		Edits: []Edit{{"internal/lease/schedule.go", "l.room(min(distance, l.near()))", "l.room(0)"}},
		Test:  Test{"internal/lease", "TestHeartbeatsKeepFourTenthsCertain"},
	},
	{
		Name: "a heartbeat starts with two reads although a sync is due", Origin: "our first version: 91 requests a minute instead of 68",
		Edits: []Edit{{"internal/lease/schedule.go", "if next.Step == Sync &&", "if next.Step == Sync && r == nil &&"}},
		Test:  Test{"internal/evidence/promises", "TestOnlyHoldersAndTheNextInLineAskTheQuorum"},
	},
	{
		Name: "heartbeats that assumed another tick remain valid", Origin: "found by reading the code: SetTick kept them",
		Edits: []Edit{{"internal/lease/lease.go", "= nil, Instant{}, Instant{}, time.Time{}", "= l.run.beats, Instant{}, Instant{}, time.Time{}"}},
		Test:  Test{"internal/lease", "TestHeartbeatsThatAssumedAnotherTickProveNothing"},
	},
	{
		Name: "a grant does not consider how long the transaction under way takes", Origin: "our first version: 0.397 remained with round trips of 300 ms",
		Edits: []Edit{{"internal/lease/schedule.go", "now)-wait >= l.timeout*2/5", "now)-0*wait >= l.timeout*2/5"}},
		Test:  Test{"internal/lease", "TestALeaseIsAmpleWithTwoFifthsLeft"},
	},
	{
		Name: "a transaction proves the touch that it was sent for, even if it failed", Origin: "the sender is trusted instead of the reply",
		Edits: []Edit{{"internal/lease/schedule.go", "\tk.pending--\n", "\tk.pending--\n\tif a, ok := req.aim.(proof); ok {\n\t\tl.prove(a.touch, l.halfTick())\n\t}\n"}},
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
		Edits: []Edit{{"internal/lease/lease.go", "l.timeout*548/1000", "l.timeout*748/1000"}},
		Test:  Test{"internal/evidence/promises", "TestAWarmHoldHasFourTenthsOfTheTimeoutLeftAtEveryMoment"},
	},
	{
		Name: "the tick is limited to a quarter of the timeout", Origin: "our first version",
		Edits: []Edit{{"internal/lease/lease.go", "\treturn t.Largest / 2\n", "\treturn min(t.Largest, timeout/4) / 2\n"}},
		Test:  Test{"internal/evidence/promises", "TestATickTimeAppliesToAnExistingConnection"},
	},
	{
		Name: "an event that arrives before the reply to its watch is ignored", Origin: "go-zookeeper registers a watch only when the reply arrives",
		Edits: []Edit{{"internal/session/view.go", "case w.view.State == Requested:\n\t\tw.state = saw\n", ""}},
		Test:  Test{"internal/session", "TestAChangeBeforeTheReplyIsNotLost"},
	},
	{
		Name: "a value that was refused counts as the holder's", Origin: "planted by hand: it is written when Curator's Revoker overwrites the data",
		Edits: []Edit{{"hold.go", "\t\t\town.SetOwnData(before)\n", ""}, {"hold.go", "before := own.SetOwnData(value)", "own.SetOwnData(value)"}},
		Test:  Test{"internal/evidence/promises", "TestARefusedProclaimIsNotTheValueThatIsRestored"},
	},
	{
		Name: "a latch's value can be written through another kind of election", Origin: "our first version: Curator's latches took the event for their turn",
		Edits: []Edit{{"election.go", " && g.nodes[0].Fixed == e.recipe().Fixed", ""}},
		Test:  Test{"internal/evidence/promises", "TestALatchsDataIsNotWrittenByAnotherKindOfElection"},
	},
	{
		Name: "a hold's timer is trusted until the lease expires", Origin: "our first version: timers do not run while a machine sleeps",
		Edits: []Edit{{"internal/lease/lease.go", "{ return max(l.Term()/20, time.Millisecond) }", "{ return l.Term() }"}},
		Test:  Test{"internal/evidence/promises", "TestAMachineThatWakesUpWithoutANetworkNoticesTheLossSoon"},
	},
	{
		Name: "a failed heartbeat is repeated until one is answered", Origin: "our first version: four at once",
		Edits: []Edit{{"internal/lease/schedule.go", "c.Step != Nothing || k.failed > 0 && k.pending > 0:", "c.Step != Nothing:"}},
		Test:  Test{"internal/evidence/promises", "TestAHeartbeatThatWasThrottledIsRepeatedOnce"},
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
		Name: "the number of a client's nodes is not limited", Origin: "our first version: its crash stopped ZooKeeper for good",
		Edits: []Edit{{"internal/queue/quota.go", "s.Own(n, MaxOwned)", "s.Own(n, 100*MaxOwned)"}},
		Test:  Test{"internal/evidence/promises", "TestAllNodesOfAClientCanEndInOneTransaction"},
	},
	{
		Name: "a member with shards looks at the others once", Origin: "almost our version: a watch fires once",
		Edits: []Edit{{"shards/tenure.go", "\t_, err = list.Await(ctx, nil)\n\treturn err", "\t<-ctx.Done()\n\treturn list.Err"}},
		Focus: "shards", Faults: "crash|expire",
	},
	{
		Name: "a member may have two shards more than another", Origin: "a bound of the load only from above, as in our first trial",
		Edits: []Edit{{"shards/assign.go", "if room[i] < 0 || room[i] == 0 && !spare {", "if room[i] < -1 {"}},
		Focus: "shards", Faults: "crash|expire",
	},
	{
		Name: "a shard that moves is released before its work has returned", Origin: "consumer groups that rebalance eagerly",
		Edits: []Edit{{"shards/tenure.go", "if grace == 0 {", "if grace < 0 {"}},
		Test:  Test{"internal/evidence/promises", "TestAShardThatMovesIsFinishedFirst"},
	},
	{
		Name: "a member gives up its leadership for a preferred one without a limit", Origin: "preferred leaders by hand: two members that exchange the leadership forever",
		Edits: []Edit{{"terms.go", "time.Since(r.ceded) < r.minTerm()", "time.Since(r.ceded) < 0"}, {"terms.go", "session.Sleep(ctx, r.minTerm())", ""}},
		Test:  Test{"internal/evidence/promises", "TestAPreferredMemberThatComesAndGoesCostsFewTerms"},
	},
	{
		Name: "a leader does not see who joins", Origin: "client-go#587: a preference that counts only at the campaign",
		Edits: []Edit{{"terms.go", "for ctx.Err() == nil {\n\t\tv, preferred, err := r.look(ctx, hold)", "for ctx.Err() != nil {\n\t\tv, preferred, err := r.look(ctx, hold)"}},
		Test:  Test{"internal/evidence/promises", "TestAPreferredMemberThatJoinsLeads"},
	},
	{
		Name: "a run of a schedule begins after the next one is due", Origin: "our adapter for robfig/cron: 96 runs were made up after a night",
		Edits: []Edit{{"slots/scheduled.go", "if next := j.schedule.Next(due); !next.IsZero() {", "if next := j.schedule.Next(due); next.IsZero() {"}},
		Test:  Test{"internal/evidence/promises", "TestAfterAnOutageTheNewestRunIsDoneOnce"},
	},
	{
		Name: "the tick of the client that attached last counts", Origin: "our version before: two holders for up to 481 ms",
		Edits: []Edit{{"internal/conn/link.go", "tick = tick.With(lease.TickOf(set))", "tick = lease.TickOf(set)"}, {"internal/conn/link.go", "l.counts = l.counts.With(lease.TickOf(set))", "l.counts = lease.TickOf(set)"}},
		Test:  Test{"internal/evidence/promises", "TestTheLongestTickOfAConnectionsClientsCounts"},
	},
	{
		Name: "a proof that joins one with a shorter tick counts as one with the longer", Origin: "nearly our version: the first client's tick can be too short",
		Edits: []Edit{{"internal/lease/lease.go", "r.prove(touch, min(half, r.l.under))", "r.prove(touch, half)"}},
		Test:  Test{"internal/lease", "TestALongerTickIsProvenBySettledRunsOnly"},
	},
	// The following are wake-ups that are missed only if another goroutine runs between two statements.
	{
		Name: "a request looks whether it can be sent, and then begins to wait for a change", Origin: "design: it hangs until the next change",
		Edits: []Edit{{"internal/conn/carried.go", "ready, over, changed := l.carried.Load() == s, l.session != s || s.IsOver(), l.changed\n\t\tl.mu.Unlock()\n",
			"ready, over := l.carried.Load() == s, l.session != s || s.IsOver()\n\t\tl.mu.Unlock()\n\t\t_, changed := l.State()\n"}},
		Test: Test{"internal/conn", "TestNoWakeUpIsMissedByARequestThatWaitsForAConnection"}, Yields: 40,
	},
	{
		Name: "a request looks for room, and then joins the others that wait for some", Origin: "design: it hangs until another request is answered",
		Edits: []Edit{{"internal/conn/window.go", "if w.take(size) {\n\t\treturn nil\n\t}\n\twaits :=", "if w.take(size) {\n\t\treturn nil\n\t}\n\tw.mu.Unlock()\n\tw.mu.Lock()\n\twaits :="}},
		Test:  Test{"internal/conn", "TestNoWakeUpIsMissedByARequestThatWaitsForRoom"}, Yields: 40,
	},
	{
		Name: "a hold looks whether its node is gone, and then registers", Origin: "design: the hold does not end",
		Edits: []Edit{{"internal/session/ownnode.go", "\tn.onGone = fn\n\tgone := n.ending\n", "\tgone := n.ending\n\tn.mu.Unlock()\n\tn.mu.Lock()\n\tn.onGone = fn\n"}},
		Test:  Test{"internal/session", "TestNoWakeUpIsMissedByAHoldWhoseNodeIsGone"}, Yields: 40,
	},
	{
		Name: "a revocation looks whether it was made, and then is forwarded", Origin: "design: the holder does not hear of it",
		Edits: []Edit{{"internal/session/ownnode.go", "\tr.mu.Lock()\n\tr.also = append(r.also, to)\n\tr.mu.Unlock()\n\tif r.Requested.IsSet() {\n", "\tmade := r.Requested.IsSet()\n\tr.mu.Lock()\n\tr.also = append(r.also, to)\n\tr.mu.Unlock()\n\tif made {\n"}},
		Test:  Test{"internal/session", "TestNoWakeUpIsMissedByARevocationThatIsForwarded"}, Yields: 40,
	},
	{
		Name: "a latch is looked at before its lock is taken", Origin: "design: the waiter waits forever",
		Edits: []Edit{{"internal/session/latch.go", "func (l *Latch) Done() <-chan struct{} {\n\tl.mu.Lock()\n\tdefer l.mu.Unlock()\n\tif l.happened.Load() {\n\t\treturn happened\n\t}\n", "func (l *Latch) Done() <-chan struct{} {\n\tif l.happened.Load() {\n\t\treturn happened\n\t}\n\tl.mu.Lock()\n\tdefer l.mu.Unlock()\n"}},
		Test:  Test{"internal/session", "TestNoWakeUpIsMissedByAWaiterForALatch"}, Yields: 40,
	},
	{
		Name: "a watch is looked at, and then gets an owner", Origin: "design: the owner does not hear of its node",
		Edits: []Edit{{"internal/session/view.go", "\tif w.state == Changed || w.state == Gone {\n\t\treturn w.state\n\t}\n\tw.owner = o\n", "\tif w.state == Changed || w.state == Gone {\n\t\treturn w.state\n\t}\n\tw.mu.Unlock()\n\tw.mu.Lock()\n\tw.owner = o\n"}},
		Test:  Test{"internal/session", "TestNoWakeUpIsMissedByTheOwnerOfAWatch"}, Yields: 40,
	},
	{
		Name: "the goroutine that sets watches again waits for the next connection when it begins to run", Origin: "design: a waiter waits forever after a reconnect before that",
		Edits: []Edit{{"internal/session/watch.go", "\tagain := s.Reattached()\n\t// Owned", "\t// Owned"},
			{"internal/session/watch.go", "{ wt.keepAll(s, again) }", "{ wt.keepAll(s, s.Reattached()) }"}},
		Test: Test{"internal/session", "TestNoWakeUpIsMissedByTheWatchesOfALostConnection"}, Yields: 100,
	},
	{
		Name: "a cohort's queue is woken before the place is free", Origin: "design: it rests, and the next goroutine waits forever",
		Edits: []Edit{{"localqueue.go", "\tp.free()\n\tq.changed(p)\n\tp.report(observe.Released", "\tq.changed(p)\n\tp.free()\n\tp.report(observe.Released"}},
		Test:  Test{"internal/evidence/promises", "TestNoWakeUpIsMissedInAnyQueue"}, Yields: 40,
	},
}
