// SPDX-License-Identifier: Apache-2.0

package zkprometheus

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/zklock-go/zklock"
)

// clientCollector measures one client.
type clientCollector struct {
	client                    *zklock.Client
	waiters, connected, lease *prometheus.Desc
}

// NewClientCollector returns a collector of gauges of a client. labels are constant labels that
// distinguish the clients of a registry. It returns an error if Prometheus does not accept them.
//
//	zklock_waiters                  number of calls that are acquiring a lock now
//	zklock_connected                1 if the client is connected to a server, otherwise 0
//	zklock_lease_remaining_seconds  for how long the client's holds are guaranteed from now on
//
// A Collector counts finished attempts and holds; this one reports current waiters. None of its gauges
// tells whether a lock is held: a hold stays valid without a connection until its lease has run out.
func NewClientCollector(client *zklock.Client, labels prometheus.Labels) (prometheus.Collector, error) {
	desc := func(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, nil, labels) }
	c := clientCollector{
		client:    client,
		waiters:   desc("zklock_waiters", "Calls that are acquiring a lock."),
		connected: desc("zklock_connected", "Whether the client is connected to a server: 1 or 0."),
		lease:     desc("zklock_lease_remaining_seconds", "Time for which the client's holds are guaranteed from now on."),
	}
	if err := prometheus.NewRegistry().Register(c); err != nil { // checks the labels
		return nil, fmt.Errorf("zkprometheus: %w: %w", zklock.ErrInvalid, err)
	}
	return c, nil
}

// Describe implements prometheus.Collector.
func (c clientCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.waiters
	ch <- c.connected
	ch <- c.lease
}

// Collect implements prometheus.Collector.
func (c clientCollector) Collect(ch chan<- prometheus.Metric) {
	stats, connected := c.client.Stats(), 0.0
	if stats.Connected {
		connected = 1
	}
	for desc, value := range map[*prometheus.Desc]float64{c.waiters: float64(stats.Waiting), c.connected: connected, c.lease: stats.Remaining.Seconds()} {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value)
	}
}
