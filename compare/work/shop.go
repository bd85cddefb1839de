// SPDX-License-Identifier: Apache-2.0

package work

import "sync"

// stockAtOpening is how many items a shop has to sell.
const stockAtOpening = 10

// shop has a stock that must be protected by a lock: a buyer reads the stock, and later writes the stock minus one.
// A fenced shop also rejects writes with an old token.
type shop struct {
	fenced bool

	mu     sync.Mutex
	stock  int   // guarded by mu
	orders int   // guarded by mu
	newest int64 // guarded by mu; the highest token seen
}

func newShop(fenced bool) *shop { return &shop{fenced: fenced, stock: stockAtOpening} }

// read returns the stock. A fenced shop records the token of a read as well, so that a write with an older token is rejected
// even if the newer holder has not written yet.
func (s *shop) read(token int64) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.newest = max(s.newest, token)
	return s.stock
}

// order sells one item to a buyer who read the stock seen, and sets the stock to seen-1. It reports whether the shop
// accepted the order.
func (s *shop) order(seen int, token int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if seen == 0 || s.fenced && token < s.newest {
		return false
	}
	s.newest = max(s.newest, token)
	s.stock = seen - 1
	s.orders++
	return true
}

func (s *shop) soldOut() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stock == 0
}

func (s *shop) oversold() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(0, s.orders-stockAtOpening)
}
