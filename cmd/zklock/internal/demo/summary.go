// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"
)

// summary holds the results of a sale.
type summary struct {
	items, sold int
	together    int  // largest number of workers at work at the same time
	locked      bool // the fields below are set
	handOffs    int
	handOff     time.Duration // median time from a release to the next grant
	ordered     bool          // the lock was granted in the order in which its nodes were created
	afterCrash  time.Duration // from the crash until the next worker held the lock
	afterCut    time.Duration // from the partition until the next worker held the lock
	toldBefore  time.Duration // from when the partitioned worker learned of its loss until the next worker held the lock
}

func summarize(items int, s *sale) summary {
	events := s.log.soFar()
	m := summary{items: items, sold: s.shop.soldSoFar(), together: together(events), ordered: inOrder(events)}
	var handOffs []time.Duration
	for i, e := range events {
		m.locked = m.locked || e.kind == begins && e.node != ""
		next, ok := firstAfter(events[i:], begins)
		if !ok {
			continue
		}
		switch e.kind {
		case ends:
			handOffs = append(handOffs, next.at-e.at)
		case crashes:
			m.afterCrash = next.at - e.at
		case isCutOff:
			m.afterCut = next.at - e.at
			if told, ok := firstAfter(events[i:], isTold); ok {
				m.toldBefore = next.at - told.at
			}
		}
	}
	slices.Sort(handOffs)
	m.handOffs = len(handOffs)
	if m.handOffs > 0 {
		m.handOff = handOffs[m.handOffs/2]
	}
	return m
}

func firstAfter(events []event, k kind) (event, bool) {
	for _, e := range events {
		if e.kind == k {
			return e, true
		}
	}
	return event{}, false
}

// stopsWork reports whether the worker is no longer at work after e. A worker that is cut off works until it learns that its
// lock is lost.
func (e event) stopsWork() bool { return e.kind == ends || e.kind == crashes || e.kind == isTold }

// together returns the largest number of workers that were at work at the same time.
func together(events []event) int {
	most := 0
	working := map[int]bool{}
	for _, e := range events {
		switch {
		case e.kind == begins:
			working[e.worker] = true
		case e.stopsWork():
			delete(working, e.worker)
		}
		most = max(most, len(working))
	}
	return most
}

// inOrder reports whether the lock was granted in the order in which its nodes were created.
func inOrder(events []event) bool {
	return slices.IsSortedFunc(grants(events), func(a, b event) int { return cmp.Compare(sequence(a.node), sequence(b.node)) })
}

func grants(events []event) []event {
	var all []event
	for _, e := range events {
		if e.kind == begins && e.node != "" {
			all = append(all, e)
		}
	}
	return all
}

// sequence returns the sequence number at the end of a node's name, or -1 if there is none.
func sequence(node string) int {
	n, err := strconv.Atoi(node[max(0, len(node)-10):])
	if err != nil {
		return -1
	}
	return n
}

// tableRows returns rows of a label, the value without the lock, and the value with it.
func tableRows(free, locked summary) [][3]string {
	no := "–"
	yes := map[bool]string{true: "yes", false: "NO"}
	return [][3]string{
		{"items", fmt.Sprint(free.items), fmt.Sprint(locked.items)},
		{"sold", fmt.Sprint(free.sold), fmt.Sprint(locked.sold)},
		{"oversold", fmt.Sprint(free.sold - free.items), fmt.Sprint(locked.sold - locked.items)},
		{"max concurrent workers", fmt.Sprint(free.together), fmt.Sprint(locked.together)},
		{"hand-offs", no, fmt.Sprint(locked.handOffs)},
		{"hand-off, median", no, locked.handOff.Round(10 * time.Microsecond).String()},
		{"first come, first served", no, yes[locked.ordered]},
		{"next holder after a crash", no, seconds(locked.afterCrash)},
		{"next holder after a partition", no, seconds(locked.afterCut)},
		{"partitioned worker notified", no, seconds(locked.toldBefore) + " before the next holder"},
	}
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

func printTable(w io.Writer, free, locked summary) {
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "\twithout a lock\twith zklock\t")
	for _, row := range tableRows(free, locked) {
		fmt.Fprintf(table, "%s\t%s\t%s\t\n", row[0], row[1], row[2])
	}
	table.Flush()
}
