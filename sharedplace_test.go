package zklock

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/queue"
)

func TestWhoMayBeginInAPlaceThatWasJustGranted(t *testing.T) {
	over, end := context.WithCancel(t.Context())
	end()
	for name, c := range map[string]struct {
		number int64
		waited bool
		of     context.Context
		takes  bool
	}{
		"one that had asked before its node was created":   {number: 3, waited: true, takes: true},
		"one that asked later, where nobody was before us": {number: 4, takes: true},
		"one that asked later, as others may have":         {number: 4, waited: true},
		"nobody if it is lost already":                     {number: 3, of: over},
	} {
		t.Run(name, func(t *testing.T) {
			p := &sharedPlace{place: &queue.Grant{Waited: c.waited}, of: &holding{ctx: t.Context()}, before: 3}
			if c.of != nil {
				p.of.ctx = c.of
			}
			require.Equal(t, c.takes, p.takes(c.number))
		})
	}
}
