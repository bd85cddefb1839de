//go:build !linux

package main

import "time"

// sinceBoot returns zero: the standard library reaches no clock here that processes
// share and that cannot be set.
func sinceBoot() time.Duration { return 0 }
