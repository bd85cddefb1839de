package node

import (
	"fmt"

	"github.com/zklock-go/zklock/internal/frames"
	"github.com/zklock-go/zklock/internal/outcome"
)

// maxRequest is what we send in one request at most: servers close a connection on which a
// longer one than their jute.maxbuffer comes, by default 1,048,575 bytes.
const MaxRequest = 1_000_000

// RequestSize is how long a transaction of ops is on the wire. An operation that a transaction
// cannot have is ErrInvalid.
func RequestSize(ops []any) (int, error) {
	size, err := frames.SizeOf(ops)
	if err != nil {
		err = fmt.Errorf("%w: %w", outcome.ErrInvalid, err)
	}
	return size, err
}

// CheckSize refuses a transaction that is too long for a request.
func CheckSize(ops []any) error {
	size, err := RequestSize(ops)
	if err == nil && size > MaxRequest {
		err = fmt.Errorf("%w: a transaction of %d bytes, the limit is %d", outcome.ErrInvalid, size, MaxRequest)
	}
	return err
}
