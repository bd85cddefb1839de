// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package conn

import "net"

// writerAtOnce returns a function that writes what a connection takes without waiting, and returns
// the number of bytes, or nil if the connection cannot do that.
func writerAtOnce(to net.Conn) func(p []byte) int {
	if to, ok := to.(interface{ WriteAtOnce(p []byte) int }); ok {
		return to.WriteAtOnce
	}
	return nil
}
