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
	// The machine was ten times slower in the second round: the ratio of the medians would be nonsense.
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

func TestFailedSamplesGiveNoFigureButAreTold(t *testing.T) {
	r := sampled(map[string][]float64{ours: {500}})
	r.Samples = append(r.Samples, work.Sample{Work: "uncontended", Way: ours, Round: 1, Values: map[string]float64{work.OpsPerSecond: 1}, Error: "boom\nmore"})
	if got := r.figure(cell{work: "uncontended", way: ours}, work.OpsPerSecond); got.n != 1 || got.median != 500 {
		t.Errorf("figure = %+v, want 500 from one round", got)
	}
	if got := r.failures(); !strings.Contains(got, "`zklock`: 1 of 2 failed (boom)") {
		t.Errorf("failures = %q", got)
	}
}

func TestBehindNamesWhoeverIsFasterByMoreThanNoise(t *testing.T) {
	r := sampled(map[string][]float64{work.Reference: {1000}, ours: {500}, "redis-setnx": {550}})
	got := r.behind()
	if !strings.Contains(got, "faster on ZooKeeper: `go-zookeeper` (2×); faster on other servers: none") {
		t.Errorf("behind = %q", got)
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
	text, err := os.ReadFile("../../docs/comparison.md")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fill(string(text), (&Results{}).blocks()); err != nil {
		t.Error(err)
	}
}

// The page in the repository is what the committed samples say.
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
		t.Errorf("%s is not as Save writes it", committed)
	}
	if n := strings.Count(string(got), "\n  {\"work\":"); n != len(r.Samples) || n == 0 {
		t.Errorf("%d samples on lines of their own, want %d", n, len(r.Samples))
	}
	read, err := Load(again)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(read, r) {
		t.Error("what Save wrote reads as something else")
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
	text, err := os.ReadFile("../../docs/comparison.md")
	if err != nil {
		t.Fatal(err)
	}
	filled, err := fill(string(text), r.blocks())
	if err != nil {
		t.Fatal(err)
	}
	if filled != string(text) {
		t.Error("docs/comparison.md differs from results.json: run 'go run . --render' in compare")
	}
}

func TestPicturesAreWellFormed(t *testing.T) {
	r := sampled(map[string][]float64{work.Reference: {1000, 900}, ours: {500, 700}, "redis-setnx": {55000, 0}})
	for _, size := range []int{2, 100} {
		for _, name := range []string{"contended", "queue"} {
			r.Samples = append(r.Samples, work.Sample{Work: name, Size: size, Way: ours,
				Values: map[string]float64{work.OpsPerSecond: 10, work.P50: 0.3, work.Requests: 4, work.Inversions: 0.5}})
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
