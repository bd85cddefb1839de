// Package integration tests zklock against real ZooKeeper servers in containers: parity with the in-process server,
// ensembles under faults, other languages' clients on the same path, security. It has no code of its own.
//
// Servers are those of ZKLOCK_TEST_SERVERS (an ensemble already running; tests that would hurt it are skipped), or
// containers of the image that ZKLOCK_TEST_IMAGE names, of the official one, or, where no registry can be reached, of the
// one that image/build makes from Debian's packages.
package integration
