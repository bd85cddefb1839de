// SPDX-License-Identifier: Apache-2.0

package web

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"time"
)

// difference remembers what was sent to a page, and computes frames with the changes since.
type difference struct {
	head []byte
	sent map[string]*sentSection
	ids  map[string]int // short names of keys, shared by all sections
	next int
}

type sentSection struct {
	order []int
	rows  map[int][]byte
}

func newDifference() *difference {
	return &difference{sent: map[string]*sentSection{}, ids: map[string]int{}}
}

// frame contains the changes of a page. Whatever a frame omits is unchanged.
type frame struct {
	Now      int64              `json:"now"`
	First    bool               `json:"first,omitempty"` // the first frame; the page has no data yet
	Head     json.RawMessage    `json:"head,omitempty"`
	Sections map[string]*change `json:"sections,omitempty"`
}

// change contains the changes of a list.
type change struct {
	Rows  map[int]json.RawMessage `json:"rows,omitempty"`  // new and changed rows
	Order []int                   `json:"order,omitempty"` // the new order of all rows, if it has changed; other rows are removed
	Empty bool                    `json:"empty,omitempty"` // there are no rows left
}

// of returns a frame with the changes of a view since the last call, or nil if there are none.
func (d *difference) of(v view, now time.Time) (*frame, error) {
	f := &frame{Now: now.UnixMilli(), First: d.head == nil, Sections: map[string]*change{}}
	head, err := json.Marshal(v.head)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(head, d.head) {
		d.head, f.Head = head, head
	}
	for name, rows := range v.sections {
		c, err := d.section(name, rows)
		if err != nil {
			return nil, err
		}
		if c != nil {
			f.Sections[name] = c
		}
	}
	d.prune()
	if f.Head == nil && len(f.Sections) == 0 {
		return nil, nil
	}
	return f, nil
}

// section returns the changes of a list, or nil if there are none.
func (d *difference) section(name string, rows []row) (*change, error) {
	before := d.sent[name]
	if before == nil {
		before = &sentSection{}
	}
	now := &sentSection{rows: map[int][]byte{}}
	c := &change{Rows: map[int]json.RawMessage{}}
	for _, r := range rows {
		id := d.id(r.key)
		data, err := json.Marshal(r.value)
		if err != nil {
			return nil, err
		}
		now.order, now.rows[id] = append(now.order, id), data
		if !bytes.Equal(data, before.rows[id]) {
			c.Rows[id] = data
		}
	}
	d.sent[name] = now
	if !slices.Equal(now.order, before.order) {
		c.Order, c.Empty = now.order, len(now.order) == 0
	}
	if len(c.Rows) == 0 && c.Order == nil && !c.Empty {
		return nil, nil
	}
	return c, nil
}

// id returns the short name of a key.
func (d *difference) id(key string) int {
	id, ok := d.ids[key]
	if !ok {
		d.next++
		id = d.next
		d.ids[key] = id
	}
	return id
}

// prune drops the names of keys that are no longer in any list.
func (d *difference) prune() {
	maps.DeleteFunc(d.ids, func(_ string, id int) bool {
		for _, s := range d.sent {
			if s.rows[id] != nil {
				return false
			}
		}
		return true
	})
}
