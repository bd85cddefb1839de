//go:build unix && !linux

package main

import "os"

// Nothing but the process group is known here.

func newTree() tree { return &group{} }

func adopt(_ int, started report, _ []process) tree { return &group{pid: started.Started} }

func sharesGroup() bool { return false }

func leadsSession() bool { return false }

func becomeReaper() error { return nil }

func reapStrangers() {}

func ownBinary() (string, error) { return os.Executable() }

type process struct{}

func descendantsNow() []process { return nil }

type cgroup string

func (cgroup) remove() {}
