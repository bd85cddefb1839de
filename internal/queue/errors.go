// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/outcome"
)

// goneIfMissing returns ErrGone if err says that a node of ours does not exist; otherwise it
// returns err.
func goneIfMissing(err error) error {
	if errors.Is(err, zk.ErrNoNode) {
		return outcome.ErrGone
	}
	return err
}
