// SPDX-License-Identifier: Apache-2.0

package history

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// line is one line of a history file. Exactly one field is set.
type line struct {
	Head  *head   `json:"history,omitempty"`
	Fault *Window `json:"fault,omitempty"`
	Txn   *Txn    `json:"txn,omitempty"`
	Op    *Op     `json:"op,omitempty"`
}

type head struct {
	Version int               `json:"version"`
	End     time.Duration     `json:"end"`
	Meta    map[string]string `json:"meta,omitempty"`
}

const fileVersion = 1

// Save writes h as lines of JSON: a head, then faults, transactions and operations.
func (h *History) Save(w io.Writer) error {
	buf := bufio.NewWriterSize(w, 1<<16)
	enc := json.NewEncoder(buf)
	var err error
	put := func(l line) {
		if err == nil {
			err = enc.Encode(l)
		}
	}
	put(line{Head: &head{fileVersion, h.End, h.Meta}})
	for i := range h.Faults {
		put(line{Fault: &h.Faults[i]})
	}
	for i := range h.Txns {
		put(line{Txn: &h.Txns[i]})
	}
	for i := range h.Ops {
		put(line{Op: &h.Ops[i]})
	}
	return errors.Join(err, buf.Flush())
}

// Load reads the output of Save.
func Load(r io.Reader) (*History, error) {
	dec := json.NewDecoder(bufio.NewReaderSize(r, 1<<16))
	var first line
	if err := dec.Decode(&first); err != nil {
		return nil, fmt.Errorf("history: head: %w", err)
	}
	if first.Head == nil || first.Head.Version != fileVersion {
		return nil, fmt.Errorf("history: not a history of version %d", fileVersion)
	}
	h := &History{End: first.Head.End, Meta: first.Head.Meta}
	for n := 2; ; n++ {
		var l line
		switch err := dec.Decode(&l); {
		case errors.Is(err, io.EOF):
			return h, nil
		case err != nil:
			return nil, fmt.Errorf("history: line %d: %w", n, err)
		}
		switch {
		case l.Fault != nil:
			h.Faults = append(h.Faults, *l.Fault)
		case l.Txn != nil:
			h.Txns = append(h.Txns, *l.Txn)
		case l.Op != nil:
			h.Ops = append(h.Ops, *l.Op)
		}
	}
}

// SaveFile writes h to a file.
func (h *History) SaveFile(name string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(h.Save(f), f.Close())
}

// LoadFile reads a file written by SaveFile.
func LoadFile(name string) (*History, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Load(f)
}
