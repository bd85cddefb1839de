// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package proc

// ReapStrangers does nothing: these systems hand over no orphaned processes.
func ReapStrangers() {}

func sharesGroup() bool { return true }

func leadsSession() bool { return false }
