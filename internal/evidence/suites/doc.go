// Package suites runs other projects' own tests of their ZooKeeper clients against zktest: make suites. It has no code of
// its own.
package suites
