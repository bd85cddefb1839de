// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"errors"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/zklock-go/zklock/compare/servers"
	"github.com/zklock-go/zklock/compare/ways"
)

var epoch = time.Unix(1000, 0)

func at(ms int) time.Time { return epoch.Add(time.Duration(ms) * time.Millisecond) }

// took returns a turn of contender who, with the times in milliseconds.
func took(who, asked, got, given int) turn {
	return turn{who: who, asked: at(asked), got: at(got), giving: at(given), given: at(given + 1)}
}

func TestOvertakingsCountsGrantsThatOvertookAQueuedContender(t *testing.T) {
	fair := []turn{took(1, 0, 2, 110), took(2, 50, 120, 130), took(1, 111, 140, 150)}
	if got := overtakings(fair, fair); got != 0 {
		t.Errorf("in the order of asking: %v", got)
	}
	// Contender 2 asks at 50 and is granted last. Both later grants of 1 overtake it; the first grant of 1 does not.
	unfair := []turn{took(1, 0, 2, 110), took(1, 111, 120, 130), took(1, 131, 140, 150), took(2, 50, 200, 210)}
	if got := overtakings(unfair, unfair); got != 0.5 {
		t.Errorf("two of four overtake: %v", got)
	}
	// A contender that was never granted the lock was overtaken, too.
	starved := append(slices.Clone(unfair[:3]), turn{who: 3, asked: at(10)})
	if got := overtakings(unfair[:3], starved); math.Abs(got-2.0/3) > 1e-9 {
		t.Errorf("two of three overtake a contender that is never granted the lock: %v", got)
	}
}

// If two contenders ask within the time of the quickest grant, the server may have received either request first.
func TestOvertakingsIgnoresCallsAtTheSameTime(t *testing.T) {
	for apart, want := range map[int]float64{2: 0, 3: 1. / 3} {
		turns := []turn{took(3, 0, 2, 100), took(2, 10+apart, 110, 111), took(1, 10, 120, 130)}
		if got := overtakings(turns, turns); got != want {
			t.Errorf("asked %d ms apart, and the quickest grant took 2: %v", apart, got)
		}
	}
}

func TestHandOffsNeedAWaiter(t *testing.T) {
	turns := []turn{took(1, 0, 10, 20), took(2, 5, 23, 30), took(3, 40, 45, 50)}
	got := handOffs(turns)
	if len(got) != 1 || got[0] != 3*time.Millisecond {
		t.Errorf("hand-offs = %v, want one of 3ms", got)
	}
}

func TestJainIsOneForEqualSharesAndOneNthForAMonopoly(t *testing.T) {
	if got := jain([]float64{7, 7, 7, 7}); got != 1 {
		t.Errorf("equal: %v", got)
	}
	if got := jain([]float64{9, 0, 0, 0}); got != 0.25 {
		t.Errorf("monopoly: %v", got)
	}
	shares := shares([]turn{took(1, 0, 1, 2)}, []turn{took(1, 0, 1, 2), {who: 2, asked: at(0)}})
	if len(shares) != 2 {
		t.Errorf("a contender without a grant is not counted: %v", shares)
	}
}

func TestSummarizeCountsTheWindowOnly(t *testing.T) {
	turns := []turn{took(1, 0, 5, 6), took(1, 10, 110, 112), took(1, 113, 150, 152), took(1, 200, 300, 301)}
	values := summarize(turns, at(100), at(200), false)
	if got := values[OpsPerSecond]; got != 20 {
		t.Errorf("two grants in 100 ms: %v/s", got)
	}
	if got := values[P99]; got != 103 {
		t.Errorf("p99 of the cycles: %v", got)
	}
	if values := summarize(turns, at(400), at(500), true); values[OpsPerSecond] != 0 || len(values) != 1 {
		t.Errorf("nothing granted: %v", values)
	}
}

func TestQuantileAndMedian(t *testing.T) {
	sorted := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	if q := quantile(sorted, 0.5); q != 5 {
		t.Errorf("p50 = %d", q)
	}
	if q := quantile(sorted, 0.99); q != 10 {
		t.Errorf("p99 = %d", q)
	}
	if m := Median([]float64{4, 1, 3}); m != 3 {
		t.Errorf("median of three = %v", m)
	}
	if m := Median([]float64{4, 1, 3, 2}); m != 2.5 {
		t.Errorf("median of four = %v", m)
	}
	if m := Median(nil); !math.IsNaN(m) {
		t.Errorf("median of nothing = %v", m)
	}
}

//zklock:promise A13
func TestShopOversellsOnAStaleWriteUnlessFenced(t *testing.T) {
	for _, fenced := range []bool{false, true} {
		s := newShop(fenced)
		stale := s.read(1) // by the first buyer, who is slow
		for token := int64(2); !s.soldOut(); token++ {
			s.order(s.read(token), token)
		}
		if took := s.order(stale, 1); took == fenced {
			t.Errorf("fenced %v: stale write accepted: %v", fenced, took)
		}
		for token := int64(100); !s.soldOut(); token++ {
			s.order(s.read(token), token)
		}
		want := map[bool]int{false: stockAtOpening, true: 0}[fenced]
		if got := s.oversold(); got != want {
			t.Errorf("fenced %v: oversold %d, want %d", fenced, got, want)
		}
	}
}

func TestShopRefusesATokenOlderThanThatOfARead(t *testing.T) {
	s := newShop(true)
	seen := s.read(1)
	s.read(2)
	if s.order(seen, 1) {
		t.Error("accepted, although a newer holder has read")
	}
}

func TestEveryPlannedWorkHasSamples(t *testing.T) {
	full, quick := Full(), Quick()
	if full.Rounds < 6 {
		t.Errorf("medians of %d rounds", full.Rounds)
	}
	if full.Samples() <= quick.Samples() || quick.Samples() == 0 {
		t.Errorf("full %d, quick %d", full.Samples(), quick.Samples())
	}
	for _, name := range Names {
		plan := full
		plan.Only = []string{name}
		if plan.Samples() == 0 {
			t.Errorf("%s: none", name)
		}
	}
	for _, name := range Duel().Only {
		plan := Duel()
		plan.Only = []string{name}
		if plan.Samples() == 0 {
			t.Errorf("duel, %s: none", name)
		}
	}
}

func TestSomeWorksMeasureOnlySomeWays(t *testing.T) {
	all := ways.All(ways.Endpoints{})
	if got := sharing(all); len(got) != len(shareClients) {
		t.Errorf("%d ways share clients, want the %d that are named", len(got), len(shareClients))
	}
	for _, w := range replicated(all) {
		if family := w.Info().Family; family != "etcd" && family != "ZooKeeper" {
			t.Errorf("an ensemble of %s", family)
		}
	}
	alone := Plan{Rounds: 1, Clients: []int{1}, Members: []int{8}, Ways: []string{"memcached-add"}}
	for _, name := range []string{"goroutines", "ensemble"} {
		alone.Only = []string{name}
		if n := alone.Samples(); n != 0 {
			t.Errorf("%s: %d samples of a way that is not measured in it", name, n)
		}
	}
}

func TestReachedReturnsEveryServerAndTheErrors(t *testing.T) {
	process := func(name string) *servers.Process { return &servers.Process{Name: name, Addr: name} }
	singles := &servers.Singles{Postgres: process("pg"), Redis: process("redis"), Memcached: process("mc"), Etcd: process("etcd"), ZooKeeper: process("zk"),
		Redlock: []*servers.Process{process("r1"), process("r2")}}
	far := func(p *servers.Process) (string, error) { return "far-" + p.Name, nil }
	at, err := reached(singles, far)
	want := ways.Endpoints{Postgres: "far-pg", Redis: "far-redis", Memcached: "far-mc", Etcd: []string{"far-etcd"}, ZooKeeper: []string{"far-zk"},
		Redlock: []string{"far-r1", "far-r2"}}
	if err != nil || !reflect.DeepEqual(at, want) {
		t.Errorf("reached = %+v, %v", at, err)
	}
	broken := errors.New("no port left")
	if _, err := reached(singles, func(p *servers.Process) (string, error) {
		if p.Name == "etcd" {
			return "", broken
		}
		return far(p)
	}); !errors.Is(err, broken) {
		t.Errorf("error = %v", err)
	}
}

// unreachable is a way whose Open and Locker fail and also return values, which must not be used.
type unreachable struct {
	ways.Way
	opens int // number of sessions that Open opens before it fails
}

func (u *unreachable) Open(context.Context) (ways.Session, error) {
	if u.opens--; u.opens < 0 {
		return (*noSession)(nil), errors.New("no server")
	}
	return &noSession{}, nil
}

type noSession struct{ closed bool }

func (s *noSession) Close() error { s.closed = true; return nil }

func (s *noSession) Locker(context.Context, string) (ways.Locker, error) {
	return struct{ ways.Locker }{}, errors.New("no server")
}

func TestAResultThatCameWithAnErrorIsNotClosed(t *testing.T) {
	for _, opens := range []int{0, 1} {
		f, err := assemble(t.Context(), &unreachable{opens: opens}, 1, 1, []string{"a"})
		if err == nil {
			t.Error("assemble returned no error")
		}
		f.close()
	}
}
