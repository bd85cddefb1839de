package zklock

import (
	"fmt"
	"strconv"
	"strings"
)

// limitPrefix begins what the directory of permits has as its data.
const limitPrefix = "zklock: permits "

// maxPermits bounds a semaphore: every permit that is held is a node.
const maxPermits = 100_000

func limitData(permits int) []byte { return []byte(limitPrefix + strconv.Itoa(permits)) }

func parseLimit(data []byte) (int, error) {
	number, ok := strings.CutPrefix(string(data), limitPrefix)
	limit, err := strconv.Atoi(number)
	if !ok || err != nil || limit < 1 || limit > maxPermits {
		return 0, fmt.Errorf("%w: its number of permits cannot be read from %.40q", ErrLimit, data)
	}
	return limit, nil
}
