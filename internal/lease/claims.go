package lease

import "time"

// A claim is a touch, named by when it was sent, that had come a step further at the moment by.
type claim struct {
	sent Instant
	by   time.Time
}

// claims are ordered by both of their times.
type claims []claim

// maxClaims is enough to reach back further than a session timeout.
const maxClaims = 2 * grains

// grains is the number of parts into which a session timeout is divided. Touches closer together than one part count as one.
const grains = 2048

// add appends a claim unless it would hardly tell more than the last one. A busy client
// gets thousands of answers between two heartbeats.
func (c *claims) add(sent Instant, by time.Time, grain time.Duration) {
	if n := len(*c); n > 0 && sent.Mono.Sub((*c)[n-1].sent.Mono) < grain {
		return
	}
	if len(*c) == maxClaims {
		*c = (*c)[1:]
	}
	*c = append(*c, claim{sent, by})
}

// newest returns the newest touch that had come this far at t, and drops the older ones.
func (c *claims) newest(t time.Time) (Instant, bool) {
	i := c.until(t)
	if i < 0 {
		return Instant{}, false
	}
	*c = (*c)[i:]
	return (*c)[0].sent, true
}

// peek returns the newest touch that had come this far at t.
func (c claims) peek(t time.Time) (Instant, bool) {
	i := c.until(t)
	if i < 0 {
		return Instant{}, false
	}
	return c[i].sent, true
}

// until returns the index of the last claim that was known at t, negative if there is none.
func (c claims) until(t time.Time) int {
	for i, cl := range c {
		if cl.by.After(t) {
			return i - 1
		}
	}
	return len(c) - 1
}
