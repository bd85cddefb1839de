package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var (
	root = flag.String("root", ".", "the module's directory")
	only = flag.String("only", "", "the files whose names match this pattern only")
	long = flag.Duration("timeout", 10*time.Minute, "how long the tests of a mutation may take at most; one that takes longer is found")

	planted = flag.Int("plant", 0, "plant so many defects instead, and print what finds each")
	seed    = flag.Uint64("seed", 1, "the seed from which they are drawn")
	search  = flag.Duration("search", 10*time.Minute, "how long the simulator looks for one that no test of a commit finds")
)

// A subject is a file, and the root package's tests that its mutations are shown to first, after all tests of its own
// package. What these do not notice is shown to all tests of the root package.
type subject struct {
	file, tests string // a pattern; "" means that its own package's tests are enough
}

// shows returns the directories of the tests that look at the file's mutations, each with the pattern of their names.
func (s subject) shows(root string) (list []shown) {
	if own := filepath.Dir(s.file); own != "." {
		if names, _ := filepath.Glob(filepath.Join(root, own, "*_test.go")); len(names) > 0 { // the pattern is a good one
			list = append(list, shown{own, "."})
		}
	}
	if s.tests != "" {
		list = append(list, shown{".", s.tests + everywhere}, shown{".", "."})
	}
	return list
}

// A shown is a directory with a pattern of its tests.
type shown struct{ in, tests string }

// everywhere are tests of the root package that notice much in most files.
const everywhere = "|TestThoseWhoGiveUpAroundAWaiter|TestATryIsRefusedWhere"

var subjects = []subject{
	{file: "internal/node/order.go", tests: "Order|Entr|Counter|Number|Curator|Token|Fuzz"},
	{file: "internal/node/names.go", tests: "Order|Entr|Counter|Number|Curator|Fuzz|Name"},
	{file: "internal/node/rules.go", tests: "Reader|Writer|RWMutex|Downgrade"},
	{file: "internal/queue/alone.go", tests: "Counts|Alone|MadeAnew|Expected|Forgotten|Uncontended"},
	{file: "internal/queue/batch.go", tests: "Batch|Permits|Semaphore"},
	{file: "internal/queue/note.go", tests: "Note|HandOff|AReleaseWakes|GivesUp|GiveUp"},
	{file: "internal/queue/handoff.go", tests: "Note|HandOff|AReleaseWakes|GivesUp|GiveUp|Curator|Withheld|TryLock"},
	{file: "internal/session/pending.go", tests: "LostCreate|RunsLate|Ghost|Imitated|Epoch"},
	{file: "internal/node/record.go", tests: "LockDelay|Record|Delay"},
	{file: "internal/queue/delay.go", tests: "LockDelay|Record|Delay"},
	{file: "internal/queue/memory.go", tests: "Counts|Alone|MadeAnew|Expected|Note"},
	{file: "internal/queue/permits.go", tests: "Permits|Semaphore|Resize|Batch|Limit"},
	{file: "slots/slots.go", tests: "Slot|Mark"},
	{file: "slots/marks.go", tests: "Slot|Mark"},
	{file: "failstop.go", tests: "WarnsBefore|DoesNotStopEnds|ToldToStop|FailStop|Function"},
	{file: "internal/lease/lease.go"},
	{file: "internal/lease/rhythm.go"},
	{file: "internal/lease/claims.go"},
	{file: "internal/lease/clock.go"},
}

// A workshop has test binaries in which every mutation can be switched on.
type workshop struct {
	dir       string
	binaries  map[string]string     // by the directory of the tests
	mutations map[string][]mutation // by file
	sound     map[shown]soundRun
}

// A soundRun is what tests do when no mutation is switched on.
type soundRun struct {
	took   time.Duration
	passed map[int]bool // the mutations that they come past; what they come past in some runs only may be missing, and is listed as not reached
}

// limit is how long these tests may take when a mutation is switched on. One that makes them take longer counts as noticed.
func (r soundRun) limit() time.Duration { return min(*long, 10*time.Second+4*r.took) }

// switches is what a mutated package gets besides.
const switches = `package %s

import (
	"fmt"
	"os"
	"strconv"
	"sync"
)

var (
	mutation, _ = strconv.Atoi(os.Getenv("MUTATION"))
	mutations   sync.Map
)

func mutated(n int) bool {
	if mutation == 0 {
		noteMutation(n)
	}
	return n == mutation
}

func noteMutation(n int) {
	if _, before := mutations.LoadOrStore(n, true); before {
		return
	}
	if f, err := os.OpenFile(os.Getenv("PASSED"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
		_, _ = fmt.Fprintln(f, n)
		_ = f.Close()
	}
}

func mutatedTo[T any](n int, is, was T) T {
	if mutated(n) {
		return is
	}
	return was
}
`

func openWorkshop() (*workshop, error) {
	dir, err := os.MkdirTemp("", "survivors")
	return &workshop{dir: dir, binaries: map[string]string{}, mutations: map[string][]mutation{}, sound: map[shown]soundRun{}}, err
}

func newWorkshop(root string, pattern *regexp.Regexp) (*workshop, error) {
	w, err := openWorkshop()
	if err != nil {
		return nil, err
	}
	texts := map[string]string{}
	next := 1
	for _, s := range subjects {
		text, err := os.ReadFile(filepath.Join(root, s.file))
		if err != nil {
			return nil, err
		}
		if !pattern.MatchString(s.file) {
			continue
		}
		if texts[s.file], w.mutations[s.file], err = mutate(s.file, string(text), next); err != nil {
			return nil, err
		}
		next += len(w.mutations[s.file])
		texts[filepath.Join(filepath.Dir(s.file), "mutated.go")] = fmt.Sprintf(switches, packageOf.FindSubmatch(text)[1])
		for _, x := range s.shows(root) {
			if w.binaries[x.in] == "" {
				w.binaries[x.in] = filepath.Join(w.dir, fmt.Sprint(len(w.binaries), ".test"))
			}
		}
	}
	return w, w.build(root, texts)
}

var packageOf = regexp.MustCompile(`(?m)^package (\w+)$`)

// build makes the test binaries, with these files in place of the module's own.
func (w *workshop) build(root string, texts map[string]string) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	replace := map[string]string{}
	for name, text := range texts {
		to := filepath.Join(w.dir, strings.ReplaceAll(name, "/", "-"))
		replace[filepath.Join(root, name)] = to
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			return err
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	list := filepath.Join(w.dir, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		return err
	}
	for in, binary := range w.binaries {
		build := exec.Command("go", "test", "-c", "-vet=off", "-overlay", list, "-o", binary, "./"+in)
		build.Dir = root
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
	}
	return nil
}

// survivors returns the mutations of a file that its tests do not notice, each with what is known of it.
func (w *workshop) survivors(s subject) (found []survivor, err error) {
	start := time.Now()
	for _, x := range s.shows(*root) {
		if err := w.tryOut(x); err != nil {
			return nil, fmt.Errorf("%s: %w", s.file, err)
		}
	}
	for _, m := range w.mutations[s.file] {
		outcome := w.run(s, m.Number)
		if outcome == noticed {
			continue
		}
		fmt.Printf("%s:%d: %s (%s)\n", m.File, m.Line, m, outcome)
		found = append(found, survivor{what: m.String(), how: outcome})
	}
	fmt.Printf("%s: %d of %d survive, %v\n", s.file, len(found), len(w.mutations[s.file]), time.Since(start).Round(time.Second))
	return found, nil
}

const (
	noticed   = "noticed"
	unnoticed = "not noticed"
	unreached = "not reached"
)

// run runs the tests that come past a mutation with that mutation, until one fails.
func (w *workshop) run(s subject, number int) (outcome string) {
	outcome = unreached
	for _, x := range s.shows(*root) {
		if !w.sound[x].passed[number] {
			continue
		}
		if _, err := w.test(x, w.sound[x].limit(), fmt.Sprint("MUTATION=", number)); err != nil {
			return noticed
		}
		outcome = unnoticed
	}
	return outcome
}

// tryOut runs tests without a mutation, and remembers what they do.
func (w *workshop) tryOut(x shown) error {
	if _, done := w.sound[x]; done {
		return nil
	}
	list := filepath.Join(w.dir, fmt.Sprint("passed", len(w.sound)))
	start := time.Now()
	if out, err := w.test(x, *long, "MUTATION=0", "PASSED="+list); err != nil {
		return fmt.Errorf("tests %s in %s fail without a mutation: %s", x.tests, x.in, out)
	}
	r := soundRun{took: time.Since(start), passed: map[int]bool{}}
	text, err := os.ReadFile(list)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	for _, word := range strings.Fields(string(text)) {
		n, err := strconv.Atoi(word)
		if err != nil {
			return err
		}
		r.passed[n] = true
	}
	w.sound[x] = r
	return nil
}

// test runs the tests of one directory.
func (w *workshop) test(x shown, limit time.Duration, env ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, w.binaries[x.in], "-test.run", x.tests, "-test.short", "-test.failfast")
	cmd.Dir = filepath.Join(*root, x.in)
	cmd.Env = append(os.Environ(), env...)
	return cmd.CombinedOutput()
}
