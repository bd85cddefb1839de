// SPDX-License-Identifier: Apache-2.0

// Package zkprometheus exports metrics of zklock's locks to Prometheus. The module also
// contains a Grafana dashboard, dashboard.json, and alerting rules, alerts.yaml.
package zkprometheus

import (
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/observe"
)

// Options configure a Collector. Nil means the defaults.
type Options struct {
	// Lock returns the value of the label "lock" for a lock, given its path. Each value
	// creates its own time series, so use few values for many paths. By default metrics do
	// not distinguish locks.
	Lock func(path string) string

	// Labels are constant labels of every series. Two collectors in one registry need
	// different ones. The names recipe, lock, outcome, reason and le are reserved.
	Labels prometheus.Labels
}

// Collector measures the locks of one or more clients. Set it as zklock.Options.Observer and
// register it with a prometheus.Registerer.
//
//	zklock_acquire_duration_seconds      histogram by outcome: acquired, given_up, refused
//	zklock_acquire_ahead                 histogram, number of contenders ahead in the queue
//	                                     when the node was created
//	zklock_hold_duration_seconds         histogram by outcome: released, lost, ended
//	zklock_holds                         gauge, number of locks held now
//	zklock_oldest_hold_seconds           gauge, how long the oldest hold has lasted, or 0
//	zklock_lost_total                    counter
//	zklock_refused_total                 counter by reason: locked, deadlock …, see observe.Reason
//	zklock_given_up_total                counter by reason: timeout, canceled, closed …
//	zklock_heartbeats_missed_total       counter
//	zklock_sessions_expired_early_total  counter, see observe.ExpiredEarly
//
// Each has the label recipe, and lock if Options.Lock is set. Heartbeats and sessions have
// neither, because they belong to a client. An attempt that waits is measured when it ends; NewClientCollector counts those that wait now. A client
// that has never held a lock has no series with a recipe; its missed heartbeats start at 0.
type Collector struct {
	lock          func(path string) string
	acquire, hold *prometheus.HistogramVec
	ahead         *prometheus.HistogramVec
	holds         *prometheus.GaugeVec
	oldest        observe.Oldest[series]
	age           *prometheus.Desc
	lost, refused *prometheus.CounterVec
	givenUp       *prometheus.CounterVec
	missed, early prometheus.Counter
}

// series are the values of the labels recipe and lock.
type series struct{ recipe, lock string }

var (
	_ observe.Observer     = (*Collector)(nil)
	_ prometheus.Collector = (*Collector)(nil)
)

// Hand-offs take a fraction of a millisecond, recovery from a crash ten seconds, a queue minutes.
var seconds = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800}

// NewCollector returns an empty collector. It returns an error if Prometheus does not accept
// the labels.
func NewCollector(opts *Options) (*Collector, error) {
	if opts == nil {
		opts = &Options{}
	}
	for _, own := range []string{"recipe", "lock", "outcome", "reason", "le"} {
		if _, there := opts.Labels[own]; there {
			return nil, fmt.Errorf("zkprometheus: %w: the label %q is reserved", zklock.ErrInvalid, own)
		}
	}
	c := newCollector(opts)
	if err := prometheus.NewRegistry().Register(c); err != nil { // checks the labels
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
		acquire: histogram("zklock_acquire_duration_seconds", "Duration of an attempt to acquire a lock.", seconds, with("outcome")),
		hold:    histogram("zklock_hold_duration_seconds", "Time that a lock was held.", seconds, with("outcome")),
		ahead:   histogram("zklock_acquire_ahead", "Number of contenders ahead in the queue when the node was created.", []float64{0, 1, 2, 5, 10, 25, 50, 100, 250, 1000}, which),
		holds:   prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "zklock_holds", Help: "Locks held.", ConstLabels: opts.Labels}, which),
		age:     prometheus.NewDesc("zklock_oldest_hold_seconds", "Time that the oldest hold has lasted, or 0 if there is none.", which, opts.Labels),
		lost:    prometheus.NewCounterVec(counter("zklock_lost_total", "Locks lost while they were held."), which),
		refused: prometheus.NewCounterVec(counter("zklock_refused_total", "Attempts that were refused."), with("reason")),
		givenUp: prometheus.NewCounterVec(counter("zklock_given_up_total", "Attempts that ended because their context ended or the client was closed."), with("reason")),
		missed:  prometheus.NewCounter(counter("zklock_heartbeats_missed_total", "Heartbeats that were not answered by a quorum.")),
		early:   prometheus.NewCounter(counter("zklock_sessions_expired_early_total", "Sessions that the servers ended while the lease was valid: two clients may have held a lock.")),
	}
}

func (c *Collector) parts() []prometheus.Collector {
	return []prometheus.Collector{c.acquire, c.hold, c.ahead, c.holds, c.lost, c.refused, c.givenUp, c.missed, c.early}
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, part := range c.parts() {
		part.Describe(ch)
	}
	ch <- c.age
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	for _, part := range c.parts() {
		part.Collect(ch)
	}
	for of, age := range c.oldest.Ages() {
		labels := []string{of.recipe, of.lock}
		if c.lock == nil {
			labels = labels[:1]
		}
		ch <- prometheus.MustNewConstMetric(c.age, prometheus.GaugeValue, age.Seconds(), labels...)
	}
}

// Observe implements observe.Observer.
func (c *Collector) Observe(e observe.Event) {
	switch e.Kind {
	case observe.HeartbeatMissed:
		c.missed.Inc()
		return
	case observe.ExpiredEarly:
		c.early.Inc()
		return
	}
	which, of := []string{e.Recipe}, series{recipe: e.Recipe}
	if c.lock != nil {
		of.lock = strings.ToValidUTF8(c.lock(e.Path), "\uFFFD") // Prometheus panics on invalid UTF-8
		which = append(which, of.lock)
	}
	c.oldest.Observe(of, e)
	took := e.Elapsed.Seconds()
	switch e.Kind {
	case observe.Queued:
		c.ahead.WithLabelValues(which...).Observe(float64(e.Ahead))
	case observe.Acquired:
		c.acquire.WithLabelValues(append(which, e.Kind.String())...).Observe(took)
		c.holds.WithLabelValues(which...).Inc()
		c.lost.WithLabelValues(which...).Add(0) // so that the first loss counts as an increase
	case observe.GivenUp:
		c.acquire.WithLabelValues(append(which, e.Kind.String())...).Observe(took)
		c.givenUp.WithLabelValues(append(which, observe.Reason(e.Err))...).Inc()
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
