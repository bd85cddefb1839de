// SPDX-License-Identifier: Apache-2.0

// Package txnlog reads the transactions of an ensemble from the logs on its servers' disks.
package txnlog

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/zklock-go/zklock/zkcontainer"
)

// Txn is one transaction of the ensemble.
type Txn struct {
	Zxid    int64
	Time    time.Time // when the leader proposed it, in whole milliseconds
	Session int64
	Changes []Change
}

// Change is the creation or deletion of one node, or the end of a session. Other changes are omitted.
type Change struct {
	Kind      ChangeKind
	Path      string
	Ephemeral bool // Created
}

// ChangeKind is the kind of a Change.
type ChangeKind int

// The kinds of change. SessionEnded has no path: it deletes all ephemeral nodes of the session.
const (
	Created ChangeKind = iota + 1
	Deleted
	SessionEnded
)

// Read returns every transaction of the ensemble since the given time, in order, from the log of a member that has all of
// them. Call it when the ensemble is healthy. It does not merge the logs of several members: a member that missed many
// transactions receives a snapshot, and its log can contain proposals of its own that were never committed.
func Read(ctx context.Context, z *zkcontainer.Ensemble, since time.Time) ([]Txn, error) {
	var leaders, others []*zkcontainer.Member // the leader's log is read first: all its transactions are committed
	for _, m := range z.Members {
		if m.Mode(ctx) == zkcontainer.Leader {
			leaders = append(leaders, m)
		} else {
			others = append(others, m)
		}
	}
	var errs []error
	for _, m := range append(leaders, others...) {
		txns, err := transactions(ctx, m, since)
		if err == nil {
			return txns, nil
		}
		errs = append(errs, fmt.Errorf("transaction log of %s: %w", m.Name, err))
	}
	return nil, errors.Join(errs...)
}

func transactions(ctx context.Context, m *zkcontainer.Member, since time.Time) ([]Txn, error) {
	all := map[int64]Txn{}
	if err := readLogs(ctx, m, all); err != nil {
		return nil, err
	}
	zxids := slices.Sorted(maps.Keys(all))
	first := len(zxids)
	for first > 0 && !all[zxids[first-1]].Time.Before(since.Truncate(time.Millisecond)) {
		first--
	}
	var txns []Txn
	for i := first; i < len(zxids); i++ {
		before, now := int64(0), zxids[i]
		if i > 0 {
			before = zxids[i-1]
		}
		// A new leader starts a new epoch, in the upper half of the zxid, and counts from one again.
		if now != before+1 && (now>>32 == before>>32 || int32(now) != 1) {
			return nil, fmt.Errorf("transactions are missing between %x and %x", before, now)
		}
		txns = append(txns, all[now])
	}
	return txns, nil
}

func readLogs(ctx context.Context, m *zkcontainer.Member, into map[int64]Txn) error {
	const dir = "/data/version-2"
	names, err := m.Exec(ctx, "ls", dir)
	if err != nil {
		return err
	}
	for _, name := range strings.Fields(names) {
		if !strings.HasPrefix(name, "log.") {
			continue
		}
		content, err := m.Read(ctx, path.Join(dir, name))
		if err != nil {
			return err
		}
		if err := parseLog(content, into); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// The types of transaction that matter here.
const (
	opCreate          = 1
	opDelete          = 2
	opMulti           = 14
	opCreate2         = 15
	opCreateContainer = 19
	opDeleteContainer = 20
	opCreateTTL       = 21
	opCloseSession    = -11
	opError           = -1
)

// parseLog reads a log file: a header, then for each transaction a checksum, its length, its bytes and an end mark, then zeros.
func parseLog(content []byte, into map[int64]Txn) error {
	if len(content) == 0 {
		return nil // just created
	}
	d := &decoder{b: content}
	if magic := d.bytes(4); !bytes.Equal(magic, []byte("ZKLG")) {
		return errors.New("not a transaction log")
	}
	d.bytes(4 + 8) // version, id of the database
	for len(d.b) > 12 {
		d.int64() // checksum
		length := d.int32()
		if length == 0 {
			break // preallocated space
		}
		body := &decoder{b: d.bytes(int(length))}
		d.bytes(1)
		if d.short || len(body.b) == 0 {
			break // incomplete: still being written
		}
		t := Txn{Session: body.int64()}
		body.int32() // the request's number
		t.Zxid = body.int64()
		t.Time = time.UnixMilli(body.int64())
		t.Changes = body.changes(body.int32())
		if body.short {
			return fmt.Errorf("transaction %x is truncated", t.Zxid)
		}
		into[t.Zxid] = t
	}
	return nil
}

// decoder reads the server's serialization. It sets short if there are too few bytes.
type decoder struct {
	b     []byte
	short bool
}

func (d *decoder) bytes(n int) []byte {
	if n < 0 || n > len(d.b) {
		d.short, d.b = true, nil
		return nil
	}
	taken := d.b[:n]
	d.b = d.b[n:]
	return taken
}

func (d *decoder) int32() int32 {
	if b := d.bytes(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (d *decoder) int64() int64 {
	if b := d.bytes(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

// buffer reads a length and that many bytes. A negative length means an empty buffer.
func (d *decoder) buffer() []byte { return d.bytes(int(max(0, d.int32()))) }

func (d *decoder) changes(kind int32) []Change {
	switch kind {
	case opCreate, opCreate2:
		path := string(d.buffer())
		d.buffer() // data
		for range max(0, d.int32()) {
			d.int32() // permissions
			d.buffer()
			d.buffer()
		}
		ephemeral := d.bytes(1)
		return []Change{{Created, path, len(ephemeral) == 1 && ephemeral[0] != 0}}
	case opCreateContainer, opCreateTTL:
		return []Change{{Kind: Created, Path: string(d.buffer())}}
	case opDelete, opDeleteContainer:
		return []Change{{Kind: Deleted, Path: string(d.buffer())}}
	case opCloseSession:
		return []Change{{Kind: SessionEnded}}
	case opMulti:
		// The log also contains refused transactions, with the parts before the refused one as if they had been
		// executed.
		var all []Change
		refused := false
		for range max(0, d.int32()) {
			kind := d.int32()
			part := &decoder{b: d.buffer()}
			all = append(all, part.changes(kind)...)
			refused = refused || kind == opError
			d.short = d.short || part.short
		}
		if refused {
			return nil
		}
		return all
	}
	return nil
}
