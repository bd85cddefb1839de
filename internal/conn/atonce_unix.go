// SPDX-License-Identifier: Apache-2.0

//go:build unix

package conn

import (
	"net"
	"syscall"
)

// writerAtOnce returns a function that writes what a connection takes without waiting, and returns
// the number of bytes. An error shows in the next ordinary write. It returns nil if the connection
// cannot do that: other types may encrypt or count what is written to them. The function must not be
// called while another write is in progress.
func writerAtOnce(to net.Conn) func(p []byte) int {
	switch to := to.(type) {
	case *net.TCPConn:
		return descriptorWriter(to)
	case *net.UnixConn:
		return descriptorWriter(to)
	case interface{ WriteAtOnce(p []byte) int }:
		return to.WriteAtOnce
	}
	return nil
}

// descriptorWriter returns a function that writes to a connection's file descriptor.
func descriptorWriter(to syscall.Conn) func(p []byte) int {
	raw, err := to.SyscallConn()
	if err != nil {
		return nil
	}
	var data []byte
	var n int
	write := func(fd uintptr) bool {
		n, _ = syscall.Write(int(fd), data)
		return true // does not wait until the connection takes more
	}
	return func(p []byte) int {
		data, n = p, 0
		_ = raw.Write(write)
		data = nil
		return max(n, 0) // it is negative after an error
	}
}
