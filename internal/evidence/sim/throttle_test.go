// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/zktest"
)

// A request that is repeated is refused a few times at most, although each attempt to create a node has another name.
func TestAThrottleRefusesFewAttemptsInARow(t *testing.T) {
	create := func(infix string) func(n int) *zktest.Request {
		return func(n int) *zktest.Request {
			return &zktest.Request{Op: zktest.OpCreate, Path: fmt.Sprintf("/locks/a/%s%d-%s", node.NamePrefix, n, infix)}
		}
	}
	counted := func(n int) *zktest.Request {
		one := create(node.LockInfix)(n)
		return &zktest.Request{Op: zktest.OpMulti, Ops: []zktest.Op{zktest.OpCreate, zktest.OpSetData}, Paths: []string{one.Path, "/locks/a"}}
	}
	for name, attempt := range map[string]func(n int) *zktest.Request{
		"mutex": create(node.LockInfix), "reader": create(node.ReaderInfix), "writer": create(node.WriterInfix), "counted": counted,
		"read": func(int) *zktest.Request { return &zktest.Request{Op: zktest.OpGetData, Path: "/locks/a"} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for seed := range uint64(50) {
					throttled := newThrottle(rand.New(rand.NewPCG(seed, seed)), newRefusals())
					row, longest := 0, 0
					for n := range 100 {
						if throttled.judge(attempt(n)) == zktest.Pass {
							row = 0
							continue
						}
						row++
						longest = max(longest, row)
					}
					require.LessOrEqual(t, longest, maxRefusals)
				}
			})
		})
	}
}

// A throttle that begins when another has ended continues to count.
func TestThrottlesOfARunCountTogether(t *testing.T) {
	write := &zktest.Request{Op: zktest.OpMulti, Ops: []zktest.Op{zktest.OpCheck, zktest.OpSetData}, Paths: []string{"/locks/a/x", "/fence"}}
	for seed := range uint64(50) {
		r, earlier := rand.New(rand.NewPCG(seed, seed)), newRefusals()
		row, longest := 0, 0
		for range 100 {
			throttled := newThrottle(r, earlier)
			for range 3 {
				if row++; throttled.judge(write) == zktest.Pass {
					row = 0
				}
				longest = max(longest, row)
			}
		}
		require.LessOrEqual(t, longest, maxRefusals)
	}
}
