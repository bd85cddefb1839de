// SPDX-License-Identifier: Apache-2.0

//go:build unix

package terminal

import "os"

// HasControlling reports whether this process has a controlling terminal.
func HasControlling() bool {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return false
	}
	tty.Close()
	return true
}
