// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

type named struct {
	name   string
	seen   *[]string
	panics bool
}

func (n named) Observe(e Event) {
	*n.seen = append(*n.seen, fmt.Sprint(n.name, " ", e.Kind))
	if n.panics {
		panic(n.name)
	}
}

func TestJoinedObserversGetEveryEventInTheirOrder(t *testing.T) {
	var seen []string
	all := Join(named{name: "a", seen: &seen}, nil, Join(named{name: "b", seen: &seen}, named{name: "c", seen: &seen}))
	all.Observe(Event{Kind: Queued})
	all.Observe(Event{Kind: Lost})
	require.Equal(t, []string{"a queued", "b queued", "c queued", "a lost", "b lost", "c lost"}, seen)
	require.Nil(t, Join())
	require.Nil(t, Join(nil, nil))
}

func TestTheOthersGetAnEventInWhichAJoinedObserverPanics(t *testing.T) {
	var seen []string
	all := Join(named{name: "a", seen: &seen}, named{name: "b", seen: &seen, panics: true}, named{name: "c", seen: &seen})
	require.PanicsWithValue(t, "b", func() { all.Observe(Event{Kind: Acquired}) })
	require.Equal(t, []string{"a acquired", "b acquired", "c acquired"}, seen)
}
