// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestDescendantsAreDistinguishedFromOtherProcesses(t *testing.T) {
	all := []Process{
		{PID: 1}, {PID: 4, Parent: 9}, {PID: 7, Parent: 1}, {PID: 8, Parent: 7}, {PID: 9, Parent: 8, dead: true},
		{PID: 10, Parent: 7, since: "before"}, {PID: 11, Parent: 10}, {PID: 12, Parent: 13}, {PID: 13, Parent: 12}, {PID: 14, Parent: 99},
	}
	markBelow(all, 7, []Process{{PID: 10, since: "before"}, {PID: 8, since: "of another"}})
	var found []int
	for _, p := range living(all) {
		found = append(found, p.PID)
	}
	assert.Equal(t, []int{4, 8}, found)
}

func TestAProcessWithAnyNameIsRead(t *testing.T) {
	p, ok := parseProcess([]byte("42 (a) Z 1 (b) T 7 5 5 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 12345 0 0\n"))
	assert.True(t, ok)
	assert.Equal(t, Process{PID: 42, Parent: 7, group: 5, stopped: true, since: "12345"}, p)
	_, ok = parseProcess(nil)
	assert.False(t, ok)
}
