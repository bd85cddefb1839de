// SPDX-License-Identifier: Apache-2.0

package node

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// lockName is what a lock node's name looks like, told differently from how parseEntry reads it.
var lockName = regexp.MustCompile(`(?s)(?:^|.)(?:-?(__READ__|__WRIT__|lock-|latch-)|(__lock__|__rlock__))(-?[0-9]+)$`)

//zklock:promise P1.2
func FuzzNames(f *testing.F) {
	for _, name := range []string{
		"", "_c_", "_c_short", "lock-0000000001", "-lock-0000000001", "_c_0123456789abcdef0123456789abcdef-lock-0000000007",
		"_c_f3b0c442-98fc-1c14-9afb-f4c8996fb924-__READ__0000000000", "_c_x-__WRIT__-2147483648", "0123456789abcdef0123456789abcdef__lock__2147483647",
		"a__rlock__-000000001", "_c_x-latch-0000000003", "x-lock-99999999999", "x-lock-+000000001", "x-lock-lock-0000000001", "\xff-lock-0000000001",
	} {
		f.Add(name, int32(1), uint8(0))
		f.Add(name, int32(math.MaxInt32), uint8(2))
		f.Add(name, int32(math.MinInt32), uint8(4))
	}
	f.Fuzz(func(t *testing.T, name string, seq int32, kind uint8) {
		if e, ok := ParseEntry(name); ok {
			// What is taken for a lock node looks like one, and its number is the one at its end, as servers print it.
			require.Equal(t, name, e.Name)
			require.Regexp(t, lockName, name)
			digits := lockName.FindStringSubmatch(name)[3]
			want, err := strconv.ParseInt(digits, 10, 64)
			require.NoError(t, err)
			require.Equal(t, want, int64(e.Seq))
			require.True(t, strings.HasSuffix(name, fmt.Sprintf("%010d", e.Seq)))
		}
		// And whatever a client puts in front, a server's number behind a known infix is understood.
		k := kinds[int(kind)%len(kinds)]
		made := "x" + name + k.infix + fmt.Sprintf("%010d", seq)
		e, ok := ParseEntry(made)
		require.True(t, ok, "%q", made)
		require.Equal(t, seq, e.Seq)
		require.Equal(t, k.shared, e.Shared)
	})
}

// before is the oracle: which of two nodes is ahead, by comparing them. The czxid of a node is its place in made.
// Whoever has a number that a counter at its end has given came after all who have not.
func before(made []string, entries []Entry, a, b int) bool {
	ended := func(e Entry) bool { return e.Seq < 0 || e.Seq == math.MaxInt32 }
	switch x, y := entries[a], entries[b]; {
	case ended(x) != ended(y):
		return ended(y)
	case !ended(x) && x.Seq != y.Seq:
		return x.Seq < y.Seq
	default:
		return slices.Index(made, x.Name) < slices.Index(made, y.Name)
	}
}

// look is what one contender makes of a listing: as the recipe does, it asks only for the czxids that it needs.
func look(made []string, line *Queue, own Entry) []Entry {
	if ahead, known := line.Before(own); known {
		return ahead
	}
	czxid := func(e Entry) int64 { return int64(slices.Index(made, e.Name)) + 1 }
	known := slices.Clone(line.Entries)
	for i, e := range known {
		if e.Name != own.Name && NeedCzxid(e, own) {
			known[i].Czxid = czxid(e)
			own.Czxid = czxid(own)
		}
	}
	return Ahead(known, own)
}

//zklock:promise P4.1
func FuzzOrder(f *testing.F) {
	f.Add("", uint64(0))
	f.Add("_c_a-lock-0000000001\n_c_b-lock-0000000000\n_c_short\nforeign", uint64(1))
	f.Add("_c_a-lock-2147483647\n_c_b-lock-2147483647\n_c_c-lock-2147483647", uint64(2))
	f.Add("_c_a-lock-2147483646\n_c_b-lock-2147483647\n_c_c-lock--2147483648\n_c_d-lock--2147483647", uint64(3))
	f.Add("_c_a-__WRIT__0000000003\n_c_b-__READ__0000000003\n_c_c-__READ__0000000004\n_c_d-__WRIT__0000000005", uint64(4))
	f.Add("0123__lock__0000000009\n_c_b-lock-0000000009\n_c_c-latch-0000000002\nx__rlock__0000000001", uint64(5))
	f.Fuzz(func(t *testing.T, children string, shuffle uint64) {
		made := strings.Split(children, "\n")
		slices.Sort(made)
		made = slices.Compact(made)
		if len(made) > 40 {
			made = made[:40]
		}
		// The order in which they were made, and another in which the server lists them.
		slices.SortFunc(made, func(a, b string) int { return cmp.Compare(mix(a, shuffle), mix(b, shuffle)) })
		listed := slices.Clone(made)
		slices.SortFunc(listed, func(a, b string) int { return cmp.Compare(mix(a, ^shuffle), mix(b, ^shuffle)) })

		line := NewQueue(listed)
		entries := ParseEntries(listed)
		require.ElementsMatch(t, entries, line.Entries)
		for _, name := range append(listed, "_c_another-lock-0000000001") {
			require.Equal(t, slices.ContainsFunc(entries, func(e Entry) bool { return e.Name == name }), line.Has(name), name)
		}
		place := func(name string) int { return slices.IndexFunc(entries, func(e Entry) bool { return e.Name == name }) }
		var owners, readers []string
		for i, own := range entries {
			seen := look(made, line, own)
			var want []string
			for j := range entries {
				if j != i && before(made, entries, j, i) {
					want = append(want, entries[j].Name)
				}
			}
			got := make([]string, len(seen))
			for k, e := range seen {
				got[k] = e.Name
				// Others that share a number may stand either way round: both are ahead, and the czxids were not asked for.
				ordered := k == 0 || IsPlain(e.Seq) && seen[k-1].Seq == e.Seq || before(made, entries, place(got[k-1]), place(e.Name))
				require.True(t, ordered, "%s before %s", namesOf(seen), e.Name)
			}
			require.ElementsMatch(t, want, got, "who is ahead of %s", own.Name)
			if AfterAll(seen) < 0 {
				owners = append(owners, own.Name)
			}
			if own.Shared && AfterExclusive(seen) < 0 {
				readers = append(readers, own.Name)
			}
			if w := AfterExclusive(seen); w >= 0 {
				require.False(t, seen[w].Shared)
				require.False(t, slices.ContainsFunc(seen[w+1:], func(e Entry) bool { return !e.Shared }), "the nearest writer is the one to wait for")
			}
		}
		require.Len(t, owners, min(1, len(entries)), "one owner, if anybody is there")
		for _, r := range readers {
			first, _ := ParseEntry(owners[0])
			require.True(t, first.Shared, "%s reads while %s writes", r, first.Name)
		}
	})
}

func namesOf(entries []Entry) []string {
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name
	}
	return names
}

// mix gives a string a number that depends on salt: a shuffle that a fuzzer can repeat.
func mix(s string, salt uint64) uint64 {
	h := salt*0x9e3779b97f4a7c15 + 14695981039346656037
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h ^ h>>29
}

// TestEqualNumbersInTheMiddleAreInTheOrderOfCreation has others behind two of one number.
func TestEqualNumbersInTheMiddleAreInTheOrderOfCreation(t *testing.T) {
	younger, older, last := Entry{Name: "a", Seq: 5, Czxid: 9}, Entry{Name: "b", Seq: 5, Czxid: 8}, Entry{Name: "c", Seq: 6, Czxid: 7}
	require.Equal(t, []Entry{older, younger, last}, Ahead([]Entry{last, younger, older}, Entry{Name: "own", Seq: 7}))
}
