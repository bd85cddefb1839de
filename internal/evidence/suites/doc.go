// SPDX-License-Identifier: Apache-2.0

// Package suites runs the tests of other projects' ZooKeeper clients against zktest: make suites. It contains only tests.
package suites
