// SPDX-License-Identifier: Apache-2.0

package web

import (
	"fmt"
	"testing"
	"time"

	"github.com/zklock-go/zklock/operate"
)

// A frame of 5,000 locks, and one of a queue of 10,000: what a page costs when anything has changed.
func BenchmarkFrame(b *testing.B) {
	board := newBoard("/", false)
	sessions := int64(0)
	of := func(path string, names ...string) *operate.Queue {
		q := queue(path, 1, names...)
		for i := range q.Contenders {
			sessions++
			q.Contenders[i].Session = sessions
		}
		return q
	}
	for i := range 5000 {
		board.note(of(fmt.Sprint("/l/", i), "a", "bb"), board.later(0))
	}
	long := of("/long", names(10_000)...)
	for name, look := range map[string]func(now time.Time) view{
		"overview": func(now time.Time) view { return board.overview("", now) },
		"search":   func(now time.Time) view { return board.overview("worker 9999", now) },
		"lock":     func(now time.Time) view { return board.oneLock("/long", "", now) },
	} {
		b.Run(name, func(b *testing.B) {
			d := newDifference()
			for b.Loop() {
				now := board.later(time.Duration(b.N))
				board.note(long, now)
				if _, err := d.of(look(now), now); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
