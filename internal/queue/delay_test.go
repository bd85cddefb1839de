// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/node"
)

//zklock:promise P11.12
func TestNextStepForALocksRecord(t *testing.T) {
	for what, c := range map[string]struct {
		r               node.Record
		lost, outwaited string
		shared          bool
		want            step
	}{
		"a new lock":                                    {want: claimRecord},
		"the last hold was released":                    {r: node.Record{Fate: node.WasReleased, By: "a"}, want: claimRecord},
		"a reader, the last hold was released":          {r: node.Record{Fate: node.WasReleased, By: "a"}, shared: true, want: beHolder},
		"our own claim, whose answer was lost":          {r: node.Record{Fate: node.IsHeld, By: "us"}, want: beHolder},
		"the last holder is gone":                       {r: node.Record{Fate: node.IsHeld, By: "a"}, lost: "a", want: recordLoss},
		"a reader, the last holder is gone":             {r: node.Record{Fate: node.IsHeld, By: "a"}, lost: "a", shared: true, want: recordLoss},
		"its loss is recorded":                          {r: node.Record{Fate: node.WasLost, By: "a"}, lost: "a", want: awaitDelay},
		"its loss was waited for":                       {r: node.Record{Fate: node.WasLost, By: "a"}, lost: "a", outwaited: "a", want: claimRecord},
		"a reader, its loss was waited for":             {r: node.Record{Fate: node.WasLost, By: "a"}, lost: "a", outwaited: "a", shared: true, want: claimRecord},
		"released since its loss was waited for":        {r: node.Record{Fate: node.WasReleased, By: "b"}, outwaited: "a", want: claimRecord},
		"the loss of another is recorded":               {r: node.Record{Fate: node.WasLost, By: "b"}, lost: "a", want: recordLoss},
		"another was lost while we waited for the last": {r: node.Record{Fate: node.WasLost, By: "b"}, lost: "b", outwaited: "a", want: awaitDelay},
		"a stranger was before us":                      {r: node.Record{Fate: node.WasReleased, By: "a"}, lost: "x", want: recordLoss},
	} {
		require.Equal(t, c.want, nextFor(c.r, c.lost, c.outwaited, c.shared), what)
	}
}
