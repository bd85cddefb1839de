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

// Trial is one client under one fault. Moments are seconds since the fault.
type Trial struct {
	Client   string   `json:"client"`
	Fault    string   `json:"fault"`
	Round    int      `json:"round"`
	Lease    float64  `json:"lease"`
	Held     float64  `json:"held"`     // when the holder was granted the lock
	Signs    []Sign   `json:"signs"`    // what its library told it until it released
	Released float64  `json:"released"` // when it gave the lock back
	Release  string   `json:"release"`  // what its library answered; empty for success
	Healed   float64  `json:"healed"`   // when the servers were healthy again
	Grants   []Grant  `json:"grants"`   // of the others, and of the holder after Released
	Refused  []string `json:"refused"`  // what the others' libraries answered instead of a grant, each text once
	Stuck    int      `json:"stuck"`    // how many contenders were granted nothing after Released
	Void     string   `json:"void"`     // why it could not be run, or was not applicable
	// Early counts the attempts at this trial in which the holder was told something before the fault. It is nil in
	// results of a time when nobody counted.
	Early *int `json:"early,omitempty"`
}

// Sign is what a library told the holder.
type Sign struct {
	At   float64   `json:"at"`
	Word ways.Sign `json:"word"`
}

// Grant is one turn of a contender, from the answer to its request until it asked for the release.
type Grant struct {
	Who  int     `json:"who"`
	From float64 `json:"from"`
	To   float64 `json:"to"`
}

const (
	waiting   = 3                      // contenders besides the holder
	turn      = 100 * time.Millisecond // how long each holds
	settled   = 3 * time.Second
	before    = 1500 * time.Millisecond
	phase     = 700 * time.Millisecond // between the rounds' moments of the fault
	after     = 2 * time.Second        // from the servers' health to the holder's release
	patience  = 30 * time.Second       // for a grant to everybody after that
	answering = 5 * time.Second        // for a release
)

// trial is one client's part on a stage.
type trial struct {
	client  Client
	holder  contender
	others  []contender
	peers   []*ways.Peer
	began   time.Time // the holder's grant
	stopped chan struct{}

	mu     sync.Mutex
	record Trial        // guarded by mu; moments since began until finish
	last   map[int]bool // guarded by mu; who was granted the lock since the holder's release
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

// told reports whether the holder has been told anything.
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

// close ends the processes, and with them whatever a library is waiting for.
func (t *trial) close() {
	for _, p := range t.peers {
		p.Kill()
	}
}

func (t *trial) now() float64 { return time.Since(t.began).Seconds() }

// run holds the lock until release is closed while others queue, and lets all take turns until stop is closed. It returns
// when the record is complete; goroutines that a library does not let go end with the processes, in close.
func (t *trial) run(ctx context.Context, wg *sync.WaitGroup, release <-chan struct{}) {
	for i, c := range t.others {
		wg.Add(1)
		// Owned by the caller, who closes the processes and waits: ends with stopped or with the process.
		go func() {
			defer wg.Done()
			t.turns(ctx, i+1, c)
		}()
	}
	listening, deaf := context.WithCancel(ctx)
	teller := t.holder.locker.(ways.Teller)
	wg.Add(2)
	// Owned like those above: ends with the release.
	go func() {
		defer wg.Done()
		t.listen(listening, teller)
	}()
	// Owned like those above: ends with stopped or with the process.
	go func() {
		defer wg.Done()
		select {
		case <-release:
		case <-ctx.Done():
		}
		deaf()
		t.release(ctx)
		t.turns(ctx, 0, t.holder)
	}()
}

// listen records what the holder's library tells.
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
	t.holder.locker = nil // as good as new: some libraries' locks cannot be used again after a loss
}

// turns locks, holds for a moment and unlocks until stopped.
func (t *trial) turns(ctx context.Context, who int, c contender) {
	for !t.over() && ctx.Err() == nil {
		if err := t.turn(ctx, who, &c); err != nil {
			t.refuse(err)
			// Some libraries' locks cannot be used again after an error.
			c.locker = nil
			sleep(ctx, turn)
		}
	}
}

// sleep waits for d, or for the end of ctx if that comes first.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
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
	sleep(ctx, turn)
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
	for _, known := range t.record.Refused {
		if known == text {
			return
		}
	}
	const enough = 10
	if len(t.record.Refused) < enough {
		t.record.Refused = append(t.record.Refused, text)
	}
}

// finish waits until everybody has been granted the lock again, or for as long as patience lasts, and returns the record
// with moments since the fault.
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

// Run puts the clients under the faults, round after round, and reports each trial. Those that do not share servers are
// under the same fault side by side.
func Run(ctx context.Context, clients []Client, faults []Fault, rounds int, report func(Trial)) error {
	groups := grouped(clients)
	for round := range rounds {
		for _, f := range faults {
			trials := make([][]Trial, len(groups))
			var running sync.WaitGroup
			for i, group := range groups {
				running.Add(1)
				// Owned by Run, which waits for it.
				go func() {
					defer running.Done()
					trials[i] = together(ctx, group, f, round)
				}()
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

// disturbed is the error of an attempt in which holders were told something before the fault: a busy machine's doing, and
// no trial of the fault.
type disturbed struct{ clients []string }

func (d *disturbed) Error() string {
	return "the holder was disturbed before the fault: " + strings.Join(d.clients, ", ")
}

// attempts is how often a trial is begun.
const attempts = 4

// together puts clients that share servers under one fault at once.
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

// undisturbed returns the outcome of the first attempt in which no holder was told anything before the fault, or of
// the last one. It also returns how often a holder of each client was told something.
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
		opening.Add(1)
		// Owned by attempt, which waits for it.
		go func() {
			defer opening.Done()
			trials[i], errs[i] = newTrial(ctx, c, s)
		}()
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
	// Starting all this keeps a small machine busy, and what comes now is about time.
	if err := s.ensemble.Healthy(ctx); err != nil {
		return nil, err
	}
	sleep(ctx, settled)
	for _, t := range trials {
		if err := t.lock(ctx); err != nil {
			return nil, err
		}
	}
	s.openAll()
	return perform(ctx, s, f, round, trials, &wg)
}

// perform hurts and heals the servers while the trials run.
func perform(ctx context.Context, s *stage, f Fault, round int, trials []*trial, wg *sync.WaitGroup) ([]Trial, error) {
	release := make(chan struct{})
	for _, t := range trials {
		t.run(ctx, wg, release)
	}
	sleep(ctx, before+time.Duration(round)*phase)
	if err := early(trials); err != nil {
		return nil, err
	}
	struck := time.Now()
	if err := f.hurt(ctx, s.ensemble, s.victim); err != nil {
		return nil, fmt.Errorf("the fault itself failed: %w", err)
	}
	if !f.once {
		sleep(ctx, lasts())
	}
	if err := f.heal(ctx, s.ensemble, s.victim); err != nil {
		return nil, fmt.Errorf("the fault's end failed: %w", err)
	}
	if err := s.ensemble.Healthy(ctx); err != nil {
		return nil, fmt.Errorf("the servers did not become healthy again: %w", err)
	}
	healthy := time.Now()
	sleep(ctx, after)
	close(release)
	records := make([]Trial, len(trials))
	var finishing sync.WaitGroup
	for i, t := range trials {
		finishing.Add(1)
		// Owned by perform, which waits for it.
		go func() {
			defer finishing.Done()
			records[i] = t.finish(struck, healthy)
		}()
	}
	finishing.Wait()
	return records, nil
}

// early returns an error that names the clients whose holders have been told something, nil for none.
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
