// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zklock-go/zklock/compare/ways"
)

// Trial records one client under one fault. Times are in seconds since the fault.
type Trial struct {
	Client   string   `json:"client"`
	Fault    string   `json:"fault"`
	Round    int      `json:"round"`
	Lease    float64  `json:"lease"`
	Held     float64  `json:"held"`     // when the holder was granted the lock
	Signs    []Sign   `json:"signs"`    // the library's signals to the holder until its release
	Released float64  `json:"released"` // when the holder released the lock
	Release  string   `json:"release"`  // the error of the release; empty for success
	Healed   float64  `json:"healed"`   // when the servers were healthy again
	Grants   []Grant  `json:"grants"`   // to the others, and to the holder after Released
	Refused  []string `json:"refused"`  // distinct errors that contenders got instead of a grant
	Stuck    int      `json:"stuck"`    // number of contenders that were not granted the lock after Released
	Void     string   `json:"void"`     // why the trial does not apply or could not be run
	// Early counts the attempts at this trial in which the holder received a signal before the fault. It is nil in older
	// results, which do not have this count.
	Early *int `json:"early,omitempty"`
}

// Sign is a signal of a library to the holder.
type Sign struct {
	At   float64   `json:"at"`
	Word ways.Sign `json:"word"`
}

// Grant is one hold of a contender, from the return of Lock to the call of Unlock.
type Grant struct {
	Who  int     `json:"who"`
	From float64 `json:"from"`
	To   float64 `json:"to"`
}

const (
	waiting   = 3                      // contenders in addition to the holder
	turn      = 100 * time.Millisecond // how long each holds
	settled   = 3 * time.Second
	before    = 1500 * time.Millisecond
	phase     = 700 * time.Millisecond // the fault comes this much later in each round
	after     = 2 * time.Second        // from healthy servers to the holder's release
	patience  = 30 * time.Second       // limit for a grant to every contender after that
	answering = 5 * time.Second        // limit for a release
)

// trial runs one client on a stage.
type trial struct {
	client  Client
	holder  contender
	others  []contender
	peers   []*ways.Peer
	began   time.Time // the holder's grant
	stopped chan struct{}

	mu     sync.Mutex
	record Trial        // guarded by mu; times are since began, until finish converts them
	last   map[int]bool // guarded by mu; contenders that were granted the lock since the holder's release
	all    chan struct{}
}

type contender struct {
	session ways.Session
	locker  ways.Locker
}

// newTrial starts the client's two processes, one for the holder and one for the others.
func newTrial(ctx context.Context, c Client, s *stage) (*trial, error) {
	t := &trial{client: c, stopped: make(chan struct{}), last: map[int]bool{}, all: make(chan struct{})}
	holders, err := t.open(ctx, s.holder(), 1)
	if err != nil {
		return t, fmt.Errorf("holder: %w", err)
	}
	t.holder = holders[0]
	if t.others, err = t.open(ctx, s.others(c), waiting); err != nil {
		return t, fmt.Errorf("others: %w", err)
	}
	return t, nil
}

func (t *trial) lock(ctx context.Context) error {
	if err := t.holder.locker.Lock(ctx); err != nil {
		return fmt.Errorf("%s: holder: %w", t.client.Name, err)
	}
	t.began = time.Now()
	return nil
}

// told reports whether the holder has received a signal.
func (t *trial) told() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.record.Signs) > 0
}

// open starts a process with some sessions.
func (t *trial) open(ctx context.Context, at ways.Endpoints, sessions int) ([]contender, error) {
	way, err := ways.Named(t.client.Way, at)
	if err != nil {
		return nil, err
	}
	peer, err := ways.Spawn(way, at)
	if err != nil {
		return nil, err
	}
	t.peers = append(t.peers, peer)
	var all []contender
	for range sessions {
		session, err := peer.Open(ctx)
		if err != nil {
			return nil, err
		}
		locker, err := session.Locker(ctx, t.client.Way)
		if err != nil {
			return nil, err
		}
		all = append(all, contender{session, locker})
	}
	return all, nil
}

// close kills the processes, and so ends every call in which a library still waits.
func (t *trial) close() {
	for _, p := range t.peers {
		p.Kill()
	}
}

func (t *trial) now() float64 { return time.Since(t.began).Seconds() }

// run starts the goroutines of a trial and returns. The holder keeps the lock until release is closed while the others
// queue; then all contenders take turns until finish closes stopped. A goroutine whose library does not return ends when
// close kills its process.
func (t *trial) run(ctx context.Context, wg *sync.WaitGroup, release <-chan struct{}) {
	for i, c := range t.others {
		// Owned by the caller, which waits: ends when stopped is closed or the process is killed.
		wg.Go(func() { t.turns(ctx, i+1, c) })
	}
	listening, stopListening := context.WithCancel(ctx)
	teller := t.holder.locker.(ways.Teller)
	// Owned by the caller, which waits: ends with the holder's release.
	wg.Go(func() { t.listen(listening, teller) })
	// Owned by the caller, which waits: ends when stopped is closed or the process is killed.
	wg.Go(func() {
		select {
		case <-release:
		case <-ctx.Done():
		}
		stopListening()
		t.release(ctx)
		t.turns(ctx, 0, t.holder)
	})
}

// listen records the signals of the holder's library up to the first loss.
func (t *trial) listen(ctx context.Context, teller ways.Teller) {
	for ctx.Err() == nil {
		word, err := teller.Sign(ctx)
		if err != nil {
			return
		}
		t.mu.Lock()
		t.record.Signs = append(t.record.Signs, Sign{t.now(), word})
		t.mu.Unlock()
		if word == ways.Loss {
			return
		}
	}
}

func (t *trial) release(ctx context.Context) {
	t.mu.Lock()
	t.record.Released = t.now()
	t.mu.Unlock()
	bounded, cancel := context.WithTimeout(ctx, answering)
	defer cancel()
	if err := t.holder.locker.Unlock(bounded); err != nil {
		t.mu.Lock()
		t.record.Release = oneLine(err)
		t.mu.Unlock()
	}
	t.holder.locker = nil // turn opens another one: some libraries' locks cannot be used again after a loss
}

// turns locks, holds for the duration turn and unlocks, in a loop, until stopped is closed.
func (t *trial) turns(ctx context.Context, who int, c contender) {
	for !t.over() && ctx.Err() == nil {
		if err := t.turn(ctx, who, &c); err != nil {
			t.refuse(err)
			// Some libraries' locks cannot be used again after an error.
			c.locker = nil
			_ = ways.Pause(ctx, turn)
		}
	}
}

func (t *trial) turn(ctx context.Context, who int, c *contender) (err error) {
	if c.locker == nil {
		bounded, cancel := context.WithTimeout(ctx, answering)
		defer cancel()
		if c.locker, err = c.session.Locker(bounded, t.client.Way); err != nil {
			c.locker = nil
			return err
		}
	}
	if err := c.locker.Lock(ctx); err != nil {
		return err
	}
	from := t.now()
	_ = ways.Pause(ctx, turn)
	t.granted(Grant{who, from, t.now()})
	return c.locker.Unlock(ctx)
}

func (t *trial) over() bool {
	select {
	case <-t.stopped:
		return true
	default:
		return false
	}
}

func (t *trial) granted(g Grant) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.record.Grants = append(t.record.Grants, g)
	if t.record.Released > 0 && g.From > t.record.Released && !t.last[g.Who] {
		t.last[g.Who] = true
		if len(t.last) == waiting+1 {
			close(t.all)
		}
	}
}

func (t *trial) refuse(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := oneLine(err)
	const enough = 10
	if len(t.record.Refused) < enough && !slices.Contains(t.record.Refused, text) {
		t.record.Refused = append(t.record.Refused, text)
	}
}

// finish waits until every contender has been granted the lock again, but no longer than patience. It ends the turns and
// returns the record, with times since the fault.
func (t *trial) finish(struck, healthy time.Time) Trial {
	select {
	case <-t.all:
	case <-time.After(patience):
	}
	close(t.stopped)
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.record
	shift := struck.Sub(t.began).Seconds()
	since := func(at float64) float64 { return math.Round(1000*(at-shift)) / 1000 }
	r.Held, r.Released, r.Healed = since(0), since(r.Released), since(healthy.Sub(t.began).Seconds())
	r.Stuck = waiting + 1 - len(t.last)
	for i := range r.Signs {
		r.Signs[i].At = since(r.Signs[i].At)
	}
	for i := range r.Grants {
		r.Grants[i].From, r.Grants[i].To = since(r.Grants[i].From), since(r.Grants[i].To)
	}
	return r
}

// Run runs every fault with every client, round by round, and reports each trial. Within a fault, clients with different
// servers run at the same time.
func Run(ctx context.Context, clients []Client, faults []Fault, rounds int, report func(Trial)) error {
	groups := grouped(clients)
	for round := range rounds {
		for _, f := range faults {
			trials := make([][]Trial, len(groups))
			var running sync.WaitGroup
			for i, group := range groups {
				// Owned by Run, which waits for it.
				running.Go(func() { trials[i] = together(ctx, group, f, round) })
			}
			running.Wait()
			if ctx.Err() != nil {
				return ctx.Err()
			}
			for _, t := range slices.Concat(trials...) {
				report(t)
			}
		}
	}
	return nil
}

// disturbed is the error of an attempt in which holders received a signal before the fault. That happens on a busy machine,
// and such an attempt says nothing about the fault.
type disturbed struct{ clients []string }

func (d *disturbed) Error() string {
	return "the holder was disturbed before the fault: " + strings.Join(d.clients, ", ")
}

// attempts is how many times a trial is attempted at most.
const attempts = 4

// together runs one fault for the clients that share servers.
func together(ctx context.Context, group []Client, f Fault, round int) []Trial {
	trials, early, err := undisturbed(func() ([]Trial, error) { return attempt(ctx, group, f, round) })
	if len(trials) < len(group) {
		trials = make([]Trial, len(group))
	}
	for i, c := range group {
		n := early[c.Name]
		trials[i].Client, trials[i].Fault, trials[i].Round, trials[i].Lease, trials[i].Early = c.Name, f.Name, round, ways.Lease.Seconds(), &n
		if err != nil {
			trials[i].Void = oneLine(err)
		}
	}
	return trials
}

// undisturbed calls attempt until no holder received a signal before the fault, but at most attempts times, and returns the
// result of the last call. It also returns, by client, how many attempts were disturbed.
func undisturbed(attempt func() ([]Trial, error)) (trials []Trial, early map[string]int, err error) {
	early = map[string]int{}
	for range attempts {
		trials, err = attempt()
		var d *disturbed
		if !errors.As(err, &d) {
			break
		}
		for _, name := range d.clients {
			early[name]++
		}
	}
	return trials, early, err
}

func attempt(ctx context.Context, group []Client, f Fault, round int) ([]Trial, error) {
	if why := f.why(group[0].Family); why != "" {
		return nil, errors.New(why)
	}
	s, err := openStage(ctx, group[0], f)
	if err != nil {
		return nil, err
	}
	defer s.set.Close()
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	trials := make([]*trial, len(group))
	errs := make([]error, len(group))
	var opening sync.WaitGroup
	for i, c := range group {
		// Owned by attempt, which waits for it.
		opening.Go(func() { trials[i], errs[i] = newTrial(ctx, c, s) })
	}
	opening.Wait()
	defer func() {
		for _, t := range trials {
			t.close()
		}
	}()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	// Starting the processes keeps a small machine busy. Wait, so that it does not affect the timing.
	if err := s.ensemble.Healthy(ctx); err != nil {
		return nil, err
	}
	_ = ways.Pause(ctx, settled)
	for _, t := range trials {
		if err := t.lock(ctx); err != nil {
			return nil, err
		}
	}
	s.openAll()
	return perform(ctx, s, f, round, trials, &wg)
}

// perform runs the trials, causes the fault and ends it.
func perform(ctx context.Context, s *stage, f Fault, round int, trials []*trial, wg *sync.WaitGroup) ([]Trial, error) {
	release := make(chan struct{})
	for _, t := range trials {
		t.run(ctx, wg, release)
	}
	_ = ways.Pause(ctx, before+time.Duration(round)*phase)
	if err := early(trials); err != nil {
		return nil, err
	}
	struck := time.Now()
	if err := f.hurt(ctx, s.ensemble, s.victim); err != nil {
		return nil, fmt.Errorf("the fault itself failed: %w", err)
	}
	if !f.once {
		_ = ways.Pause(ctx, lasts())
	}
	if err := f.heal(ctx, s.ensemble, s.victim); err != nil {
		return nil, fmt.Errorf("the fault's end failed: %w", err)
	}
	if err := s.ensemble.Healthy(ctx); err != nil {
		return nil, fmt.Errorf("the servers did not become healthy again: %w", err)
	}
	healthy := time.Now()
	_ = ways.Pause(ctx, after)
	close(release)
	records := make([]Trial, len(trials))
	var finishing sync.WaitGroup
	for i, t := range trials {
		// Owned by perform, which waits for it.
		finishing.Go(func() { records[i] = t.finish(struck, healthy) })
	}
	finishing.Wait()
	return records, nil
}

// early returns an error that names the clients whose holders have received a sign, or nil if there is none.
func early(trials []*trial) error {
	var d disturbed
	for _, t := range trials {
		if t.told() {
			d.clients = append(d.clients, t.client.Name)
		}
	}
	if d.clients == nil {
		return nil
	}
	return &d
}

func oneLine(err error) string {
	text := err.Error()
	for i, r := range text {
		if r == '\n' || i > 300 {
			return text[:i]
		}
	}
	return text
}
