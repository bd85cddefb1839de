package node

import (
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/outcome"
)

// maxRequest is what we send in one request at most: servers close a connection on which a
// longer one than their jute.maxbuffer comes, by default 1,048,575 bytes.
const MaxRequest = 1_000_000

// RequestSize is how long a transaction of ops is on the wire. An operation that the client
// library does not know is ErrInvalid.
func RequestSize(ops []any) (int, error) {
	const (
		frame  = 4 + 8 // length, xid and type
		header = 9     // before each operation, and at the end
	)
	size := frame + header
	for _, op := range ops {
		size += header
		switch op := op.(type) {
		case *zk.CreateRequest:
			size += 16 + len(op.Path) + len(op.Data)
			for _, acl := range op.Acl {
				size += 12 + len(acl.Scheme) + len(acl.ID)
			}
		case *zk.SetDataRequest:
			size += 12 + len(op.Path) + len(op.Data)
		case *zk.DeleteRequest:
			size += 8 + len(op.Path)
		case *zk.CheckVersionRequest:
			size += 8 + len(op.Path)
		default:
			return 0, fmt.Errorf("%w: no operation of a transaction: %T", outcome.ErrInvalid, op)
		}
	}
	return size, nil
}

// CheckSize refuses a transaction that is too long for a request.
func CheckSize(ops []any) error {
	size, err := RequestSize(ops)
	if err == nil && size > MaxRequest {
		err = fmt.Errorf("%w: a transaction of %d bytes, the limit is %d", outcome.ErrInvalid, size, MaxRequest)
	}
	return err
}
