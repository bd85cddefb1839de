package queue

import (
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/outcome"
)

// goneIfMissing returns ErrGone for the error of a node of ours that does not exist, else err.
func goneIfMissing(err error) error {
	if errors.Is(err, zk.ErrNoNode) {
		return outcome.ErrGone
	}
	return err
}
