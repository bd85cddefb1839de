// SPDX-License-Identifier: Apache-2.0

// Package zktest implements an in-process ZooKeeper server for tests. It speaks the
// real wire protocol to any client, over loopback or in memory inside a
// testing/synctest bubble, where an hour of timeouts takes milliseconds. Tests can
// inject faults. The package uses only the standard library.
//
//	func TestMine(t *testing.T) {
//		srv := zktest.Run(t) // listens on loopback, ends with the test
//		conn, _, err := zk.Connect([]string{srv.Addr()}, 4*time.Second)
//		...
//	}
//
// In a bubble, where a real socket would stop the clock, use Start and Dial:
//
//	synctest.Test(t, func(t *testing.T) {
//		srv := zktest.Start(t, zktest.Options{Servers: 3})
//		conn, _, err := zk.Connect(srv.Addrs(), 4*time.Second, zk.WithDialer(srv.Dial))
//		...
//	})
//
// A server created in a bubble belongs to it: every call must come from inside. The
// client must be closed before the bubble ends; the server closes itself.
//
// # Supported
//
// The server follows the rules of ZooKeeper 3.8. It is compared with ZooKeeper 3.8 by
// a table of cases and by random request sequences. Options.Flavor selects the rules of
// 3.9 where they differ on the wire, or the behavior of ClickHouse Keeper.
//
//	create create2 delete exists getData     like ZooKeeper: order of checks, zxids,
//	setData getACL setACL getChildren        stats, sequence numbers, watches
//	getChildren2 sync ping check multi
//	multiRead closeSession
//	createContainer createTTL                including the reaper; TTL nodes are allowed
//	deleteContainer                          in the form that ZooKeeper itself sends
//	setWatches setWatches2 addWatch          including persistent and recursive watches; a
//	checkWatches removeWatches               path can have several modes, as from 3.9 on;
//	                                         events are withheld from clients without READ
//	getEphemerals getAllChildrenNumber       yes
//	whoAmI                                   yes
//	auth                                     world, auth, digest, ip, and Options.Super;
//	                                         other schemes are rejected
//	sasl                                     DIGEST-MD5, for the users of Options.SASL;
//	                                         mandatory with Options.RequireSASL
//	reconfig                                 replies that it is disabled
//	sessions                                 2 to 20 ticks or as configured; they expire in
//	                                         tick buckets, a whole bucket at a time, and never
//	                                         early; re-attach by password, SessionMoved
//	four-letter words                        ruok srvr stat mntr wchs wchc wchp cons conf
//	                                         envi dump dirs isro srst crst; latencies are 0
//	ensembles                                replicas, quorum, stale and lagging followers,
//	                                         elections with epochs; Options.Observers
//
// # Not supported
//
//	read-only mode                           not supported, as in ZooKeeper's default
//	                                         configuration: without a quorum no client gets a
//	                                         session, even one that accepts read-only mode
//	quotas                                   a create below /zookeeper/quota fails with
//	                                         CodeUnimplemented
//	TLS                                      only through a listener: pass tls.Listen to
//	                                         Member.Listen
//	request throttling, audit                not supported
//	local sessions, reconfig                 not supported
//	disk                                     nothing is stored; a "restart" keeps the data in
//	                                         memory; Dump and Restore move it elsewhere
//	uncommitted proposals                    those that a leader without a quorum has logged are
//	                                         committed if it is also the next leader, and lost
//	                                         if another member is; followers log none
//	the sync of a new follower               takes no time
//
// The server replies to a body that it cannot decode with a marshalling error, as
// ZooKeeper does. It closes the connection on a frame that is too long, has a negative
// length or has no header.
//
// A connection must request a session within ten seconds. If a client sends requests
// without reading the replies, the server stops reading from it once a megabyte of
// replies is unsent, or a thousand requests wait for the quorum.
//
// # Helpers for your own tests
//
//	data          PutNode; Apply for ACLs, containers, TTLs, a session's ephemeral
//	              nodes, several writes in one transaction; DeleteNodes
//	a whole tree  Dump, Restore; also as JSON
//	waiting       WaitNode, WaitGone, WaitWatches
//	inspection    Tree, Node, Children, Sessions, Ephemerals, Watches, Requests, OnTxn
//	time          FastForward outside a bubble, time.Sleep in one
//	network       Listen, Member.Listen, Dial, DialFrom; Options.Latency
//	one request   Next fails, delays or loses the next n requests of a type; Intercept
//	              decides about each request
//	faults        Partition, DropConnections, ExpireSession, Restart, Restore, Wipe,
//	              ElectLeader; Member's CutOff, Freeze, Lag, Stop, Refuse
//
// # The ensemble
//
// Each member has its own replica, connections and watches. The leader orders all
// writes, and commits them while it is in contact with a quorum. A write through a
// follower is answered once that follower has applied it. Reads are answered from the
// member's own replica.
//
// Activity of a follower's clients keeps their sessions alive only through the
// follower's replies to the leader's PINGs, which are sent every half tick. A follower
// that is cut off therefore keeps answering pings and reads, with old data, for
// SyncLimit ticks, while the leader expires its clients' sessions. A real ensemble does
// the same, and clients that trust their connection break in this case.
//
// A member that serves no clients, because it has no quorum or because an election is in
// progress, accepts connections and closes each one after reading the connect request.
// Only a stopped member refuses connections.
//
// A follower matches a commit with the first request that is waiting there by session and
// xid only. A client that restarts its xids on each connection may therefore get the
// outcome of an earlier request.
//
// A follower and its leader communicate over two streams, one in each direction. Commits,
// PINGs and replies to syncs come down in the order in which they were sent; writes, syncs
// and replies to PINGs go up. If a PING is late, the touches are late too,
// and a write can overtake them. If the upward stream breaks after a write was
// sent, the leader never receives the touches, but the write is still committed. On the
// leader itself, every packet except auth touches its session at once. The leader drops
// packets from a session that it has started to close.
package zktest
