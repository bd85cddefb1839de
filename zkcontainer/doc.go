// Package zkcontainer runs ZooKeeper servers in containers for a test, one or an
// ensemble, and breaks them on request.
//
//	func TestMine(t *testing.T) {
//		z := zkcontainer.Run(t.Context(), t) // answers requests, ends with the test
//		conn, _, err := zk.Connect(z.Addrs(), 4*time.Second)
//		...
//	}
//
// RunEnsemble starts several servers on a network of their own. Both skip the
// test where no container engine answers or no image can be had, unless
// ZKCONTAINER_REQUIRE or CI is set: then they fail it. When a test fails, the
// last lines of each server's log are in its output.
//
// The image is that of Options, or the one that ZKCONTAINER_IMAGE names, or the
// official one, zookeeper:3.9. Where no registry gives that one, an image is used
// that integration/image/build of this repository has made of Debian's packages.
//
// # Faults
//
// A Member's methods kill it, pause it, cut it from its peers and make its link
// slow. Cuts and slow links need iptables and tc, from the server's image or from
// the one that Options.Tools names; the official image has neither.
//
// Partition cuts a client from all servers, and SlowClient slows its link down:
// that is done in this process, for connections that DialFrom has made, and needs
// no tools.
//
// # The same test in process and on containers
//
// Test runs a body on a Backend: in virtual time on zktest, in process over
// loopback, or on containers, as ZKCONTAINER_BACKEND says ("virtual", "process",
// "container"; virtual time if it is not set).
//
// # Clean-up
//
// What a test starts ends with it. What a process leaves behind that dies before
// is removed by a copy of the test binary that outlives it: no image is needed for
// that, in particular not testcontainers' Ryuk. The package therefore sets
// TESTCONTAINERS_RYUK_DISABLED for its own process, if it is not set.
package zkcontainer
