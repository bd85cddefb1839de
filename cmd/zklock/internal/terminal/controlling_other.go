// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package terminal

// HasControlling returns true: on these systems a process has a console.
func HasControlling() bool { return true }
