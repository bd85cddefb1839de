// SPDX-License-Identifier: Apache-2.0

// Package report turns the samples of a run into medians, pictures and the generated parts of compare/comparison.md.
package report

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"time"

	"github.com/zklock-go/zklock/compare/servers"
	"github.com/zklock-go/zklock/compare/ways"
	"github.com/zklock-go/zklock/compare/work"
)

// Results is one run, as saved to disk.
type Results struct {
	When    time.Time             `json:"when"`
	Commit  string                `json:"commit"` // of this repository
	Took    string                `json:"took"`
	Machine Machine               `json:"machine"`
	Lease   string                `json:"lease"`
	Poll    string                `json:"poll"`
	Rounds  int                   `json:"rounds"`
	Repeats int                   `json:"repeats,omitempty"`
	Window  string                `json:"window"`
	Servers []servers.Description `json:"servers"`
	Ways    []ways.Info           `json:"ways"`
	Loads   []float64             `json:"load_averages"` // of one minute, at each sample, including our own load
	Samples []work.Sample         `json:"samples"`
}

// Machine describes the machine of a run.
type Machine struct {
	CPU     string `json:"cpu"`
	Cores   int    `json:"cores"`
	Memory  string `json:"memory"`
	Kernel  string `json:"kernel"`
	System  string `json:"system"`
	Go      string `json:"go"`
	LoadAvg string `json:"load_average_before"`
}

// Save writes the results as JSON, with each sample on its own line.
func (r *Results) Save(file string) error {
	text, err := r.encode()
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}

// encode returns the results as indented JSON, but with each sample and the list of loads on one line, so that a diff of two
// runs is readable.
func (r *Results) encode() ([]byte, error) {
	head := *r
	head.Loads, head.Samples = nil, nil
	text, err := json.MarshalIndent(head, "", " ")
	if err != nil {
		return nil, err
	}
	loads, err := json.Marshal(r.Loads)
	if err != nil {
		return nil, err
	}
	samples, err := lines(r.Samples, ",\n  ")
	if err != nil {
		return nil, err
	}
	text = bytes.Replace(text, []byte(`"load_averages": null`), append([]byte(`"load_averages": `), loads...), 1)
	list := append([]byte("\"samples\": [\n  "), samples...)
	text = bytes.Replace(text, []byte(`"samples": null`), append(list, "\n ]"...), 1)
	return append(text, '\n'), nil
}

// lines returns each of all as JSON, with between between them.
func lines[T any](all []T, between string) ([]byte, error) {
	texts := make([][]byte, len(all))
	for i, one := range all {
		text, err := json.Marshal(one)
		if err != nil {
			return nil, err
		}
		texts[i] = text
	}
	return bytes.Join(texts, []byte(between)), nil
}

// Load reads a file written by Save.
func Load(file string) (*Results, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var r Results
	return &r, json.Unmarshal(text, &r)
}

// cell identifies a figure: one work at one size or under one fault, by one way.
type cell struct {
	work, fault, way string
	size             int
}

// at returns the samples of a cell without the failed ones.
func (r *Results) at(c cell) []work.Sample {
	var some []work.Sample
	for _, s := range r.Samples {
		if s.Work == c.work && s.Fault == c.fault && s.Way == c.way && s.Size == c.size && s.Error == "" {
			some = append(some, s)
		}
	}
	return some
}

// spread is the median, minimum and maximum of n values. It is zero if there are none.
type spread struct {
	median, low, high float64
	n                 int
}

func spreadOf(values []float64) spread {
	if len(values) == 0 {
		return spread{}
	}
	return spread{work.Median(values), slices.Min(values), slices.Max(values), len(values)}
}

// figure returns the spread of one value in one cell.
func (r *Results) figure(c cell, value string) spread {
	var all []float64
	for _, s := range r.at(c) {
		if v, ok := s.Values[value]; ok {
			all = append(all, v)
		}
	}
	return spreadOf(all)
}

// ratio returns the spread, over the rounds, of the ratio of a way's value to the value of the way to in the same round.
func (r *Results) ratio(c cell, value, to string) spread {
	other := c
	other.way = to
	theirs := map[int]float64{}
	for _, s := range r.at(other) {
		if v, ok := s.Values[value]; ok && v > 0 {
			theirs[s.Round] = v
		}
	}
	var all []float64
	for _, s := range r.at(c) {
		v, ok := s.Values[value]
		base, both := theirs[s.Round]
		if ok && both {
			all = append(all, v/base)
		}
	}
	return spreadOf(all)
}

// errors returns the number of failed samples of a cell and the error of the last one.
func (r *Results) errors(c cell) (n int, example string) {
	for _, s := range r.Samples {
		if s.Work == c.work && s.Fault == c.fault && s.Way == c.way && s.Size == c.size && s.Error != "" {
			n++
			example = s.Error
		}
	}
	return n, example
}

// sizes returns the sizes at which a work was measured, in order.
func (r *Results) sizes(name string) []int {
	var all []int
	for _, s := range r.Samples {
		if s.Work == name && !slices.Contains(all, s.Size) {
			all = append(all, s.Size)
		}
	}
	slices.Sort(all)
	return all
}

// faults returns the faults of the sale that have samples, in the order of work.Faults.
func (r *Results) faults() []string {
	var all []string
	for _, f := range work.Faults {
		if slices.ContainsFunc(r.Samples, func(s work.Sample) bool { return s.Fault == f }) {
			all = append(all, f)
		}
	}
	return all
}
