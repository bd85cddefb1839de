package operate

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/door"
	"github.com/zklock-go/zklock/internal/node"
)

// client asks servers for an operator.
type client struct{ door.Client }

func of(c *zklock.Client) client { return client{door.ClientOf(c)} }

// nameOf returns the name of a contender's node.
func nameOf(who zklock.Contender) string { return who.Node[strings.LastIndexByte(who.Node, '/')+1:] }

// check returns zklock.ErrInvalid if the node is not a contender's: no other node may be written to
// or removed.
func check(who zklock.Contender) error {
	if err := node.CheckPath(who.Node); err != nil {
		return err
	}
	if _, ok := node.ParseEntry(nameOf(who)); !ok {
		return fmt.Errorf("%w: %q is not the node of a contender", zklock.ErrInvalid, who.Node)
	}
	return nil
}

// maxShown is how much of a node's data Inspect keeps.
const maxShown = 4 << 10

// shortened returns who with its data cut to maxShown, and a copy, so that the rest can be
// freed.
func shortened(who zklock.Contender) zklock.Contender {
	if len(who.Data) > maxShown {
		who.Omitted = len(who.Data) - maxShown
		who.Data = bytes.Clone(who.Data[:maxShown])
	}
	return who
}
