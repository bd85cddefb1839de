// Package zkprometheus tells Prometheus what happens to zklock's locks. Beside it stand
// a board for Grafana, dashboard.json, and alerting rules, alerts.yaml.
package zkprometheus

import (
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/observe"
)

// Options are a Collector's. Nil means the defaults.
type Options struct {
	// Lock names a lock by its path, in a label "lock". Each name makes time series of
	// its own: give the same few names to many paths. Default: locks are not told apart.
	Lock func(path string) string

	// Labels are constant and on every series. Two collectors in one registry need different ones.
	// None of them is called recipe, lock, outcome, reason or le.
	Labels prometheus.Labels
}

// Collector measures the locks of one client or several: it is for zklock.Options.Observer
// and for a prometheus.Registerer.
//
//	zklock_acquire_duration_seconds  histogram by outcome: acquired, given_up, refused
//	zklock_acquire_behind            histogram, how many were ahead when a contender queued
//	zklock_hold_duration_seconds     histogram by outcome: released, lost, ended
//	zklock_holds                     gauge, held at this moment
//	zklock_lost_total                counter
//	zklock_refused_total             counter by reason: locked, deadlock …, see observe.Reason
//	zklock_heartbeats_missed_total   counter
//
// Each has the label recipe, and lock if Options.Lock is set, but for the heartbeats,
// which are a client's. An attempt that waits is measured when it ends. A client that
// has never held has no series of a recipe; its missed heartbeats are 0 from the start.
type Collector struct {
	lock          func(path string) string
	acquire, hold *prometheus.HistogramVec
	behind        *prometheus.HistogramVec
	holds         *prometheus.GaugeVec
	lost, refused *prometheus.CounterVec
	missed        prometheus.Counter
}

var (
	_ observe.Observer     = (*Collector)(nil)
	_ prometheus.Collector = (*Collector)(nil)
)

// Hand-offs take a fraction of a millisecond, recovery from a crash ten seconds, a queue minutes.
var seconds = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800}

// NewCollector returns a collector that has measured nothing yet, or an error for labels that
// Prometheus does not take.
func NewCollector(opts *Options) (*Collector, error) {
	if opts == nil {
		opts = &Options{}
	}
	for _, own := range []string{"recipe", "lock", "outcome", "reason", "le"} {
		if _, there := opts.Labels[own]; there {
			return nil, fmt.Errorf("zkprometheus: %w: the label %q is the collector's own", zklock.ErrInvalid, own)
		}
	}
	c := newCollector(opts)
	if err := prometheus.NewRegistry().Register(c); err != nil { // it knows the rules for labels
		return nil, fmt.Errorf("zkprometheus: %w: %w", zklock.ErrInvalid, err)
	}
	return c, nil
}

func newCollector(opts *Options) *Collector {
	which := []string{"recipe"}
	if opts.Lock != nil {
		which = append(which, "lock")
	}
	with := func(label string) []string { return append(which[:len(which):len(which)], label) }
	histogram := func(name, help string, buckets []float64, labels []string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets, ConstLabels: opts.Labels}, labels)
	}
	counter := func(name, help string) prometheus.CounterOpts {
		return prometheus.CounterOpts{Name: name, Help: help, ConstLabels: opts.Labels}
	}
	return &Collector{
		lock:    opts.Lock,
		acquire: histogram("zklock_acquire_duration_seconds", "From asking for a lock until the attempt has ended.", seconds, with("outcome")),
		hold:    histogram("zklock_hold_duration_seconds", "For how long a lock was held.", seconds, with("outcome")),
		behind:  histogram("zklock_acquire_behind", "How many contenders were ahead.", []float64{0, 1, 2, 5, 10, 25, 50, 100, 250, 1000}, which),
		holds:   prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "zklock_holds", Help: "Locks held.", ConstLabels: opts.Labels}, which),
		lost:    prometheus.NewCounterVec(counter("zklock_lost_total", "Locks lost while they were held."), which),
		refused: prometheus.NewCounterVec(counter("zklock_refused_total", "Attempts that were refused."), with("reason")),
		missed:  prometheus.NewCounter(counter("zklock_heartbeats_missed_total", "Heartbeats that no quorum has answered.")),
	}
}

func (c *Collector) parts() []prometheus.Collector {
	return []prometheus.Collector{c.acquire, c.hold, c.behind, c.holds, c.lost, c.refused, c.missed}
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, part := range c.parts() {
		part.Describe(ch)
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	for _, part := range c.parts() {
		part.Collect(ch)
	}
}

// Observe implements observe.Observer.
func (c *Collector) Observe(e observe.Event) {
	if e.Kind == observe.HeartbeatMissed {
		c.missed.Inc()
		return
	}
	which := []string{e.Recipe}
	if c.lock != nil {
		which = append(which, strings.ToValidUTF8(c.lock(e.Path), "\uFFFD")) // else Prometheus panics
	}
	took := e.Elapsed.Seconds()
	switch e.Kind {
	case observe.Queued:
		c.behind.WithLabelValues(which...).Observe(float64(e.Behind))
	case observe.Acquired:
		c.acquire.WithLabelValues(append(which, e.Kind.String())...).Observe(took)
		c.holds.WithLabelValues(which...).Inc()
		c.lost.WithLabelValues(which...).Add(0) // so that the first loss is seen as an increase
	case observe.GivenUp:
		c.acquire.WithLabelValues(append(which, e.Kind.String())...).Observe(took)
	case observe.Refused:
		c.acquire.WithLabelValues(append(which, e.Kind.String())...).Observe(took)
		c.refused.WithLabelValues(append(which, observe.Reason(e.Err))...).Inc()
	case observe.Released:
		c.ended(which, e.Kind.String(), took)
	case observe.Lost:
		c.ended(which, e.Kind.String(), took)
		c.lost.WithLabelValues(which...).Inc()
	case observe.Ended:
		c.ended(which, e.Kind.String(), took)
	}
}

func (c *Collector) ended(which []string, outcome string, took float64) {
	c.holds.WithLabelValues(which...).Dec()
	c.hold.WithLabelValues(append(which, outcome)...).Observe(took)
}
