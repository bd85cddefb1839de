// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/zklock-go/zklock/internal/evidence/docs"
)

var backings = []docs.Backing{
	{Name: "TestOne", File: "a/a_test.go", IDs: []string{"P2.1", "A1"}},
	{Name: "FuzzTwo", File: "b/b_test.go", IDs: []string{"P2.10"}},
	{Name: "BenchmarkThree", File: "b/b_test.go", IDs: []string{"P2.1"}},
}

func TestTheTestsOfAnIDAreNamed(t *testing.T) {
	assert.Equal(t, []string{"TestOne"}, namesOf("P2.1", backings), "go test -run runs no benchmark")
	assert.Equal(t, []string{"TestOne", "FuzzTwo"}, namesOf("P2", backings))
	assert.Equal(t, []string{"TestOne"}, namesOf("A1", backings))
	assert.Empty(t, namesOf("P1", backings))
}

func TestEachClaimIsListedWithItsTests(t *testing.T) {
	var out bytes.Buffer
	list(&out, []docs.Claim{{ID: "P2.1", Text: "It ends.", Tested: true}, {ID: "A9", Text: "It runs."}}, backings)
	assert.Equal(t, "P2.1  It ends.\n    a  TestOne\n    b  BenchmarkThree\nA9  It runs.\n    not tested\n", out.String())
}
