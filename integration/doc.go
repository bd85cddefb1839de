// SPDX-License-Identifier: Apache-2.0

// Package integration tests zklock against real ZooKeeper servers in containers: parity with the in-process server,
// ensembles under faults, other languages' clients on the same path, security. It contains only tests.
//
// The tests use the running servers listed in ZKLOCK_TEST_SERVERS and then skip the tests that cause faults. If it is not set,
// they start containers with the image in ZKLOCK_TEST_IMAGE, or with one that image/build builds from Debian's packages. The
// version of the latter is ZKLOCK_TEST_ZOOKEEPER: 3.8 (the default), 3.9 or sid. The script run runs all tests on 3.8, and the
// tests that depend on the version also on 3.9. If ZKLOCK_TEST_REQUIRE is set and no servers are available, the run fails.
package integration
