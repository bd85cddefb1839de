// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/zklock-go/zklock/compare/work"
)

// ours is the way of this library.
const ours = "zklock"

// noise is the ratio of two medians of the same run from which the page calls one of them faster.
const noise = 1.2

// Render writes the pictures to the directory out. If page is not empty, it replaces the generated parts of that file.
func (r *Results) Render(out, page string) error {
	files := map[string]string{}
	for name, picture := range r.pictures() {
		files[name+".svg"] = picture
	}
	return render(out, files, page, r.blocks())
}

// render writes pictures to the directory out. If page is not empty, it replaces the generated parts of that file.
func render(out string, pictures map[string]string, page string, blocks map[string]string) error {
	for name, picture := range pictures {
		if err := os.WriteFile(filepath.Join(out, name), []byte(picture), 0o644); err != nil {
			return err
		}
	}
	if page == "" {
		return nil
	}
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	filled, err := fill(string(text), blocks)
	if err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	return os.WriteFile(page, []byte(filled), 0o644)
}

// Print writes the tables as text.
func (r *Results) Print(to io.Writer) {
	tables := r.tables()
	for _, name := range []string{"uncontended", "first", "contended", "queue", "many", "goroutines", "latency-alone", "latency", "lines", "ensemble-alone", "ensemble", "crash", "sale", "behind", "brief"} {
		if tables[name] != "" {
			fmt.Fprintf(to, "\n%s\n\n%s", name, tables[name])
		}
	}
}

// Brief returns a sample on one line.
func Brief(s work.Sample) string {
	if s.Error != "" {
		return "failed: " + strings.SplitN(s.Error, "\n", 2)[0]
	}
	var parts []string
	for name, v := range s.Values {
		parts = append(parts, fmt.Sprintf("%s %s", name, number(v)))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// fill replaces the text between "<!-- generated: NAME -->" and "<!-- end -->" by the block of that name. It returns an error
// if the page does not show a block, or names an unknown one.
func fill(text string, blocks map[string]string) (string, error) {
	const open, end = "<!-- generated: ", "<!-- end -->"
	var out strings.Builder
	seen := map[string]bool{}
	for {
		before, rest, found := strings.Cut(text, open)
		out.WriteString(before)
		if !found {
			break
		}
		name, rest, ok := strings.Cut(rest, " -->")
		if !ok {
			return "", fmt.Errorf("a marker has no end")
		}
		_, after, ok := strings.Cut(rest, end)
		if !ok {
			return "", fmt.Errorf("block %q has no end", name)
		}
		block, known := blocks[name]
		if !known {
			return "", fmt.Errorf("unknown block %q", name)
		}
		seen[name] = true
		fmt.Fprintf(&out, "%s%s -->\n%s%s", open, name, block, end)
		text = after
	}
	for name := range blocks {
		if !seen[name] {
			return "", fmt.Errorf("block %q is not shown", name)
		}
	}
	return out.String(), nil
}

// notMeasured replaces an empty block.
const notMeasured = "The run that this page shows did not measure this.\n"

// blocks returns the generated parts of the page by name.
func (r *Results) blocks() map[string]string {
	blocks := r.tables()
	for name, text := range blocks {
		if text == "" {
			blocks[name] = notMeasured
		}
	}
	return blocks
}

// tables returns the generated parts of the page by name, or "" for a part without measurements.
func (r *Results) tables() map[string]string {
	return map[string]string{
		"brief": r.brief(), "about": r.about("compare"), "servers": r.servers(), "ways": r.wayTable(),
		"uncontended": r.single("uncontended", 0), "first": r.single("first", 0), "contended": r.crowd("contended", "workers"),
		"queue": r.crowd("queue", "waiting"), "many": r.single("many", 64),
		"goroutines": r.crowd("goroutines", "clients"), "latency-alone": r.single("latency", alone),
		"latency": r.crowd("latency", "workers"), "lines": r.crowd("lines", "waiting"),
		"ensemble-alone": r.single("ensemble", alone), "ensemble": r.crowd("ensemble", "workers"),
		"crash": r.crashTable(), "sale": r.saleTable(), "behind": r.behind(), "failures": r.failures(),
	}
}

// table returns a Markdown table.
func table(head []string, rows [][]string) string {
	var out strings.Builder
	line := func(cells []string) { fmt.Fprintf(&out, "| %s |\n", strings.Join(cells, " | ")) }
	line(head)
	line(slices.Repeat([]string{"---"}, len(head)))
	for _, row := range rows {
		line(row)
	}
	return out.String()
}

// about describes the run that a make target did.
func (r *Results) about(target string) string {
	m, loads := r.Machine, spreadOf(r.Loads)
	return fmt.Sprintf("Measured by `make %s` on %s, at commit `%s`, in one run of %s: %d rounds (%d of the crash and the sale), %s for each speed measurement, lease or session %s, polling every %s unless the library has its own interval. "+
		"Machine: %s, %d cores, %s of memory, %s, Linux %s, %s. Load average before the start %s; during the run, its own load included, "+
		"median %s and at most %s. If the first of these is not near 0, the machine had other users.\n",
		target, r.When.Format("2006-01-02 15:04 MST"), r.Commit, r.Took, r.Rounds, cmp.Or(r.Repeats, r.Rounds), r.Window, r.Lease, r.Poll,
		m.CPU, m.Cores, m.Memory, m.System, m.Kernel, m.Go, m.LoadAvg, number(loads.median), number(loads.high))
}

func (r *Results) servers() string {
	var rows [][]string
	for _, s := range r.Servers {
		rows = append(rows, []string{s.Server, s.Version, s.Durability})
	}
	return table([]string{"server or client", "version", "durability"}, rows)
}

func (r *Results) wayTable() string {
	var rows [][]string
	for _, w := range r.Ways {
		token, check := "no", w.Check
		if w.Token {
			token = "yes"
		}
		rows = append(rows, []string{"`" + w.Name + "`", w.Family, w.How, token, cmp.Or(check, "none")})
	}
	return table([]string{"way", "server", "how", "fencing token", "how the holder learns of a loss"}, rows)
}

// present returns the ways that have samples of a work, in the order of the page.
func (r *Results) present(name string) []string {
	var list []string
	for _, w := range r.Ways {
		if slices.ContainsFunc(r.Samples, func(s work.Sample) bool { return s.Work == name && s.Way == w.Name }) {
			list = append(list, w.Name)
		}
	}
	return list
}

// tried reports whether a cell has samples, including failed ones.
func (r *Results) tried(c cell) bool {
	n, _ := r.errors(c)
	return n > 0 || len(r.at(c)) > 0
}

// single returns the table of a work without waiters.
func (r *Results) single(name string, size int) string {
	var rows [][]string
	for _, w := range r.present(name) {
		c := cell{work: name, way: w, size: size}
		if !r.tried(c) {
			continue
		}
		rows = append(rows, []string{"`" + w + "`", withRange(r.figure(c, work.OpsPerSecond)),
			times(r.ratio(c, work.OpsPerSecond, work.Reference)), times(r.ratio(c, work.OpsPerSecond, work.Floor)),
			plain(r.figure(c, work.P50)), plain(r.figure(c, work.P99)), plain(r.figure(c, work.Requests)), plain(r.figure(c, work.ClientCPU)), plain(r.figure(c, work.Allocations))})
	}
	if rows == nil {
		return ""
	}
	return tableOfKnown([]string{"way", "lock+unlock/s (lowest–highest round)", "to " + work.Reference, "to " + work.Floor, "p50 ms", "p99 ms", "requests", "client µs", "allocations"}, rows)
}

// alone is the size of the works latency and ensemble with one contender, which have a separate table. For the goroutines
// work, size counts clients, so it has no uncontended case.
const alone = 1

// crowd returns the table of a work with many contenders for one lock.
func (r *Results) crowd(name, unit string) string {
	head := []string{unit, "way", "grants/s (lowest–highest round)", "to " + work.Reference, "hand-off p50 ms", "to " + work.HandOffFloor, "hand-off p99 ms",
		"wait p99 ms", "requests per grant", "client µs", "allocations", "kB a waiter", "Jain", "overtaking", "connections"}
	var rows [][]string
	for _, size := range r.sizes(name) {
		if size == alone && name != "goroutines" {
			continue
		}
		for _, w := range r.present(name) {
			c := cell{work: name, way: w, size: size}
			if !r.tried(c) {
				continue
			}
			rows = append(rows, []string{fmt.Sprint(size), "`" + w + "`", withRange(r.figure(c, work.OpsPerSecond)),
				times(r.ratio(c, work.OpsPerSecond, work.Reference)), plain(r.figure(c, work.P50)), times(r.toHandOffFloor(c)), plain(r.figure(c, work.P99)),
				plain(r.figure(c, work.WaitP99)), plain(r.figure(c, work.Requests)), plain(r.figure(c, work.ClientCPU)), plain(r.figure(c, work.Allocations)), plain(r.figure(c, work.WaiterKB)), plain(r.figure(c, work.Jain)), percent(r.figure(c, work.Overtaking)),
				plain(r.figure(c, work.Connections))})
		}
	}
	if rows == nil {
		return ""
	}
	return tableOfKnown(head, rows)
}

// tableOfKnown returns a table without the columns in which no row has a figure.
func tableOfKnown(head []string, rows [][]string) string {
	for column := len(head) - 1; column >= 0; column-- {
		if slices.ContainsFunc(rows, func(row []string) bool { return row[column] != none }) {
			continue
		}
		head = slices.Delete(head, column, column+1)
		for i := range rows {
			rows[i] = slices.Delete(rows[i], column, column+1)
		}
	}
	return table(head, rows)
}

// toHandOffFloor returns the ratio of a way's hand-offs to the floor. It is empty for ways not on ZooKeeper, which have no
// floor.
func (r *Results) toHandOffFloor(c cell) spread {
	if r.info(c.way).Family != "ZooKeeper" {
		return spread{}
	}
	return r.ratio(c, work.P50, work.HandOffFloor)
}

func (r *Results) crashTable() string {
	var rows [][]string
	for _, w := range r.present("crash") {
		c := cell{work: "crash", way: w}
		rows = append(rows, []string{"`" + w + "`", withRange(r.figure(c, work.Recovery)), times(r.ratio(c, work.Recovery, work.Reference))})
	}
	if rows == nil {
		return ""
	}
	return table([]string{"way", "seconds to the next holder (lowest–highest round)", "to " + work.Reference}, rows)
}

func (r *Results) saleTable() string {
	faults := r.faults()
	if faults == nil {
		return ""
	}
	var rows [][]string
	for _, w := range r.present("sale") {
		row := []string{"`" + w + "`"}
		for _, f := range faults {
			row = append(row, r.sold(cell{work: "sale", fault: f, way: w}))
		}
		rows = append(rows, row)
	}
	return table(append([]string{"way"}, faults...), rows)
}

// sold returns "plain / asking / token" for one cell of the sale, with a dash for a check that the way does not have. It
// returns "" if the fault does not apply to the way's servers.
func (r *Results) sold(c cell) string {
	if len(r.at(c)) == 0 {
		if n, _ := r.errors(c); n > 0 {
			return "failed"
		}
		return ""
	}
	var parts []string
	for _, value := range []string{work.Oversold, work.OversoldAsk, work.OversoldTok} {
		s := r.figure(c, value)
		text := none
		if s.n > 0 {
			text = number(s.median)
			if s.high > s.median {
				text += " (" + number(s.high) + ")"
			}
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, " / ")
}

// behind lists, for every speed measurement and for recovery, the ways that were better than ours by noise or more.
func (r *Results) behind() string {
	var out strings.Builder
	for _, name := range []string{"uncontended", "first", "contended", "queue", "many", "goroutines", "latency", "lines", "ensemble", "crash"} {
		for _, size := range r.sizes(name) {
			r.behindAt(&out, name, size)
		}
	}
	if out.Len() == 0 {
		return ""
	}
	return fmt.Sprintf("A way is listed if its ratio to zklock, as a median over the rounds, is at least %s.\n\n%s", number(noise), out.String())
}

func (r *Results) behindAt(out *strings.Builder, name string, size int) {
	value, better := work.OpsPerSecond, func(ratio float64) float64 { return ratio }
	if name == "crash" {
		value, better = work.Recovery, func(ratio float64) float64 { return 1 / ratio }
	}
	var same, other []string
	for _, w := range r.Ways {
		ratio := r.ratio(cell{work: name, way: w.Name, size: size}, value, ours)
		if w.Name == ours || w.Name == work.Floor || ratio.n == 0 || ratio.median == 0 || better(ratio.median) < noise {
			continue
		}
		text := fmt.Sprintf("`%s` (%s×)", w.Name, number(better(ratio.median)))
		if w.Family == "ZooKeeper" {
			same = append(same, text)
		} else {
			other = append(other, text)
		}
	}
	label := name
	if size > 0 {
		label = fmt.Sprintf("%s, %d", name, size)
	}
	say := func(list []string) string { return cmp.Or(strings.Join(list, ", "), "none") }
	fmt.Fprintf(out, "- %s: faster on ZooKeeper: %s; faster on other servers: %s.\n", label, say(same), say(other))
}

// failures lists the failed measurements.
func (r *Results) failures() string {
	var out strings.Builder
	seen := map[cell]bool{}
	for _, s := range r.Samples {
		c := cell{work: s.Work, fault: s.Fault, way: s.Way, size: s.Size}
		n, example := r.errors(c)
		if n == 0 || seen[c] {
			continue
		}
		seen[c] = true
		what := strings.TrimSpace(fmt.Sprintf("%s %s", s.Work, s.Fault))
		if s.Size > 0 {
			what = fmt.Sprintf("%s %d", what, s.Size)
		}
		fmt.Fprintf(&out, "- %s, `%s`: %d of %d failed (%s)\n", what, s.Way, n, n+len(r.at(c)), strings.SplitN(example, "\n", 2)[0])
	}
	if out.Len() == 0 {
		return "No measurement failed.\n"
	}
	return out.String()
}

// none is shown if there is no figure.
const none = "–"

func plain(s spread) string {
	if s.n == 0 {
		return none
	}
	return number(s.median)
}

func withRange(s spread) string {
	if s.n == 0 {
		return none
	}
	return fmt.Sprintf("%s (%s–%s)", number(s.median), number(s.low), number(s.high))
}

func times(s spread) string {
	if s.n == 0 {
		return none
	}
	return number(s.median) + "×"
}

func percent(s spread) string {
	if s.n == 0 {
		return none
	}
	return fmt.Sprintf("%.0f %%", 100*s.median)
}
