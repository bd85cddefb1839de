// SPDX-License-Identifier: Apache-2.0

// Package zkcontainer runs ZooKeeper servers in containers for tests, as a single
// server or an ensemble, and injects faults.
//
//	func TestMine(t *testing.T) {
//		z := zkcontainer.RunEnsemble(t.Context(), t, 1) // serves requests, ends with the test
//		conn, _, err := zk.Connect(z.Addrs(), 4*time.Second)
//		...
//	}
//
// RunEnsemble starts one or more servers on their own network. If no container engine
// answers or no image is available, it skips the test. If ZKCONTAINER_REQUIRE or CI is
// set, it fails the test instead. When a test fails, its output contains the last lines
// of each server's log.
//
// Run starts a single server in the form of testcontainers' modules, for a program that
// starts its other containers in that form.
//
// The image is Options.Image, or the one named by ZKCONTAINER_IMAGE. Otherwise the
// package uses the official image, zookeeper:3.9, if it is on this machine; then one
// that integration/image/build of this repository has built from Debian's packages;
// and otherwise it pulls the official image.
//
// # Faults
//
// A Member's methods stop it, freeze it, cut it off from its peers and make its link
// slow. Cuts and slow links need iptables and tc, from the server's image or from
// Options.Tools; the official image has neither.
//
// Partition cuts a client off from all servers, and SlowClient makes its link slow.
// This happens in the test's process, for connections made with DialFrom, and needs
// no tools.
//
// # Running the same test in process and in containers
//
// Test runs a test body on a Backend. ZKCONTAINER_BACKEND selects it: "virtual"
// (the default) is zktest in virtual time, "process" is zktest over loopback, and
// "container" uses containers.
//
// # Clean-up
//
// Everything that a test starts ends with the test. If the process dies before that,
// testcontainers' reaper, Ryuk, removes the rest. If Ryuk is disabled
// (TESTCONTAINERS_RYUK_DISABLED=true), because no registry has its image, a copy of the
// test binary that outlives the process does so.
//
// # Other containers of the same test binary
//
// The package changes no setting of testcontainers and no environment variable. It uses
// the engine that testcontainers uses: DOCKER_HOST can name one on another machine. Ports
// are published on the loopback address if the engine is reached through it or through a
// socket, and otherwise on all addresses of the engine's machine.
package zkcontainer
