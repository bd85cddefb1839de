// SPDX-License-Identifier: Apache-2.0

package guardian

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestADeadlineComesByTheClockThatCannotBeSet(t *testing.T) {
	require.NotZero(t, sinceBoot())
	n := now()
	assert.Positive(t, n.plus(time.Hour).left())
	assert.Negative(t, deadline{Wall: n.Wall + int64(time.Hour), Boot: n.Boot - 1}.left(), "the machine has slept, and its wall clock was set back")
	assert.Positive(t, deadline{Wall: n.Wall - 1, Boot: n.Boot + int64(time.Hour)}.left(), "a wall clock that was set forward ends no job")
	assert.Positive(t, deadline{Wall: n.Wall + int64(time.Hour)}.left(), "there may be no clock but the wall's")
}
