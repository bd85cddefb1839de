// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"

	"github.com/zklock-go/zklock/internal/frames"
	"github.com/zklock-go/zklock/internal/outcome"
)

// MaxRequest is the maximum size of a request that we send: servers close a connection on which a
// request exceeds their jute.maxbuffer, which is 1,048,575 bytes by default.
const MaxRequest = 1_000_000

// RequestSize returns the size of a transaction of ops on the wire. If an operation is not allowed
// in a transaction, it returns ErrInvalid.
func RequestSize(ops []any) (int, error) {
	size, err := frames.SizeOf(ops)
	if err != nil {
		err = fmt.Errorf("%w: %w", outcome.ErrInvalid, err)
	}
	return size, err
}

// CheckSize returns ErrInvalid if a transaction is too long for a request.
func CheckSize(ops []any) error {
	size, err := RequestSize(ops)
	if err == nil && size > MaxRequest {
		err = fmt.Errorf("%w: transaction has %d bytes, limit is %d", outcome.ErrInvalid, size, MaxRequest)
	}
	return err
}
