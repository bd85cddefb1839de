package zklock

import (
	"context"
	"fmt"

	"github.com/zklock-go/zklock/internal/conn"
)

// none is the client of locks that no client has made, such as a zero Mutex: it is closed, for that reason.
var none = newNone()

var errNotMade = fmt.Errorf("%w: no client has made this lock", ErrInvalid)

func newNone() *Client {
	o, _ := (*Options)(nil).withDefaults()
	c := newClient(context.Background(), conn.NewLink(), o)
	c.endLife(errNotMade)
	c.acquires.Close()
	c.engine.Calls.Close()
	return c
}

// owner is the client that has made a lock.
type owner struct{ client *Client }

// c returns the client, or none.
func (o owner) c() *Client {
	if o.client == nil || o.client.engine == nil {
		return none
	}
	return o.client
}
