// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/zklock-go/zklock/compare/faults"
	"github.com/zklock-go/zklock/compare/ways"
	"github.com/zklock-go/zklock/compare/work"
)

// sampled returns results with a speed figure for each way and round.
func sampled(perRound map[string][]float64) *Results {
	r := &Results{}
	for _, w := range []string{work.Reference, ours, "redis-setnx"} {
		family := "ZooKeeper"
		if w == "redis-setnx" {
			family = "Redis"
		}
		r.Ways = append(r.Ways, ways.Info{Name: w, Family: family})
		for round, v := range perRound[w] {
			r.Samples = append(r.Samples, work.Sample{Work: "uncontended", Way: w, Round: round, Values: map[string]float64{work.OpsPerSecond: v}})
		}
	}
	return r
}

func TestRatioIsTakenWithinEachRound(t *testing.T) {
	// The machine was ten times slower in the second round, so figures of different rounds cannot be compared.
	r := sampled(map[string][]float64{work.Reference: {1000, 100, 1000}, ours: {2000, 200, 2000}})
	got := r.ratio(cell{work: "uncontended", way: ours}, work.OpsPerSecond, work.Reference)
	if got.median != 2 || got.low != 2 || got.high != 2 || got.n != 3 {
		t.Errorf("ratio = %+v, want 2 in each of three rounds", got)
	}
}

func TestRatioNeedsBothInARound(t *testing.T) {
	r := sampled(map[string][]float64{work.Reference: {1000}, ours: {500, 9000}})
	if got := r.ratio(cell{work: "uncontended", way: ours}, work.OpsPerSecond, work.Reference); got.n != 1 || got.median != 0.5 {
		t.Errorf("ratio = %+v, want 0.5 from one round", got)
	}
}

func TestFailedSamplesGiveNoFigureButAreListed(t *testing.T) {
	r := sampled(map[string][]float64{ours: {500}})
	r.Samples = append(r.Samples, work.Sample{Work: "uncontended", Way: ours, Round: 1, Values: map[string]float64{work.OpsPerSecond: 1}, Error: "boom\nmore"})
	if got := r.figure(cell{work: "uncontended", way: ours}, work.OpsPerSecond); got.n != 1 || got.median != 500 {
		t.Errorf("figure = %+v, want 500 from one round", got)
	}
	if got := r.failures(); !strings.Contains(got, "`zklock`: 1 of 2 failed (boom)") {
		t.Errorf("failures = %q", got)
	}
}

func TestBehindListsWaysThatAreFasterByMoreThanNoise(t *testing.T) {
	r := sampled(map[string][]float64{work.Reference: {1000}, ours: {500}, "redis-setnx": {550}})
	got := r.behind()
	if !strings.Contains(got, "faster on ZooKeeper: `go-zookeeper` (2×); faster on other servers: none") {
		t.Errorf("behind = %q", got)
	}
}

// crowded returns results of a work at one size. The figures of a way are grants per second, hand-off and overtaking.
func crowded(name string, size int, figures map[string][3]float64) *Results {
	r := &Results{}
	for _, info := range append(ways.Floors(ways.Endpoints{}), ways.All(ways.Endpoints{})...) {
		r.Ways = append(r.Ways, info.Info())
		f, ok := figures[info.Info().Name]
		if !ok {
			continue
		}
		values := map[string]float64{work.P50: f[1]}
		if f[0] > 0 {
			values[work.OpsPerSecond], values[work.Overtaking] = f[0], f[2]
		}
		r.Samples = append(r.Samples, work.Sample{Work: name, Size: size, Way: info.Info().Name, Values: values})
	}
	return r
}

func TestHandOffsAreComparedWithTheirFloorOnZooKeeperOnly(t *testing.T) {
	r := crowded("contended", 8, map[string][3]float64{work.HandOffFloor: {0, 2, 0}, ours: {1000, 3, 0}, "redis-setnx": {9000, 1, 1}})
	got := r.crowd("contended", "workers")
	for _, want := range []string{
		"| workers | way | grants/s (lowest–highest round) | hand-off p50 ms | to delete+event | overtaking |",
		"| 8 | `delete+event` | – | 2 | 1× | – |",
		"| 8 | `zklock` | 1,000 (1,000–1,000) | 3 | 1.5× | 0 % |",
		"| 8 | `redis-setnx` | 9,000 (9,000–9,000) | 1 | – | 100 % |",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

func TestOneWorkerHasASeparateTable(t *testing.T) {
	r := crowded("latency", 1, map[string][3]float64{ours: {200, 5, 0}})
	if got := r.crowd("latency", "workers"); got != "" {
		t.Errorf("crowd = %q", got)
	}
	if got := r.tables()["latency-alone"]; !strings.Contains(got, "| `zklock` | 200 (200–200) |") {
		t.Errorf("alone = %q", got)
	}
	one := crowded("goroutines", 1, map[string][3]float64{ours: {200, 5, 0}})
	if got := one.crowd("goroutines", "clients"); !strings.Contains(got, "| 1 | `zklock` | 200 (200–200) |") {
		t.Errorf("one client is a crowd of goroutines: %q", got)
	}
}

func TestBriefNamesTheFastestOfEachKind(t *testing.T) {
	r := crowded("contended", 8, map[string][3]float64{work.HandOffFloor: {0, 2, 0}, ours: {1000, 3, 0}, "go-zookeeper": {1200, 3, 0},
		"sql-insert": {1500, 1, 0.8}, "redis-setnx": {9000, 1, 1}})
	for way, sold := range map[string][3]float64{ours: {10, 0, 0}, "redsync": {10, 10, -1}, "sql-advisory": {0, 0, -1}} {
		values := map[string]float64{work.Oversold: sold[0], work.OversoldAsk: sold[1]}
		if sold[2] >= 0 {
			values[work.OversoldTok] = sold[2]
		}
		r.Samples = append(r.Samples, work.Sample{Work: "sale", Fault: work.Paused, Way: way, Values: values})
	}
	got := r.brief()
	for _, want := range []string{
		"| 8 workers want it, each with a client of its own | `redis-setnx` 9,000 | `go-zookeeper` 1,200 | `sql-insert` 1,500 | `zklock` 1,000 |",
		"already in the queue: `sql-insert`, `redis-setnx`.",
		"then writes: `redsync`, `zklock`.",
		"right before it writes: `redsync`.",
		"if the shop refuses old tokens: `zklock`.",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "nobody else") {
		t.Errorf("shows a question that was not measured:\n%s", got)
	}
}

func TestABlockWithoutMeasurementsSaysSo(t *testing.T) {
	for _, name := range []string{"brief", "goroutines", "latency-alone", "latency", "ensemble"} {
		if got := (&Results{}).blocks()[name]; got != notMeasured {
			t.Errorf("%s = %q", name, got)
		}
	}
}

func TestFillReplacesBlocksAndNothingElse(t *testing.T) {
	page := "a\n<!-- generated: x -->\nold\n<!-- end -->\nb\n<!-- generated: y -->\n<!-- end -->\n"
	blocks := map[string]string{"x": "X\n", "y": "Y\n"}
	got, err := fill(page, blocks)
	want := "a\n<!-- generated: x -->\nX\n<!-- end -->\nb\n<!-- generated: y -->\nY\n<!-- end -->\n"
	if err != nil || got != want {
		t.Errorf("fill = %q, %v; want %q", got, err, want)
	}
	if again, err := fill(got, blocks); err != nil || again != want {
		t.Errorf("filling twice changes the page: %q, %v", again, err)
	}
}

func TestFillRefusesAPageThatDoesNotFit(t *testing.T) {
	for name, page := range map[string]string{
		"a block not shown":   "nothing",
		"an unknown block":    "<!-- generated: x -->\n<!-- end --><!-- generated: z -->\n<!-- end -->",
		"a block without end": "<!-- generated: x -->\nold",
	} {
		if _, err := fill(page, map[string]string{"x": "X"}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestThePageFitsTheBlocks(t *testing.T) {
	text, err := os.ReadFile("../comparison.md")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fill(string(text), (&Results{}).blocks()); err != nil {
		t.Error(err)
	}
}

func TestResultsHaveOneSampleALine(t *testing.T) {
	const committed = "../results/results.json"
	want, err := os.ReadFile(committed)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Load(committed)
	if err != nil {
		t.Fatal(err)
	}
	again := filepath.Join(t.TempDir(), "results.json")
	if err := r.Save(again); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(again)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs from the output of Save", committed)
	}
	if n := strings.Count(string(got), "\n  {\"work\":"); n != len(r.Samples) || n == 0 {
		t.Errorf("%d lines with a sample, want %d", n, len(r.Samples))
	}
	read, err := Load(again)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(read, r) {
		t.Error("Load after Save returns other results")
	}
}

func TestThePageIsGeneratedFromTheCommittedResults(t *testing.T) {
	r, err := Load("../results/results.json")
	if os.IsNotExist(err) {
		t.Skip("no results have been committed yet")
	}
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../comparison.md")
	if err != nil {
		t.Fatal(err)
	}
	filled, err := fill(string(text), r.blocks())
	if err != nil {
		t.Fatal(err)
	}
	if filled != string(text) {
		t.Error("compare/comparison.md differs from results.json: run 'go run . --render' in compare")
	}
}

func TestThePageOfTheDuelIsGeneratedFromTheCommittedResults(t *testing.T) {
	r, err := Load("../results/duel.json")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../duel.md")
	if err != nil {
		t.Fatal(err)
	}
	filled, err := fill(string(text), map[string]string{"about": r.about("duel"), "duel": r.Duel()})
	if err != nil {
		t.Fatal(err)
	}
	if filled != string(text) {
		t.Error("compare/duel.md differs from duel.json: run 'go run . duel --render' in compare")
	}
	for _, s := range r.Samples {
		if s.Error != "" {
			t.Errorf("%s %d by %s failed: %s", s.Work, s.Size, s.Way, s.Error)
		}
	}
}

func TestPicturesAreWellFormed(t *testing.T) {
	r := sampled(map[string][]float64{work.Reference: {1000, 900}, ours: {500, 700}, "redis-setnx": {55000, 0}})
	for _, size := range []int{2, 100} {
		for _, name := range []string{"contended", "queue"} {
			r.Samples = append(r.Samples, work.Sample{Work: name, Size: size, Way: ours,
				Values: map[string]float64{work.OpsPerSecond: 10, work.P50: 0.3, work.Requests: 4, work.Overtaking: 0.5}})
		}
	}
	r.Samples = append(r.Samples,
		work.Sample{Work: "crash", Way: ours, Values: map[string]float64{work.Recovery: 4.5}},
		work.Sample{Work: "sale", Fault: work.Paused, Way: ours, Values: map[string]float64{work.Oversold: 10, work.OversoldTok: 0}},
		work.Sample{Work: "sale", Fault: work.CutOff, Way: work.Reference, Error: "<&>"})
	pictures := r.pictures()
	for _, name := range []string{"uncontended", "contended", "fairness", "queue", "herd", "crash", "sale"} {
		picture, ok := pictures[name]
		if !ok {
			t.Errorf("%s is missing", name)
		}
		dec := xml.NewDecoder(strings.NewReader(picture))
		for {
			if _, err := dec.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Errorf("%s: %v", name, err)
				break
			}
		}
	}
}

func TestRenderWritesPicturesAndPage(t *testing.T) {
	dir := t.TempDir()
	page := filepath.Join(dir, "page.md")
	var text strings.Builder
	for name := range (&Results{}).blocks() {
		text.WriteString("<!-- generated: " + name + " -->\n<!-- end -->\n")
	}
	if err := os.WriteFile(page, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	r := sampled(map[string][]float64{work.Reference: {1000}, ours: {500}})
	if err := r.Render(dir, page); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(got), "| `zklock` | 500 (500–500) | 0.5× |") {
		t.Errorf("page: %v\n%s", err, got)
	}
	if _, err := os.Stat(filepath.Join(dir, "uncontended.svg")); err != nil {
		t.Error(err)
	}
}

func TestNumbersHaveThreeDigits(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.01234: "0.0123", 0.5: "0.5", 1: "1", 9.999: "10", 12.34: "12.3", 123.4: "123", 1234.5: "1,230", 12345: "12,300", 999.6: "1000"} {
		if got := number(v); got != want {
			t.Errorf("number(%v) = %s, want %s", v, got, want)
		}
	}
}

func TestFaultTableShowsTheWorstFirstAndTrialsNotRun(t *testing.T) {
	trial := func(client string, signs []faults.Sign, grants ...faults.Grant) faults.Trial {
		return faults.Trial{Client: client, Fault: "leader killed", Lease: 6, Held: -2, Released: 10, Signs: signs, Grants: grants}
	}
	lost := []faults.Sign{{At: 4, Word: ways.Loss}}
	r := &FaultRun{Trials: []faults.Trial{
		trial("Curator", lost, faults.Grant{Who: 1, From: 1, To: 2}), trial("Curator", lost), trial("Curator", nil),
		{Client: "redsync", Fault: "leader killed", Lease: 6, Void: "its servers have no leader and do not know of each other"},
		{Client: "kazoo", Fault: "leader killed", Lease: 6, Void: "no java"},
	}}
	table := r.matrix(faults.Careful)
	for _, want := range []string{
		"| leader killed | 1×: **two holders for 3.0 s**; 1×: notified after 4.0 s, although no one else was granted the lock; 1×: kept | could not be run | not run | not run | not run | does not apply | not run |",
		"| slow links | not run |",
	} {
		if !strings.Contains(table, want) {
			t.Errorf("no %q in\n%s", want, table)
		}
	}
	for name, picture := range r.pictures() {
		if name != "fault-leader-killed.svg" {
			t.Errorf("a picture without trials: %s", name)
		}
		if err := xml.Unmarshal([]byte(picture), new(struct{})); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestThePageShowsHowOftenHoldersWereNotifiedTooEarly(t *testing.T) {
	once, never := 1, 0
	trials := []faults.Trial{{Client: "Curator", Early: &once}, {Client: "Curator", Early: &once, Void: "disturbed"}, {Client: "kazoo", Early: &never}, {Client: "zklock"}}
	if got, want := (&FaultRun{Trials: trials}).early(), "Signals before the fault: Curator 2 times in 2 trials, kazoo 0 times in 1 trials.\n"; got != want {
		t.Errorf("%q, not %q", got, want)
	}
	if got := (&FaultRun{Trials: trials[3:]}).early(); !strings.Contains(got, "did not count") {
		t.Errorf("%q", got)
	}
	if got := BriefTrial(trials[0]); !strings.HasPrefix(got, "notified before the fault in 1 attempts") {
		t.Errorf("%q", got)
	}
	if got := BriefTrial(trials[2]); strings.Contains(got, "before the fault") {
		t.Errorf("%q", got)
	}
}

// TestReportPageMatchesItsTrials draws the page again from the stored trials.
func TestReportPageMatchesItsTrials(t *testing.T) {
	page := filepath.Join("..", "report.md")
	r, err := LoadFaults(filepath.Join("..", "results", "faults.json"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	filled, err := fill(string(text), r.blocks())
	if err != nil || filled != string(text) {
		t.Errorf("compare/report.md differs from faults.json (%v): run 'go run . faults --render' in compare", err)
	}
	for name, picture := range r.pictures() {
		stored, err := os.ReadFile(filepath.Join("..", "results", name))
		if err != nil || string(stored) != picture {
			t.Errorf("%s differs from faults.json (%v)", name, err)
		}
	}
}

func TestAnAdditionKeepsTheCommitOfTheOldestTrials(t *testing.T) {
	earlier := func() *FaultRun {
		return &FaultRun{Commit: "old", Trials: []faults.Trial{{Lease: 6}, {Lease: 15}}}
	}
	added := &FaultRun{Commit: "new"}
	added.AddTo(earlier(), 15)
	if added.Commit != "old" || len(added.Trials) != 1 || added.Trials[0].Lease != 6 {
		t.Errorf("a run in addition to older trials: %+v", added)
	}
	only := earlier()
	only.Trials = only.Trials[1:]
	replaced := &FaultRun{Commit: "new"}
	if replaced.AddTo(only, 15); replaced.Commit != "new" || len(replaced.Trials) != 0 {
		t.Errorf("a run that replaces all trials: %+v", replaced)
	}
}
