// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/zklock-go/zklock/compare/faults"
	"github.com/zklock-go/zklock/compare/servers"
)

// FaultRun is a run of trials under faults.
type FaultRun struct {
	When     time.Time             `json:"when"`
	Commit   string                `json:"commit"` // of this repository
	Machine  Machine               `json:"machine"`
	Loads    []float64             `json:"loads"`
	Versions []servers.Description `json:"versions"`
	Trials   []faults.Trial        `json:"trials"`
}

// LoadFaults reads an earlier run.
func LoadFaults(file string) (*FaultRun, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var r FaultRun
	return &r, json.Unmarshal(text, &r)
}

// Save writes a run as JSON, with each trial on its own line.
func (r *FaultRun) Save(file string) error {
	head := *r
	head.Trials = nil
	text, err := json.Marshal(head)
	if err != nil {
		return err
	}
	trials, err := lines(r.Trials, ",\n")
	if err != nil {
		return err
	}
	return os.WriteFile(file, fmt.Appendf(nil, "%s[\n%s\n]}\n", bytes.TrimSuffix(text, []byte("null}")), trials), 0o644)
}

// RenderFaults draws a run's pictures next to its file and replaces the generated parts of a page.
func RenderFaults(file, page string) error {
	r, err := LoadFaults(file)
	if err != nil {
		return err
	}
	return render(filepath.Dir(file), r.pictures(), page, r.blocks())
}

// FaultVersions returns the versions of the servers and clients, from Debian's packages and from the build's modules.
func FaultVersions() []servers.Description {
	var all []servers.Description
	for _, p := range [][2]string{{"zookeeper", "ZooKeeper"}, {"etcd-server", "etcd"}, {"redis-server", "Redis"},
		{"libcurator-recipes-java", "Curator"}, {"python3-kazoo", "kazoo"}} {
		out, err := exec.Command("dpkg-query", "-W", "-f", "${Version}", p[0]).Output()
		if err != nil {
			out = []byte("unknown")
		}
		all = append(all, servers.Description{Server: p[1], Version: string(out), Durability: "Debian's package " + p[0]})
	}
	modules := map[string]string{"github.com/go-zookeeper/zk": "go-zookeeper", "go.etcd.io/etcd/client/v3": "etcd concurrency",
		"github.com/go-redsync/redsync/v4": "redsync"}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if name, ok := modules[m.Path]; ok {
				all = append(all, servers.Description{Server: name, Version: m.Version, Durability: m.Path})
			}
		}
	}
	return append(all, servers.Description{Server: "zklock", Version: "this repository"})
}

// BriefTrial returns a trial on one line.
func BriefTrial(t faults.Trial) string {
	if t.Void != "" {
		return "not run: " + t.Void
	}
	text := ""
	if t.Early != nil && *t.Early > 0 {
		text = fmt.Sprintf("notified before the fault in %d attempts | ", *t.Early)
	}
	text += outcome([]faults.Trial{t}, faults.Careful) + " | " + outcome([]faults.Trial{t}, faults.Confident)
	if n := t.Beside(); n > 0 {
		text += fmt.Sprintf(" | %d overlapping grants", n)
	}
	if t.Stuck > 0 {
		text += fmt.Sprintf(" | %d stuck", t.Stuck)
	}
	return fmt.Sprintf("%s | all back after %.1f s | released: %q, refused: %q", text, t.Back(), t.Release, t.Refused)
}

// outcome describes in a few words how all rounds ended for a holder, beginning with the worst.
func outcome(rounds []faults.Trial, p faults.Policy) string {
	var together, needless, lost []float64
	kept := 0
	for _, t := range rounds {
		at, told := t.Stopped(p)
		switch overlap := t.Together(p); {
		case overlap > 0:
			together = append(together, overlap)
		case t.Needless(p):
			needless = append(needless, at)
		case told:
			lost = append(lost, at)
		default:
			kept++
		}
	}
	var parts []string
	say := func(text string, seconds []float64) {
		if len(seconds) > 0 {
			parts = append(parts, fmt.Sprintf(text, between(seconds)))
		}
	}
	say("**two holders for %s s**", together)
	say("notified after %s s", lost)
	say("notified after %s s, although no one else was granted the lock", needless)
	if kept > 0 {
		parts = append(parts, "kept")
	}
	if len(parts) > 1 {
		counts := []int{len(together), len(lost), len(needless), kept}
		counts = slices.DeleteFunc(counts, func(n int) bool { return n == 0 })
		for i := range parts {
			parts[i] = fmt.Sprintf("%d×: %s", counts[i], parts[i])
		}
	}
	return strings.Join(parts, "; ")
}

// between returns the range of the figures.
func between(all []float64) string {
	low, high := fmt.Sprintf("%.1f", slices.Min(all)), fmt.Sprintf("%.1f", slices.Max(all))
	if low == high {
		return low
	}
	return low + "–" + high
}

// leases returns the leases of a run, ordered by their number of trials, the most first.
func (r *FaultRun) leases() []float64 {
	count := map[float64]int{}
	for _, t := range r.Trials {
		count[t.Lease]++
	}
	var all []float64
	for lease := range count {
		all = append(all, lease)
	}
	slices.SortFunc(all, func(a, b float64) int { return count[b] - count[a] })
	return all
}

// rounds returns the trials of one client under one fault, and the reason why some could not be run, or "".
func (r *FaultRun) rounds(lease float64, client, fault string) (run []faults.Trial, void string) {
	for _, t := range r.Trials {
		switch {
		case t.Lease != lease || t.Client != client || t.Fault != fault:
		case t.Void != "":
			void = t.Void
		default:
			run = append(run, t)
		}
	}
	return run, void
}

func (r *FaultRun) blocks() map[string]string {
	blocks := map[string]string{"about": r.about(), "versions": r.versions(), "early": r.early(), "careful": r.matrix(faults.Careful), "confident": r.matrix(faults.Confident),
		"return": r.back(), "longer": r.longer()}
	for _, f := range faults.All {
		blocks[slug(f.Name)] = r.details(f.Name)
	}
	return blocks
}

// AddTo makes a run, which has no trials yet, an addition to an earlier one. Its trials replace those with the same lease. The commit is
// that of the oldest trials that are kept.
func (r *FaultRun) AddTo(earlier *FaultRun, lease float64) {
	r.Loads = earlier.Loads
	r.Trials = slices.DeleteFunc(earlier.Trials, func(t faults.Trial) bool { return t.Lease == lease })
	if len(r.Trials) > 0 {
		r.Commit = earlier.Commit
	}
}

func (r *FaultRun) about() string {
	m, loads := r.Machine, spreadOf(r.Loads)
	lease := r.leases()[0]
	n := 0
	for _, t := range r.Trials {
		if t.Lease == lease {
			n = max(n, t.Round+1)
		}
	}
	return fmt.Sprintf("%d rounds, session timeout or lease %g s; the last run (`make report`) began on %s, and the oldest trials are of commit `%s`. Machine: %d cores, %s of memory, %s, Linux %s, %s. "+
		"Load average (one minute) after each trial: median %s, at most %s.\n",
		n, lease, r.When.Format("2006-01-02 15:04 MST"), r.Commit, m.Cores, m.Memory, m.System, m.Kernel, m.Go, number(loads.median), number(loads.high))
}

// early reports how often each client's holder received a signal before the fault.
func (r *FaultRun) early() string {
	var parts []string
	for _, c := range faults.Clients {
		times, counted := 0, 0
		for _, t := range r.Trials {
			if t.Client == c.Name && t.Early != nil {
				counted++
				times += *t.Early
			}
		}
		if counted > 0 {
			parts = append(parts, fmt.Sprintf("%s %d times in %d trials", c.Name, times, counted))
		}
	}
	if parts == nil {
		return "This run did not count such trials.\n"
	}
	return "Signals before the fault: " + strings.Join(parts, ", ") + ".\n"
}

func (r *FaultRun) versions() string {
	var rows [][]string
	for _, v := range r.Versions {
		rows = append(rows, []string{v.Server, v.Version, v.Durability})
	}
	return table([]string{"server or client", "version", "from"}, rows)
}

// matrix returns the table of outcomes by fault and client.
func (r *FaultRun) matrix(p faults.Policy) string {
	lease := r.leases()[0]
	var rows [][]string
	for _, f := range faults.All {
		row := []string{f.Name}
		for _, c := range faults.Clients {
			row = append(row, r.cell(lease, c.Name, f.Name, func(all []faults.Trial) string { return outcome(all, p) }))
		}
		rows = append(rows, row)
	}
	return table(append([]string{"fault"}, clientNames()...), rows)
}

func (r *FaultRun) cell(lease float64, client, fault string, say func([]faults.Trial) string) string {
	run, void := r.rounds(lease, client, fault)
	switch {
	case len(run) > 0 && void != "":
		return fmt.Sprintf("%s (of %d rounds: %s)", say(run), len(run), void)
	case len(run) > 0:
		return say(run)
	case strings.HasPrefix(void, "its servers"):
		return "does not apply"
	case void != "":
		return "could not be run"
	}
	return "not run"
}

func clientNames() []string {
	var names []string
	for _, c := range faults.Clients {
		names = append(names, c.Name)
	}
	return names
}

// back returns the table of how long contenders took to be granted the lock again after the fault.
func (r *FaultRun) back() string {
	lease := r.leases()[0]
	var rows [][]string
	for _, f := range faults.All {
		row := []string{f.Name}
		for _, c := range faults.Clients {
			row = append(row, r.cell(lease, c.Name, f.Name, backOf))
		}
		rows = append(rows, row)
	}
	return table(append([]string{"fault"}, clientNames()...), rows)
}

func backOf(all []faults.Trial) string {
	var times []float64
	stuck, beside := 0, 0
	for _, t := range all {
		times = append(times, t.Back())
		stuck += t.Stuck
		beside += t.Beside()
	}
	text := between(times) + " s"
	if stuck > 0 {
		text += fmt.Sprintf(", **%d stuck**", stuck)
	}
	if beside > 0 {
		text += fmt.Sprintf(", **%d overlapping grants**", beside)
	}
	return text
}

// longer returns the outcomes with other leases, if there are any.
func (r *FaultRun) longer() string {
	var rows [][]string
	for _, lease := range r.leases()[1:] {
		for _, f := range faults.All {
			row, any := []string{fmt.Sprintf("%g s", lease), f.Name}, false
			for _, c := range faults.Clients {
				row = append(row, r.cell(lease, c.Name, f.Name, func(all []faults.Trial) string { return outcome(all, faults.Careful) }))
				any = any || row[len(row)-1] != "not run"
			}
			if any {
				rows = append(rows, row)
			}
		}
	}
	if rows == nil {
		return "Not run.\n"
	}
	return table(append([]string{"session or lease", "fault"}, clientNames()...), rows)
}

// details returns the picture of a fault, the command that repeats it, and the errors.
func (r *FaultRun) details(fault string) string {
	var refused []string
	for _, c := range faults.Clients {
		run, void := r.rounds(r.leases()[0], c.Name, fault)
		var texts []string
		for _, t := range run {
			if t.Release != "" {
				texts = append(texts, "release: "+code(t.Release))
			}
			for _, text := range t.Refused {
				texts = append(texts, code(text))
			}
		}
		slices.Sort(texts)
		texts = slices.Compact(texts)
		if void != "" {
			texts = append(texts, "not run: "+void)
		}
		if len(texts) > 0 {
			refused = append(refused, fmt.Sprintf("  - %s: %s\n", c.Name, strings.Join(texts[:min(len(texts), 4)], "; ")))
		}
	}
	text := fmt.Sprintf("![Timelines of all clients, %s](results/%s)\n\n- repeat it: `make report ARGS='--only \"%s\"'`\n", fault, pictureName(fault), fault)
	if refused != nil {
		text += "- errors of the libraries instead of a grant or a release:\n" + strings.Join(refused, "")
	}
	return text
}

// varying matches the parts of an error that differ between runs: identifiers and addresses.
var varying = regexp.MustCompile(`[0-9a-f]{8,}(-[0-9a-f]+)*|\d+\.\d+\.\d+\.\d+:\d+|0x[0-9a-f]+`)

func code(text string) string {
	return "`" + strings.ReplaceAll(varying.ReplaceAllString(text, "…"), "`", "'") + "`"
}

func slug(fault string) string { return strings.ReplaceAll(fault, " ", "-") }

func pictureName(fault string) string { return "fault-" + slug(fault) + ".svg" }
