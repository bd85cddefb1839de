// Package zktest is a ZooKeeper server in process. It speaks the real wire
// protocol to any client, over loopback or over net.Pipe inside a
// testing/synctest bubble, where an hour of timeouts takes milliseconds, and it
// has faults on command. It needs nothing but the standard library.
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
// with a table and with random request sequences.
//
//	create create2 delete exists getData     as ZooKeeper: order of checks, zxids,
//	setData getACL setACL getChildren        stats, sequence numbers, watches
//	getChildren2 sync ping check multi
//	multiRead closeSession
//	createContainer createTTL                with their reaper; TTL nodes are allowed
//	deleteContainer                          as sent by ZooKeeper itself
//	setWatches setWatches2 addWatch          persistent and recursive watches too; one
//	checkWatches removeWatches               path can have several modes, as from 3.9 on
//	getEphemerals getAllChildrenNumber       yes
//	whoAmI                                   yes
//	auth                                     world, auth, digest, ip; others are refused
//	reconfig                                 answered as disabled
//	sessions                                 2..20 ticks, expiry in tick buckets and never
//	                                         early, re-attach by password, SessionMoved
//	four-letter words                        ruok srvr stat mntr wchs wchc wchp cons conf
//	                                         envi dump dirs isro srst crst; latencies are 0
//	ensembles                                replicas, quorum, stale and lagging followers,
//	                                         elections with epochs
//
// # What is not
//
//	sasl, TLS, read-only mode, observers     not served
//	quotas, request throttling, audit        not served
//	local sessions, reconfig                 not served
//	disk                                     nothing is stored; a "restart" keeps memory
//	uncommitted proposals                    those a deposed leader had are always lost
//	the sync of a new follower               takes no time
//
// A body that cannot be decoded is answered with a marshalling error, as
// ZooKeeper does; a frame that is too long, of negative length or without a
// header closes its connection.
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
// that trust their connection go wrong.
package zktest
