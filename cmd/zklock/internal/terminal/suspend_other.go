// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package terminal

// aroundSuspension does nothing: these systems do not suspend processes.
func aroundSuspension(before, after func()) (stop func()) { return func() {} }
