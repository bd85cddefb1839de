// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package proc

// On these systems a tree is a process group.

// NewTree returns the tree that a guardian manages.
func NewTree() Tree { return &group{} }

// Adopt returns the tree of a guardian that is gone or hangs, for zklock itself.
func Adopt(_ int, started Event, _ []Process) Tree { return &group{pid: started.Started} }

func sharesGroup() bool { return false }

func leadsSession() bool { return false }

// BecomeReaper does nothing: these systems have no reapers.
func BecomeReaper() error { return nil }

// Process describes a process.
type Process struct{ PID int }

// Descendants returns nil: only process groups are known.
func Descendants(int) []Process { return nil }

// RemoveGroup does nothing: these systems have no control groups.
func RemoveGroup(Event) {}
