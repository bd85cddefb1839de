// Package integration tests zklock against real ZooKeeper servers in containers: parity with the in-process server,
// ensembles under faults, other languages' clients on the same path, security. It has no code of its own.
//
// Servers are those of ZKLOCK_TEST_SERVERS (an ensemble already running; tests that would hurt it are skipped), or
// containers: of the image that ZKLOCK_TEST_IMAGE names, or of the one that image/build makes from Debian's packages, with
// the version that ZKLOCK_TEST_ZOOKEEPER names, 3.8 (the default), 3.9 or sid. The script run runs them all on 3.8 and
// those that depend on the version on 3.9. With ZKLOCK_TEST_REQUIRE set it is a failure if nothing could be tested.
package integration
