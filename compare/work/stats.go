// SPDX-License-Identifier: Apache-2.0

package work

import (
	"math"
	"slices"
	"time"
)

// summarize computes the values of a speed measurement from the turns granted within the window.
func summarize(turns []turn, from, to time.Time, contended bool) map[string]float64 {
	granted := grantedWithin(turns, from, to)
	values := map[string]float64{OpsPerSecond: float64(len(granted)) / to.Sub(from).Seconds()}
	if len(granted) == 0 {
		return values
	}
	spans := handOffs(granted)
	if !contended {
		spans = collect(granted, func(t turn) time.Duration { return t.given.Sub(t.asked) })
	}
	if len(spans) > 0 {
		values[P50], values[P99] = milliseconds(quantile(spans, 0.5)), milliseconds(quantile(spans, 0.99))
	}
	if contended {
		waits := collect(granted, func(t turn) time.Duration { return t.got.Sub(t.asked) })
		values[WaitP50], values[WaitP99] = milliseconds(quantile(waits, 0.5)), milliseconds(quantile(waits, 0.99))
		values[Jain] = jain(shares(granted, turns))
		values[Overtaking] = overtakings(granted, turns)
	}
	return values
}

// grantedWithin returns the turns that were granted between from and to, in the order of the grants.
func grantedWithin(turns []turn, from, to time.Time) []turn {
	var granted []turn
	for _, t := range turns {
		if !t.got.IsZero() && t.got.After(from) && t.got.Before(to) {
			granted = append(granted, t)
		}
	}
	slices.SortFunc(granted, func(a, b turn) int { return a.got.Compare(b.got) })
	return granted
}

func collect(turns []turn, span func(turn) time.Duration) []time.Duration {
	var all []time.Duration
	for _, t := range turns {
		all = append(all, span(t))
	}
	slices.Sort(all)
	return all
}

// handOffs returns the times from the start of each unlock to the next grant. It skips grants to contenders that were not
// waiting yet.
func handOffs(granted []turn) []time.Duration {
	var all []time.Duration
	for i := 1; i < len(granted); i++ {
		last, next := granted[i-1], granted[i]
		if next.asked.Before(last.giving) && next.got.After(last.giving) {
			all = append(all, next.got.Sub(last.giving))
		}
	}
	slices.Sort(all)
	return all
}

// quantile returns the q-quantile of the sorted values.
func quantile[T any](sorted []T, q float64) T {
	return sorted[min(len(sorted)-1, int(math.Ceil(q*float64(len(sorted))))-1)]
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// shares returns the number of grants of every contender, including contenders without any.
func shares(granted, all []turn) []float64 {
	count := map[int]float64{}
	for _, t := range all {
		count[t.who] += 0
	}
	for _, t := range granted {
		count[t.who]++
	}
	var list []float64
	for _, n := range count {
		list = append(list, n)
	}
	return list
}

// jain returns Jain's fairness index: 1 if all shares are equal, 1/n if one contender has everything.
func jain(shares []float64) float64 {
	var sum, squares float64
	for _, x := range shares {
		sum += x
		squares += x * x
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(len(shares)) * squares)
}

// overtakings returns the share of grants that overtook another contender: one that was queued before the granted contender
// called Lock, and is still waiting. A contender counts as queued when its call of Lock is as old as the quickest grant, by
// which time its request should have reached the server. A slower request can be counted as overtaken by mistake.
func overtakings(granted, all []turn) float64 {
	reached := quickest(granted)
	byAsk := slices.Clone(all)
	slices.SortFunc(byAsk, func(a, b turn) int { return a.asked.Compare(b.asked) })
	overtook := 0
	waiting := byAsk[:0:0] // turns that were asked for before the current grant and not granted yet
	next := 0
	for _, g := range granted {
		for next < len(byAsk) && byAsk[next].asked.Before(g.got) {
			waiting = append(waiting, byAsk[next])
			next++
		}
		waiting = slices.DeleteFunc(waiting, func(w turn) bool { return !w.got.IsZero() && w.got.Before(g.got) })
		// waiting is sorted by the time of asking, so its head has waited longest.
		if len(waiting) > 0 && waiting[0].asked.Add(reached).Before(g.asked) {
			overtook++
		}
	}
	return float64(overtook) / float64(len(granted))
}

// quickest returns the shortest time from a call of Lock to its grant.
func quickest(granted []turn) time.Duration {
	return slices.Min(collect(granted, func(t turn) time.Duration { return t.got.Sub(t.asked) }))
}

// Median returns the median of the values, or NaN if there are none.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	mid := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[mid]
	}
	return (sorted[mid-1] + sorted[mid]) / 2
}
