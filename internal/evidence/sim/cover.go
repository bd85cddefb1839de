// SPDX-License-Identifier: Apache-2.0

package sim

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// unpaired names the pairs that do not occur, one a line, each with the reason.
//
//go:embed testdata/unpaired.txt
var unpaired string

// setting is a value of a dimension: their indexes.
type setting struct{ dim, value int }

// An exclusion is a pair that must not occur, with the reason.
type exclusion struct {
	x, y   setting
	reason string
}

// exclusions reads unpaired.
func exclusions() (list []exclusion, err error) {
	for line := range strings.Lines(unpaired) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		pair, reason, ok := strings.Cut(line, ": ")
		first, second, and := strings.Cut(pair, " + ")
		x, isX := settingOf(first)
		y, isY := settingOf(second)
		if !ok || !and || !isX || !isY || reason == "" {
			return nil, fmt.Errorf("sim: not a pair with a reason: %s", line)
		}
		list = append(list, exclusion{x, y, reason})
	}
	return list, nil
}

func settingOf(text string) (setting, bool) {
	name, of, _ := strings.Cut(text, "=")
	i := slices.IndexFunc(dimensions, func(d dimension) bool { return d.name == name })
	if i < 0 {
		return setting{}, false
	}
	v := slices.IndexFunc(dimensions[i].values, func(v option) bool { return v.name == of })
	return setting{i, v}, v >= 0
}

// forbidden is a set of pairs: forbidden[x][y] and forbidden[y][x] are both set.
type forbidden map[setting]map[setting]bool

func forbid() forbidden {
	list, err := exclusions()
	if err != nil {
		panic(err) // a test reads the file first
	}
	f := forbidden{}
	for _, e := range list {
		for _, pair := range [][2]setting{{e.x, e.y}, {e.y, e.x}} {
			if f[pair[0]] == nil {
				f[pair[0]] = map[setting]bool{}
			}
			f[pair[0]][pair[1]] = true
		}
	}
	return f
}

// allows reports whether s may occur together with the values that a row has. Its other values are -1.
func (f forbidden) allows(w row, s setting) bool {
	for dim, v := range w {
		if v >= 0 && dim != s.dim && f[s][setting{dim, v}] {
			return false
		}
	}
	return true
}

// tuple is a combination of values of different dimensions, in order: a pair, or a triple.
type tuple [3]setting

// of returns the tuple of some settings.
func of(all []setting) (t tuple) {
	copy(t[:], all)
	for i := len(all); i < len(t); i++ {
		t[i] = setting{-1, -1}
	}
	return t
}

// tuples calls visit with all combinations of values in a row that has values for all dimensions.
func (w row) tuples(strength int, visit func(tuple)) {
	combine(len(w), strength, func(dims []int) {
		all := make([]setting, 0, strength)
		for _, d := range dims {
			all = append(all, setting{d, w[d]})
		}
		visit(of(all))
	})
}

// combine calls visit with each choice of k of n numbers.
func combine(n, k int, visit func([]int)) {
	var chosen []int
	var next func(from int)
	next = func(from int) {
		if len(chosen) == k {
			visit(chosen)
			return
		}
		for i := from; i < n; i++ {
			chosen = append(chosen, i)
			next(i + 1)
			chosen = chosen[:len(chosen)-1]
		}
	}
	next(0)
}

// required returns all tuples that can occur.
func required(strength int, not forbidden) (list []tuple) {
	combine(len(dimensions), strength, func(dims []int) {
		var all []setting
		var next func()
		next = func() {
			if len(all) == strength {
				list = append(list, of(all))
				return
			}
			d := dims[len(all)]
			for v := range dimensions[d].values {
				s := setting{d, v}
				if slices.ContainsFunc(all, func(other setting) bool { return not[s][other] }) {
					continue
				}
				all = append(all, s)
				next()
				all = all[:len(all)-1]
			}
		}
		next()
	})
	return list
}

// cover returns rows that together have every tuple that can occur. It is always the same: each row begins with the first tuple that
// is missing, and gets the values with the most missing tuples for the other dimensions.
func cover(strength int) (rows []row) {
	not := forbid()
	list := required(strength, not)
	missing := make(map[tuple]bool, len(list))
	for _, t := range list {
		missing[t] = true
	}
	for _, t := range list {
		if !missing[t] {
			continue
		}
		w := make(row, len(dimensions))
		for i := range w {
			w[i] = -1
		}
		for _, s := range t[:strength] {
			w[s.dim] = s.value
		}
		if !w.fill(strength, not, missing, len(rows)) {
			delete(missing, t) // the exclusions of its values leave no value for another dimension: the test names it
			continue
		}
		w.tuples(strength, func(t tuple) { delete(missing, t) })
		rows = append(rows, w)
	}
	return rows
}

// fill gives a row a value for each dimension that has none. shift changes which of several equal values it takes.
func (w row) fill(strength int, not forbidden, missing map[tuple]bool, shift int) bool {
	dim := -1
	best, most := 0, -1
	for d := range w {
		if w[d] >= 0 {
			continue
		}
		dim = d
		n := len(dimensions[d].values)
		for i := range n {
			v := (i + shift) % n
			if s := (setting{d, v}); not.allows(w, s) && w.leaves(not, s) {
				if gain := w.gain(strength, missing, s); gain > most {
					best, most = v, gain
				}
			}
		}
		break
	}
	if dim < 0 {
		return true
	}
	if most < 0 {
		return false
	}
	w[dim] = best
	return w.fill(strength, not, missing, shift)
}

// leaves reports whether, with s, each other dimension still has a value that is allowed.
func (w row) leaves(not forbidden, s setting) bool {
	was := w[s.dim]
	w[s.dim] = s.value
	defer func() { w[s.dim] = was }()
	for d := range w {
		if w[d] < 0 && !slices.ContainsFunc(dimensions[d].values, func(v option) bool {
			return not.allows(w, setting{d, slices.IndexFunc(dimensions[d].values, func(x option) bool { return x.name == v.name })})
		}) {
			return false
		}
	}
	return true
}

// gain returns how many missing tuples s makes with the values that the row has.
func (w row) gain(strength int, missing map[tuple]bool, s setting) (n int) {
	var there []setting
	for d, v := range w {
		if v >= 0 {
			there = append(there, setting{d, v})
		}
	}
	combine(len(there), strength-1, func(chosen []int) {
		all := []setting{s}
		for _, i := range chosen {
			all = append(all, there[i])
		}
		slices.SortFunc(all, func(x, y setting) int { return x.dim - y.dim })
		if missing[of(all)] {
			n++
		}
	})
	return n
}

// rowName returns the name of the plan of a row.
func rowName(strength, i int) string { return fmt.Sprintf("%s/%d", rowNames[strength], i) }

// rowNames are the names of arrays.
var rowNames = map[int]string{2: "pairs", 3: "triples"}

// pairPlans returns the names of the plans of pairs.
func pairPlans() (names []string) {
	for i := range arrays[2]() {
		names = append(names, rowName(2, i))
	}
	return names
}

// rowPlan returns the plan with the name that rowName returns, or nil if there is none.
func rowPlan(name string, seed uint64) *Plan {
	array, number, _ := strings.Cut(name, "/")
	for strength, is := range rowNames {
		i, err := strconv.Atoi(number)
		if is == array && err == nil && i >= 0 && i < len(arrays[strength]()) {
			return arrays[strength]()[i].plan(seed, name)
		}
	}
	return nil
}
