// SPDX-License-Identifier: Apache-2.0

// Package upstream demonstrates the traps of go-zookeeper/zk that README.md describes, each with a test against zktest. It also tests
// the proposed patches: each must apply to the version that this module uses, and with all of them the same tests must find no trap.
// It contains only tests.
package upstream
