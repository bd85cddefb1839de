// SPDX-License-Identifier: Apache-2.0

package outcome

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"

	"github.com/zklock-go/zklock"
)

func TestTheExitCodeFollowsFromTheVerdict(t *testing.T) {
	other := errors.New("other")
	for _, c := range []struct {
		err  error
		code int
		text string
	}{
		{nil, 0, ""},
		{other, 1, "zklock: other\n"},
		{Lost.Of(other), 79, "zklock: other\n"},
		{Cycle.Of(nil), 81, ""},
		{fmt.Errorf("ls: %w", Usage.Of(other)), 64, "zklock: ls: other\n"},
		{Recode(NotAcquired.Of(other), 0), 0, "zklock: other\n"},
		{Ended{Code: 75}, 75, ""},
		{Interrupted(), 130, "zklock: interrupted\n"},
		{ByCause(fmt.Errorf("a: %w", zklock.ErrNotConnected)), 69, ""},
		{ByCause(zk.ErrNoAuth), 77, ""},
		{ByCause(NotFound.Of(zk.ErrNoAuth)), 127, ""},
		{ByCause(other), 1, "zklock: other\n"},
	} {
		var b strings.Builder
		assert.Equal(t, c.code, Print(&b, c.err), c.err)
		if c.text != "" {
			assert.Equal(t, c.text, b.String())
		}
	}
}
