// SPDX-License-Identifier: Apache-2.0

//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package terminal

import "os"

// Terminals are not supported on these systems: everything counts as a plain file.

func Size(*os.File) (columns, rows int, ok bool) { return 0, 0, false }

func ProcessGroup() int { return 0 }

func OpenForeground(int) *os.File { return nil }

func GiveForeground(*os.File, int) {}
