package work

import "sync"

// stockAtOpening is how many items a shop has to sell.
const stockAtOpening = 10

// shop sells its stock in the way that needs a lock: a buyer reads how much there is and, later, writes one less.
// It is what the lock protects, so it knows nothing of the lock, except that a fenced shop looks at the token.
type shop struct {
	fenced bool

	mu     sync.Mutex
	stock  int   // guarded by mu
	orders int   // guarded by mu
	newest int64 // guarded by mu; the highest token seen
}

func newShop(fenced bool) *shop { return &shop{fenced: fenced, stock: stockAtOpening} }

// read is the buyer's first step. A fenced shop remembers the token from here on, as a store must that checks reads too.
func (s *shop) read(token int64) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.newest = max(s.newest, token)
	return s.stock
}

// order is his last: one item is sent to him and the stock is what he says. It reports whether the shop took the order.
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
