// Package zktest is a ZooKeeper server in process. It speaks the real wire
// protocol to any client, over loopback or in memory inside a
// testing/synctest bubble, where an hour of timeouts takes milliseconds. It has faults on
// command. It needs nothing but the standard library.
//
//	func TestMine(t *testing.T) {
//		srv := zktest.Run(t) // listens on loopback, ends with the test
//		conn, _, err := zk.Connect([]string{srv.Addr()}, 4*time.Second)
//		...
//	}
//
// In a bubble, where a real socket would stop the clock, it is Start and Dial:
//
//	synctest.Test(t, func(t *testing.T) {
//		srv := zktest.Start(t, zktest.Options{Servers: 3})
//		conn, _, err := zk.Connect(srv.Addrs(), 4*time.Second, zk.WithDialer(srv.Dial))
//		...
//	})
//
// A server made in a bubble belongs to it: every call must come from inside. The
// client must be closed before the bubble ends; the server closes itself.
//
// # What is served
//
// The rules are those of ZooKeeper 3.8, against which the package is compared
// with a table and with random request sequences. Options.Flavor has those of 3.9
// where the wire differs, and the habits of a server of another make.
//
//	create create2 delete exists getData     as ZooKeeper: order of checks, zxids,
//	setData getACL setACL getChildren        stats, sequence numbers, watches
//	getChildren2 sync ping check multi
//	multiRead closeSession
//	createContainer createTTL                with their reaper; TTL nodes are allowed unless
//	                                         Options.NoTTL says otherwise
//	deleteContainer                          as sent by ZooKeeper itself
//	setWatches setWatches2 addWatch          persistent and recursive watches too; one
//	checkWatches removeWatches               path can have several modes, as from 3.9 on;
//	                                         events are withheld from those without READ
//	getEphemerals getAllChildrenNumber       yes
//	whoAmI                                   yes
//	auth                                     world, auth, digest, ip, and Options.Super;
//	                                         others are refused
//	sasl                                     DIGEST-MD5, for the users of Options.SASL;
//	                                         required of all with Options.RequireSASL
//	reconfig                                 answered as disabled
//	sessions                                 2..20 ticks or as set, expiry in tick buckets,
//	                                         a whole one at a time, and never early;
//	                                         re-attach by password, SessionMoved
//	four-letter words                        ruok srvr stat mntr wchs wchc wchp cons conf
//	                                         envi dump dirs isro srst crst; latencies are 0
//	ensembles                                replicas, quorum, stale and lagging followers,
//	                                         elections with epochs; Options.Observers
//
// # What is not
//
//	read-only mode                           not served, as by default: without a quorum there is
//	                                         no session, also for a client that would be content
//	quotas                                   a create below /zookeeper/quota is refused with
//	                                         CodeUnimplemented
//	TLS                                      by the listener: Member.Listen with tls.Listen
//	request throttling, audit                not served
//	local sessions, reconfig                 not served
//	disk                                     nothing is stored; a "restart" keeps memory;
//	                                         Dump and Restore carry the data elsewhere
//	uncommitted proposals                    those that a leader without a quorum has logged are
//	                                         committed if it is the next leader too, and lost if
//	                                         another is; followers log none
//	the sync of a new follower               takes no time
//
// A body that cannot be decoded is answered with a marshalling error, as
// ZooKeeper does; a frame that is too long, of negative length or without a
// header closes its connection.
//
// A connection must ask for a session within ten seconds. One that sends
// requests and does not read the answers is not read from after a megabyte of
// them, nor one with a thousand requests that wait for the quorum.
//
// # For tests of your own
//
//	data          PutNode; Apply for access lists, containers, TTLs, the ephemerals
//	              of a session, several writes in one transaction; DeleteNodes
//	a whole tree  Dump, Restore; as JSON too
//	waiting       WaitNode, WaitGone, WaitWatches
//	looking       Tree, Node, Children, Sessions, Ephemerals, Watches, Requests, OnTxn
//	time          FastForward outside a bubble, time.Sleep in one
//	network       Listen, Member.Listen, Dial, DialFrom; Options.Latency, LatencyOf
//	one request   Next fails, delays or loses the next n of a type; Intercept decides
//	              about each
//	faults        Partition, DropConnections, ExpireSession, Restart, Restore, Wipe,
//	              ElectLeader; Member's CutOff, Freeze, Lag, Stop, Refuse,
//	              DelayStreams, CutStreams, HoldForwards
//
// # The ensemble
//
// Each member has a replica, connections and watches of its own. The leader
// orders all writes and commits them while a quorum is in touch with it. A
// write through a follower is answered when that follower has applied it; reads
// are answered from the replica at hand. What a follower's clients do keeps
// their sessions alive only through the follower's answers to the leader's
// pings, every half tick. So a follower that is cut off goes on answering
// pings and reads, with old data, for SyncLimit ticks, while the leader expires
// its clients' sessions: that is what a real ensemble does, and where clients
// that trust their connection go wrong. A member that serves nobody, for want of a
// quorum or while one is elected, accepts connections, and closes each when it has
// read the connect request. Only one that is stopped refuses them.
//
// A follower takes a commit for the answer to the first request that waits there, if it
// has the same session and number. A client that begins to count anew on each connection
// may get the outcome of an earlier request.
//
// A follower and its leader talk over two streams, one each way. Commits, PINGs
// and the answers to syncs come down in the order they were sent; writes, syncs
// and the answers to PINGs go up. A PING that is late (DelayStreams) brings the
// touches late, and a write overtakes them; when the way up breaks (CutStreams)
// after the write was sent, the leader never hears of the touches, and the write
// was committed all the same. On the leader itself every packet but an auth
// touches its session at once. It drops what comes from a session that it has
// begun to close.
package zktest
