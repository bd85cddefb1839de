// SPDX-License-Identifier: Apache-2.0

package outcome

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
)

func TestErrorsOfSeveralLinesBecomeOne(t *testing.T) {
	assert.Equal(t, "a; b", Explain(errors.Join(errors.New("zklock: a"), errors.New("b"))))
}

func TestErrorsOfLibrariesAreReworded(t *testing.T) {
	assert.Equal(t, "/a: no answer in time", Explain(fmt.Errorf("zklock: /a: %w", context.DeadlineExceeded)))
	both := errors.Join(fmt.Errorf("a: %w", io.EOF), fmt.Errorf("b: %w", zk.ErrNoNode))
	assert.Equal(t, "a: the connection was closed; b: no such path", Explain(both))
}
