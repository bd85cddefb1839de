// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/assert"
)

// store is a store outside ZooKeeper, with a number for each lock. Its only protection is a fence: it rejects a token that is
// lower than the highest token of a writer.
type store struct {
	mu     sync.Mutex
	values map[string]int   // guarded by mu
	fence  map[string]int64 // guarded by mu: the highest token of a writer
}

func newStore() *store { return &store{values: map[string]int{}, fence: map[string]int64{}} }

// read returns a lock's number. A writer's token raises the fence already here, because its write depends on the value read.
func (s *store) read(lock string, token int64, shared bool) (value int, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if token < s.fence[lock] {
		return 0, false
	}
	if !shared {
		s.fence[lock] = token
	}
	return s.values[lock], true
}

func (s *store) write(lock string, token int64, value int) (accepted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if token < s.fence[lock] {
		return false
	}
	s.values[lock] = value
	return true
}

// use is one use of the store under a lock: an increment, or a read if shared is set.
type use struct {
	lock   string
	shared bool
}

// result is the result of a use.
type result struct {
	use      use
	accepted bool // by the store; otherwise the use had no effect
	value    int  // before the increment
}

// counting is the model of the store for porcupine if the lock makes each use atomic.
var counting = porcupine.Model{
	Partition: func(all []porcupine.Operation) [][]porcupine.Operation {
		byLock := map[string][]porcupine.Operation{}
		for _, op := range all {
			lock := op.Input.(use).lock
			byLock[lock] = append(byLock[lock], op)
		}
		var parts [][]porcupine.Operation
		for _, ops := range byLock {
			parts = append(parts, ops)
		}
		return parts
	},
	Init: func() any { return 0 },
	Step: func(state, input, output any) (bool, any) {
		value, in, out := state.(int), input.(use), output.(result)
		switch {
		case !out.accepted:
			return true, value
		case in.shared:
			return out.value == value, value
		}
		return out.value == value, value + 1
	},
}

// checkStore checks with porcupine that the uses of the store are linearizable.
func checkStore(t *testing.T, uses []porcupine.Operation) {
	assert.Equal(t, porcupine.Ok, porcupine.CheckOperationsTimeout(counting, uses, time.Minute), "the fenced history is not linearizable")
}

// TestStoreModel checks that the model rejects a lost update: two increments that read the same number.
func TestStoreModel(t *testing.T) {
	step := func(client, call, end, value int) porcupine.Operation {
		in := use{lock: "x"}
		return porcupine.Operation{ClientId: client, Input: in, Call: int64(call), Return: int64(end), Output: result{in, true, value}}
	}
	assert.True(t, porcupine.CheckOperations(counting, []porcupine.Operation{step(1, 0, 5, 0), step(2, 1, 6, 1)}))
	assert.False(t, porcupine.CheckOperations(counting, []porcupine.Operation{step(1, 0, 5, 0), step(2, 1, 6, 0)}))
	s := newStore()
	_, known := s.read("x", 7, false)
	assert.True(t, known)
	assert.False(t, s.write("x", 6, 1), "a stale writer is rejected")
	assert.True(t, s.write("x", 7, 1))
}
