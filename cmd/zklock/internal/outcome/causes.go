// SPDX-License-Identifier: Apache-2.0

package outcome

import (
	"errors"
	"net"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/slots"
)

// causes are the verdicts for errors of the library and of the ZooKeeper client.
var causes = []struct {
	err     error
	verdict Verdict
}{
	{zklock.ErrEvicted, Lost},
	{slots.ErrFull, NoRoom},
	{zk.ErrNoAuth, NoPermission},
	{zk.ErrAuthFailed, NoPermission},
	{zk.ErrInvalidACL, Usage},
	{zklock.ErrInvalid, Usage},
	{zklock.ErrLimit, Usage},
	{zklock.ErrMismatch, Usage},
	{zklock.ErrNotConnected, Unavailable},
}

// ByCause returns err with the verdict for its cause. It returns err itself if err has a verdict, and if there is none for its
// cause.
func ByCause(err error) error {
	if HasVerdict(err) {
		return err
	}
	for _, c := range causes {
		if errors.Is(err, c.err) {
			return c.verdict.Of(err)
		}
	}
	return err
}

// CannotListen returns the error for an address at which zklock cannot listen.
func CannotListen(err error) error {
	var op *net.OpError
	var address *net.AddrError
	var name *net.DNSError
	if errors.As(err, &op) {
		err = op // without the names of packages
	}
	if errors.As(err, &address) || errors.As(err, &name) {
		return Usage.Of(err)
	}
	return err
}
