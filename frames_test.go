package zklock

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"testing/iotest"

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

func TestALengthThatNoServerSendsIsRefused(t *testing.T) {
	for name, head := range map[string][]byte{
		"negative":  {0xff, 0xff, 0xff, 0xff},
		"too large": {0x7f, 0xff, 0xff, 0xff},
	} {
		_, err := newFrames(bytes.NewReader(append(head, make([]byte, 100)...))).next(maxFrame)
		require.ErrorIs(t, err, errMalformed, name)
	}
}

func TestALengthThatLiesCostsNoMemory(t *testing.T) {
	stream := append(binary.BigEndian.AppendUint32(nil, maxFrame), 1, 2, 3)
	allocated := testing.AllocsPerRun(1, func() {
		f := newFrames(bytes.NewReader(stream))
		_, err := f.next(maxFrame)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		require.Less(t, cap(f.buf), 1<<20)
	})
	require.Less(t, allocated, 100.0)
}

func TestRepliesThatNoServerSendsAreRefused(t *testing.T) {
	const huge = 1<<31 - 1
	body := func(ws ...int32) []byte { return words(ws...)[4:] }
	for name, err := range map[string]error{
		"children, many":             checkReply(opGetChildren2, body(huge)),
		"children, too few bytes":    checkReply(opGetChildren2, body(2, 4, 0x61616161)),
		"null children":              checkReply(opGetChildren, body(-1)),
		"a negative name":            checkReply(opGetChildren2, body(1, -5)),
		"a stat cut short":           checkReply(opExists, make([]byte, statSize-1)),
		"data of a negative length":  checkReply(opGetData, body(-2)),
		"no path":                    checkReply(opCreate, nil),
		"a transaction without end":  checkReply(opMulti, []byte{0, 0, 0, 13, 0, 0, 0, 0, 0}),
		"a transaction, cut short":   checkReply(opMulti, []byte{0, 0, 0, 13}),
		"a transaction, odd results": checkReply(opMulti, []byte{0, 0, 0, 77, 0, 0, 0, 0, 0}),
		"access list, many":          checkReply(opGetACL, body(huge)),
		"event":                      checkEvent(body(1, 3, 99)),
		"greeting, no timeout":       checkGreeting(append(body(0, 0, 0, 7, 16), make([]byte, 16)...)),
		"greeting, negative timeout": checkGreeting(append(body(0, -1, 0, 7, 16), make([]byte, 16)...)),
		"greeting, cut short":        checkGreeting(body(0, 1000)),
		"greeting, long password":    checkGreeting(append(body(0, 1000, 0, 7, 17), make([]byte, 18)...)),
	} {
		require.ErrorIs(t, err, errMalformed, name)
	}
}

func TestRepliesThatServersSendPass(t *testing.T) {
	stat := make([]byte, statSize)
	end := []byte{0xff, 0xff, 0xff, 0xff, 1, 0xff, 0xff, 0xff, 0xff}
	for name, err := range map[string]error{
		"children":         checkReply(opGetChildren2, append([]byte{0, 0, 0, 1, 0, 0, 0, 1, 'a'}, stat...)),
		"data":             checkReply(opGetData, append([]byte{0, 0, 0, 1, 'a'}, stat...)),
		"null data":        checkReply(opGetData, append([]byte{0xff, 0xff, 0xff, 0xff}, stat...)),
		"a transaction":    checkReply(opMulti, append([]byte{0, 0, 0, 13, 0, 0, 0, 0, 0}, end...)),
		"nothing":          checkReply(opDelete, nil),
		"unknown to us":    checkReply(9999, []byte{1}),
		"greeting":         checkGreeting(append(words(0, 1000, 0, 7, 16)[4:], make([]byte, 16)...)),
		"greeting, expiry": checkGreeting(append(words(0, 0, 0, 0, 16)[4:], make([]byte, 17)...)),
	} {
		require.NoError(t, err, name)
	}
}

// FuzzFrames cuts the same stream differently: what is passed on must not depend on it.
func FuzzFrames(f *testing.F) {
	f.Add([]byte{0, 0, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0, 1, 9}, uint64(1))
	f.Add(bytes.Repeat([]byte{0, 0, 0, 40}, 30), uint64(2))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 1, 2}, uint64(3))
	f.Fuzz(func(t *testing.T, stream []byte, seed uint64) {
		read := func(r io.Reader) (all [][]byte, err error) {
			in := newFrames(r)
			for {
				frame, err := in.next(1 << 16)
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
		require.True(t, errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, errMalformed))
		at := 0
		for _, frame := range whole {
			require.True(t, bytes.HasPrefix(stream[at+4:], frame))
			at += 4 + len(frame)
		}
	})
}

// FuzzReplies has the checks of replies read anything.
func FuzzReplies(f *testing.F) {
	for op := int32(-1); op < 24; op++ {
		f.Add(op, []byte{0, 0, 0, 1, 0, 0, 0, 1, 'a'})
	}
	f.Fuzz(func(t *testing.T, op int32, body []byte) {
		_ = checkReply(op, body)
		_ = checkEvent(body)
		_ = checkGreeting(body)
		_ = codeWithin(op, body)
		if r := rand.New(rand.NewPCG(uint64(len(body)), 0)); len(body) > 0 {
			_ = checkReply(op, body[:r.IntN(len(body))])
		}
	})
}
