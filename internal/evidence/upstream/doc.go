// Package upstream shows the traps of go-zookeeper/zk that README.md describes, each by a test against zktest,
// and keeps the patches that it proposes honest: each must apply to the version that this module uses, and with all of
// them the same tests must find no trap. It has no code of its own.
package upstream
