// SPDX-License-Identifier: Apache-2.0

package command

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestServersBeginWithUnusedZxids(t *testing.T) {
	t.Parallel()
	for _, members := range []int{1, 3} {
		before := int64(0)
		for range 4 {
			zxid := firstZxid(members)
			assert.Greater(t, zxid, before)
			before = zxid
		}
	}
	assert.Less(t, firstZxid(1), int64(1)<<53, "a number that every reader of JSON keeps")
	in2042 := time.Date(2042, 1, 1, 0, 0, 0, 0, time.UTC)
	assert.Less(t, clock(in2042, 250*time.Millisecond), int64(1)<<31)
	assert.Less(t, clock(in2042, time.Millisecond)<<10, int64(1)<<53)
}
