// SPDX-License-Identifier: Apache-2.0

package frames

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
)

// words is a frame of big-endian int32s behind its length.
func words(ws ...int32) []byte {
	data := binary.BigEndian.AppendUint32(nil, uint32(4*len(ws)))
	for _, w := range ws {
		data = binary.BigEndian.AppendUint32(data, uint32(w))
	}
	return data
}

//zklock:promise P8.5
func TestALengthThatNoServerSendsIsRefused(t *testing.T) {
	for name, head := range map[string][]byte{
		"negative":  {0xff, 0xff, 0xff, 0xff},
		"too large": {0x7f, 0xff, 0xff, 0xff},
	} {
		_, err := NewReader(bytes.NewReader(append(head, make([]byte, 100)...))).Next(MaxFrame)
		require.ErrorIs(t, err, ErrMalformed, name)
	}
}

//zklock:promise P8.5
func TestAFalseLengthCostsNoMemory(t *testing.T) {
	stream := append(binary.BigEndian.AppendUint32(nil, MaxFrame), 1, 2, 3)
	allocated := testing.AllocsPerRun(1, func() {
		f := NewReader(bytes.NewReader(stream))
		_, err := f.Next(MaxFrame)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		require.Less(t, cap(f.buf), 1<<20)
	})
	require.Less(t, allocated, 100.0)
}

func TestTheNamesOfAListingAreCounted(t *testing.T) {
	listing := func(n int) []byte {
		body := binary.BigEndian.AppendUint32(nil, uint32(n))
		return append(body, bytes.Repeat([]byte{0, 0, 0, 1, 'x'}, n)...)
	}
	stat := make([]byte, statSize)
	for _, n := range []int{0, 1, MaxNames + 1} {
		require.NoError(t, CheckReply(OpGetChildren, listing(n)))
		require.Equal(t, n, CountNames(OpGetChildren, listing(n)))
		require.NoError(t, CheckReply(OpGetChildren2, append(listing(n), stat...)))
		require.Equal(t, n, CountNames(OpGetChildren2, append(listing(n), stat...)))
		require.Zero(t, CountNames(OpGetData, listing(n)))
	}
	require.Zero(t, CountNames(OpGetChildren, nil))
}

func TestOfAFrameThatIsTooLongOnlyItsHeaderIsKept(t *testing.T) {
	long := append(words(7, 0, 1, 0), make([]byte, 10<<20)...)
	binary.BigEndian.PutUint32(long, uint32(len(long)-4))
	in := NewReader(bytes.NewReader(slices.Concat(long, words(8, 0, 2, 0), words(9))))
	xid, size, err := in.Begin()
	require.NoError(t, err)
	require.Equal(t, []int{7, len(long) - 4}, []int{int(xid), size})
	header, err := in.NextHeader()
	require.NoError(t, err)
	require.Equal(t, words(7, 0, 1, 0)[4:], header)
	require.True(t, in.IsEmpty())
	require.Less(t, cap(in.buf), 1<<20)
	next, err := in.Next(100)
	require.NoError(t, err)
	require.Equal(t, words(8, 0, 2, 0)[4:], next)
	in.Drop()
	header, err = in.NextHeader()
	require.NoError(t, err)
	require.Equal(t, words(9)[4:], header, "shorter than one")
	_, err = in.NextHeader()
	require.ErrorIs(t, err, io.EOF)
	_, err = NewReader(bytes.NewReader(long[:100])).NextHeader()
	require.Error(t, err)
}

func TestARejectionIsNotASession(t *testing.T) {
	greeting := func(version, session int32) []byte {
		return append(words(version, 10_000, session, session, 16)[4:], make([]byte, 16)...)
	}
	id, timeout, err := ParseGreeting(greeting(0, 7))
	require.NoError(t, err)
	require.Equal(t, int64(7<<32|7), id)
	require.Equal(t, 10*time.Second, timeout)
	_, _, err = ParseGreeting(greeting(versionRejected, -1))
	require.ErrorIs(t, err, ErrNoLeader)
}

func errorOf(_ Event, err error) error { return err }

//zklock:promise P8.5
func TestRepliesThatNoServerSendsAreRefused(t *testing.T) {
	const huge = 1<<31 - 1
	body := func(ws ...int32) []byte { return words(ws...)[4:] }
	for name, err := range map[string]error{
		"children, many":             CheckReply(OpGetChildren2, body(huge)),
		"children, too few bytes":    CheckReply(OpGetChildren2, body(2, 4, 0x61616161)),
		"null children":              CheckReply(OpGetChildren, body(-1)),
		"a negative name":            CheckReply(OpGetChildren2, body(1, -5)),
		"a stat cut short":           CheckReply(OpExists, make([]byte, statSize-1)),
		"data of a negative length":  CheckReply(OpGetData, body(-2)),
		"no path":                    CheckReply(OpCreate, nil),
		"a transaction without end":  CheckReply(OpMulti, []byte{0, 0, 0, 13, 0, 0, 0, 0, 0}),
		"a transaction, cut short":   CheckReply(OpMulti, []byte{0, 0, 0, 13}),
		"a transaction, odd results": CheckReply(OpMulti, []byte{0, 0, 0, 77, 0, 0, 0, 0, 0}),
		"access list, many":          CheckReply(OpGetACL, body(huge)),
		"event":                      errorOf(ParseEvent(body(1, 3, 99))),
		"greeting, no timeout":       CheckGreeting(append(body(0, 0, 0, 7, 16), make([]byte, 16)...)),
		"greeting, negative timeout": CheckGreeting(append(body(0, -1, 0, 7, 16), make([]byte, 16)...)),
		"greeting, cut short":        CheckGreeting(body(0, 1000)),
		"greeting, long password":    CheckGreeting(append(body(0, 1000, 0, 7, 17), make([]byte, 18)...)),
	} {
		require.ErrorIs(t, err, ErrMalformed, name)
	}
}

func TestRepliesThatServersSendPass(t *testing.T) {
	stat := make([]byte, statSize)
	end := []byte{0xff, 0xff, 0xff, 0xff, 1, 0xff, 0xff, 0xff, 0xff}
	for name, err := range map[string]error{
		"children":         CheckReply(OpGetChildren2, append([]byte{0, 0, 0, 1, 0, 0, 0, 1, 'a'}, stat...)),
		"data":             CheckReply(OpGetData, append([]byte{0, 0, 0, 1, 'a'}, stat...)),
		"null data":        CheckReply(OpGetData, append([]byte{0xff, 0xff, 0xff, 0xff}, stat...)),
		"a transaction":    CheckReply(OpMulti, append([]byte{0, 0, 0, 13, 0, 0, 0, 0, 0}, end...)),
		"nothing":          CheckReply(OpDelete, nil),
		"unknown to us":    CheckReply(9999, []byte{1}),
		"greeting":         CheckGreeting(append(words(0, 1000, 0, 7, 16)[4:], make([]byte, 16)...)),
		"greeting, expiry": CheckGreeting(append(words(0, 0, 0, 0, 16)[4:], make([]byte, 17)...)),
	} {
		require.NoError(t, err, name)
	}
}

// FuzzFrames cuts the same stream differently: what is passed on must not depend on it.
//
//zklock:promise P8.5
func FuzzFrames(f *testing.F) {
	f.Add([]byte{0, 0, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0, 1, 9}, uint64(1))
	f.Add(bytes.Repeat([]byte{0, 0, 0, 40}, 30), uint64(2))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 1, 2}, uint64(3))
	f.Fuzz(func(t *testing.T, stream []byte, seed uint64) {
		read := func(r io.Reader) (all [][]byte, err error) {
			in := NewReader(r)
			for {
				frame, err := in.Next(1 << 16)
				if err != nil {
					return all, err
				}
				all = append(all, bytes.Clone(frame))
			}
		}
		whole, err := read(bytes.NewReader(stream))
		cut, cutErr := read(iotest.OneByteReader(bytes.NewReader(stream)))
		require.Equal(t, whole, cut)
		require.Equal(t, err, cutErr)
		require.True(t, errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, ErrMalformed))
		at := 0
		for _, frame := range whole {
			require.True(t, bytes.HasPrefix(stream[at+4:], frame))
			at += 4 + len(frame)
		}
	})
}

// FuzzReplies has the checks of replies read anything.
//
//zklock:promise P8.5
func FuzzReplies(f *testing.F) {
	for op := int32(-1); op < 24; op++ {
		f.Add(op, []byte{0, 0, 0, 1, 0, 0, 0, 1, 'a'})
		f.Add(op, make([]byte, 4+2*statSize))
	}
	end := []byte{0xff, 0xff, 0xff, 0xff, 1, 0xff, 0xff, 0xff, 0xff}
	f.Add(int32(OpMulti), slices.Concat([]byte{0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 'a', 0, 0, 0, 5, 0, 0, 0, 0, 0}, make([]byte, statSize), end))
	f.Add(int32(OpMulti), slices.Concat([]byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0x9b}, end))
	f.Fuzz(func(t *testing.T, op int32, body []byte) {
		if CheckReply(op, body) == nil {
			answer := Reply{Body: body}.Answer()
			read(op, &answer)
		}
		_, _ = ParseEvent(body)
		_ = CheckGreeting(body)
		_ = CodeWithin(op, body)
		if r := rand.New(rand.NewPCG(uint64(len(body)), 0)); len(body) > 0 {
			_ = CheckReply(op, body[:r.IntN(len(body))])
		}
	})
}

// read reads an answer that was checked as those do who ask for it.
func read(op int32, a *Answer) {
	switch op {
	case OpCreate, OpCreateContainer, OpSync:
		a.Text()
	case OpExists, OpSetData:
		a.Stat()
	case OpGetData:
		a.Data()
		a.Stat()
	case OpGetChildren2:
		a.Names()
		a.Stat()
	case OpGetACL:
		a.ACL()
		a.Stat()
	case OpMulti:
		_, _ = a.Results()
	}
}
