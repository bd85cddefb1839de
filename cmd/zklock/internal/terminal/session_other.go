// SPDX-License-Identifier: Apache-2.0

//go:build unix && !(linux || darwin || freebsd || netbsd || openbsd)

package terminal

// SessionID returns zero: on these systems the ID is not known.
func SessionID() int { return 0 }
