package zklock

// Depth returns how many Holds that are not unlocked share the hold's place in the queue.
func Depth(h *Hold) int {
	h.of().mu.Lock()
	defer h.of().mu.Unlock()
	return h.of().levels
}
