// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/bridge"
	"github.com/zklock-go/zklock/internal/node"
)

// client sends requests on behalf of an operator.
type client struct{ bridge.Client }

func of(c *zklock.Client) client { return client{bridge.ClientOf(c)} }

// nameOf returns the name of a contender's node.
func nameOf(contender zklock.Contender) string {
	return contender.Node[strings.LastIndexByte(contender.Node, '/')+1:]
}

// check returns zklock.ErrInvalid if the node is not a contender's: no other node may be written or
// removed.
func check(contender zklock.Contender) error {
	if err := node.CheckContender(contender.Node); err != nil {
		return err
	}
	if _, ok := node.ParseEntry(nameOf(contender)); !ok {
		return fmt.Errorf("%w: %q is not the node of a contender", zklock.ErrInvalid, contender.Node)
	}
	return nil
}

// maxData is how many bytes of a node's data Inspect keeps.
const maxData = 4 << 10

// shortened returns contender with its data cut to maxData bytes. The data is then copied, so that the
// rest can be freed.
func shortened(contender zklock.Contender) zklock.Contender {
	if len(contender.Data) > maxData {
		contender.Omitted = len(contender.Data) - maxData
		contender.Data = bytes.Clone(contender.Data[:maxData])
	}
	return contender
}
