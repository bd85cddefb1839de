// SPDX-License-Identifier: Apache-2.0

package frames

import (
	"bytes"
	"encoding/binary"
	"io"
	"slices"
	"testing"
	"testing/iotest"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
)

// reply builds the body of a reply.
type reply []byte

func (r reply) int(n int32) reply  { return binary.BigEndian.AppendUint32(r, uint32(n)) }
func (r reply) long(n int64) reply { return binary.BigEndian.AppendUint64(r, uint64(n)) }
func (r reply) text(s string) reply {
	return append(r.int(int32(len(s))), s...)
}

// stat appends a stat whose fields are all different.
func (r reply) stat() reply {
	return r.long(1).long(2).long(3).long(4).int(5).int(6).int(7).long(8).int(9).int(10).long(11)
}

var theStat = &zk.Stat{
	Czxid: 1, Mzxid: 2, Ctime: 3, Mtime: 4, Version: 5, Cversion: 6, Aversion: 7, EphemeralOwner: 8, DataLength: 9, NumChildren: 10, Pzxid: 11,
}

// result begins a result of a transaction.
func (r reply) result(op, code int32) reply { return append(r.int(op), 0).int(code) }

func (r reply) end() reply { return append(r.int(-1), 1).int(-1) }

func TestAReplyIsReadFieldByField(t *testing.T) {
	body := reply(nil).text("/a").text("").int(-1).int(0).text("data").int(2).text("b").text("c").int(0).
		int(1).int(31).text("world").text("anyone").stat().text("rest")
	a := Reply{Zxid: 42, Body: body}.Answer()
	require.Equal(t, int64(42), a.Zxid)
	require.Equal(t, "/a", a.Text())
	require.Equal(t, "", a.Text())
	require.Nil(t, a.Data(), "null")
	require.Equal(t, []byte{}, a.Data(), "empty")
	data := a.Data()
	require.Equal(t, "data", string(data))
	require.Equal(t, []string{"b", "c"}, a.Names())
	require.Empty(t, a.Names())
	require.Equal(t, []zk.ACL{{Perms: 31, Scheme: "world", ID: "anyone"}}, a.ACL())
	require.Equal(t, theStat, a.Stat())
	require.Equal(t, "rest", a.Text())
	clear(body)
	require.Equal(t, "data", string(data), "a value that was read stays valid")
}

func TestTheResultsOfATransactionAreRead(t *testing.T) {
	body := reply(nil).result(OpCreate, 0).text("/a").result(OpCreateContainer, 0).text("/b").result(OpCreateTTL, 0).text("/c").
		result(OpCreate2, 0).text("/d").stat().result(OpSetData, 0).stat().result(OpDelete, 0).result(OpCheck, 0).end()
	require.NoError(t, CheckReply(OpMulti, body))
	a := Reply{Body: body}.Answer()
	results, err := a.Results()
	require.NoError(t, err)
	require.Equal(t, []zk.MultiResponse{
		{String: "/a"}, {String: "/b"}, {String: "/c"}, {String: "/d", Stat: theStat}, {Stat: theStat}, {}, {},
	}, results)

	body = reply(nil).result(OpError, 0).int(0).result(OpError, CodeNoNode).int(CodeNoNode).result(OpError, -2).int(-2).end()
	a = Reply{Body: body}.Answer()
	results, err = a.Results()
	require.ErrorIs(t, err, zk.ErrNoNode, "the first refusal")
	require.Len(t, results, 3)
	require.NoError(t, results[0].Error)
	require.ErrorIs(t, results[1].Error, zk.ErrNoNode)
	require.ErrorContains(t, results[2].Error, "-2")
}

// Each reply has exactly the fields that its operation has: cut anywhere, it is refused.
func TestAReplyIsRefusedIfAnyPartOfItIsMissing(t *testing.T) {
	acl := reply(nil).int(2).int(31).text("world").text("anyone").int(1).text("digest").text("joe:x")
	names := reply(nil).int(3).text("lock-0000000001").text("").text("b")
	result := func(op int32, r reply) reply { return append(reply(nil).result(op, 0), r...) }
	for op, bodies := range map[int32][]reply{
		OpCreate:          {reply(nil).text("/a")},
		OpCreateContainer: {reply(nil).text("/a")},
		OpCreateTTL:       {reply(nil).text("/a")},
		OpSync:            {reply(nil).text("/a")},
		OpCreate2:         {reply(nil).text("/a").stat()},
		OpExists:          {reply(nil).stat()},
		OpSetData:         {reply(nil).stat()},
		OpSetACL:          {reply(nil).stat()},
		OpGetData:         {reply(nil).text("data").stat(), reply(nil).int(-1).stat()},
		OpGetChildren:     {names, reply(nil).int(0)},
		OpGetChildren2:    {names.stat(), reply(nil).int(0).stat()},
		OpGetACL:          {acl.stat(), reply(nil).int(0).stat()},
		OpMulti: {
			reply(nil).end(), result(OpCreate, reply(nil).text("/a")).end(), result(OpCreateContainer, reply(nil).text("/a")).end(),
			result(OpCreateTTL, reply(nil).text("/a")).end(), result(OpCreate2, reply(nil).text("/a").stat()).end(), result(OpSetData, reply(nil).stat()).end(),
			result(OpCheck, nil).result(OpDelete, 0).end(), result(OpError, reply(nil).int(CodeNoNode)).end(),
		},
	} {
		for _, body := range bodies {
			require.NoError(t, CheckReply(op, body), op)
			for n := range body {
				require.ErrorIs(t, CheckReply(op, body[:n]), ErrMalformed, "%d: %d of %d bytes", op, n, len(body))
				require.Equal(t, int32(CodeOK), CodeWithin(op, body[:n]))
			}
		}
	}
	event := reply(nil).int(int32(DataChanged)).int(3).text("/a")
	token := reply(nil).text("abc")
	greeting := reply(nil).int(0).int(1000).long(7).text("0123456789abcdef")
	for name, c := range map[string]struct {
		body  reply
		parse func([]byte) error
	}{
		"event":         {event, func(p []byte) error { return errorOf(ParseEvent(p)) }},
		"token":         {token, func(p []byte) error { _, err := ParseToken(p); return err }},
		"greeting":      {greeting, CheckGreeting},
		"its session":   {greeting, func(p []byte) error { _, _, err := ParseGreeting(p); return err }},
		"any reply":     {reply(nil).int(1).long(2).int(0), func(p []byte) error { _, err := ParseReply(p); return err }},
		"a long number": {reply(nil).int(-101).long(-1).int(-1), func(p []byte) error { _, err := ParseReply(p); return err }},
	} {
		require.NoError(t, c.parse(c.body), name)
		for n := range c.body {
			require.ErrorIs(t, c.parse(c.body[:n]), ErrMalformed, "%s: %d bytes", name, n)
		}
	}
	require.Equal(t, "0123456789abcdef", string(PasswordOf(greeting)))
	require.Nil(t, PasswordOf(reply(nil).int(0).int(1000).long(7).int(-1)))
}

// A result that ends the session is seen although the results behind it are malformed; nothing is reported without one.
func TestTheEndOfASessionIsSeenBeforeAnythingMalformed(t *testing.T) {
	over := reply(nil).result(OpError, CodeExpired).int(CodeExpired)
	for name, body := range map[string]reply{"cut": over, "an unknown operation": over.result(77, 0).end()} {
		require.Equal(t, int32(CodeExpired), CodeWithin(OpMulti, body), name)
		require.ErrorIs(t, CheckReply(OpMulti, body), ErrMalformed, name)
	}
	unknown := reply(nil).result(77, 0)
	require.Equal(t, int32(CodeOK), CodeWithin(OpMulti, append(unknown, over.end()...)), "nothing is read behind it")
}

// A session can end before its transaction is checked, or between two of its operations.
func TestTheEndOfASessionIsSeenInATransactionOfAnyLength(t *testing.T) {
	for parts := 1; parts <= 4; parts++ {
		for over := -1; over < parts; over++ {
			var body reply
			for i := range parts {
				switch {
				case over < 0:
					body = body.result(OpCheck, 0)
				case i < over:
					body = body.result(OpError, 0).int(0)
				case i == over:
					body = body.result(OpError, CodeExpired).int(CodeExpired)
				default:
					body = body.result(OpError, -2).int(-2)
				}
			}
			want := int32(CodeOK)
			if over >= 0 {
				want = CodeExpired
			}
			require.Equal(t, want, CodeWithin(OpMulti, body.end()), "%d of %d", over, parts)
			require.Equal(t, int32(CodeOK), CodeWithin(OpCreate, body.end()))
		}
	}
	refused := reply(nil).result(OpError, CodeNoNode).int(CodeNoNode).end()
	require.Equal(t, int32(CodeOK), CodeWithin(OpMulti, refused), "another refusal")
	created := reply(nil).result(OpCreate, 0).text("\xff\xff\xff\x90").end()
	require.Equal(t, int32(CodeOK), CodeWithin(OpMulti, created), "a name that looks like the code")
}

// What the client library calls an error has the same name here.
func TestEachCodeHasItsError(t *testing.T) {
	for code, want := range map[int32]error{
		-8: zk.ErrBadArguments, -100: zk.ErrAPIError, -101: zk.ErrNoNode, -102: zk.ErrNoAuth, -103: zk.ErrBadVersion,
		-108: zk.ErrNoChildrenForEphemerals, -110: zk.ErrNodeExists, -111: zk.ErrNotEmpty, -112: zk.ErrSessionExpired,
		-114: zk.ErrInvalidACL, -115: zk.ErrAuthFailed, -116: zk.ErrClosing, -117: zk.ErrNothing, -118: zk.ErrSessionMoved,
		-120: ErrLocalSession, -125: ErrQuota, -127: ErrThrottled,
	} {
		require.Equal(t, want, ErrorOf(code), code)
	}
	require.NoError(t, ErrorOf(CodeOK))
	require.ErrorIs(t, ErrorOf(-6), ErrUnimplemented)
	require.EqualError(t, ErrorOf(-999), "unknown error: -999")
	require.NotErrorIs(t, ErrorOf(-998), ErrorOf(-999))
}

func TestAReplyToATokenIsAToken(t *testing.T) {
	token, err := ParseToken(reply(nil).text("abc"))
	require.NoError(t, err)
	require.Equal(t, "abc", string(token))
	token, err = ParseToken(reply(nil).int(-1))
	require.NoError(t, err)
	require.Nil(t, token)
	token, err = ParseToken(reply(nil).text(""))
	require.NoError(t, err)
	require.NotNil(t, token)
	for name, body := range map[string]reply{
		"nothing": nil, "cut short": reply(nil).int(4).int(1)[:7], "more": reply(nil).text("a").int(0), "more than null": reply(nil).int(-1).int(0),
	} {
		_, err := ParseToken(body)
		require.ErrorIs(t, err, ErrMalformed, name)
	}
}

func TestAnEventHasAKindAndAPath(t *testing.T) {
	for kind := NodeDeleted; kind <= ChildrenChanged; kind++ {
		e, err := ParseEvent(reply(nil).int(int32(kind)).int(3).text("/a").long(9)) // ZooKeeper 3.9 appends a zxid
		require.NoError(t, err)
		require.Equal(t, Event{kind, "/a"}, e)
	}
}

func TestAHeaderIsParsed(t *testing.T) {
	r, err := ParseReply(reply(nil).int(7).long(1 << 40).int(-101).text("x"))
	require.NoError(t, err)
	require.Equal(t, Reply{7, 1 << 40, -101, reply(nil).text("x")}, Reply{r.Xid, r.Zxid, r.Code, reply(r.Body)})
	frame := reply(nil).int(7).long(1).int(0)
	Renumber(frame, 9)
	r, err = ParseReply(frame)
	require.NoError(t, err)
	require.Equal(t, int32(9), r.Xid)
	_, err = ParseReply(frame[:15])
	require.ErrorIs(t, err, ErrMalformed)
}

func TestAFrameCanBeKeptAndRead(t *testing.T) {
	first, second := words(1, 2, 3), words(4, 5)
	in := NewReader(iotest.OneByteReader(bytes.NewReader(append(bytes.Clone(first), second...))))
	_, err := in.Next(100)
	require.NoError(t, err)
	kept := in.Keep()
	_, err = in.Next(100)
	require.NoError(t, err)
	in.Restore(kept)
	var all []byte
	for p := make([]byte, 5); !in.IsEmpty(); {
		all = append(all, p[:in.Copy(p)]...)
	}
	require.Equal(t, first, all)
	_, err = in.Next(7)
	require.Error(t, err)
}

func TestARestIsDropped(t *testing.T) {
	long := words(7, 0, 1, 0, 5, 6)
	in := NewReader(bytes.NewReader(slices.Concat(words(1, 2, 3), long, words(4, 5))))
	_, err := in.Next(100)
	require.NoError(t, err)
	require.Equal(t, 3, in.Copy(make([]byte, 3)))
	require.False(t, in.IsEmpty())
	header, err := in.NextHeader()
	require.NoError(t, err)
	require.Equal(t, long[4:20], header)
	require.True(t, in.IsEmpty(), "the rest of the frame before it")
	_, err = in.Next(100)
	require.NoError(t, err)
	require.False(t, in.IsEmpty())
	in.Drop()
	require.True(t, in.IsEmpty())
	require.Zero(t, in.Copy(make([]byte, 3)))
}

// A reader returns the end of its stream, and passes on no part of the frame that was cut.
func TestAStreamThatIsCutEndsTheReader(t *testing.T) {
	stream := slices.Concat(words(7, 0, 1, 0, 5), []byte{0xff, 0xff, 0xff, 0xff})
	for n := range stream {
		for name, next := range map[string]func(*Reader) error{
			"next":   func(r *Reader) error { _, err := r.Next(100); return err },
			"header": func(r *Reader) error { _, err := r.NextHeader(); return err },
		} {
			in := NewReader(bytes.NewReader(stream[:n]))
			err := next(in)
			switch {
			case n == 0:
				require.ErrorIs(t, err, io.EOF, name)
			case n < 24:
				require.Error(t, err, name)
				require.True(t, in.IsEmpty(), "%s: %d", name, n)
			default:
				require.NoError(t, err, name)
				require.Error(t, next(in), name)
			}
		}
		xid, _, err := NewReader(bytes.NewReader(stream[:n])).Begin()
		require.Equal(t, n >= 8, err == nil, n)
		require.Equal(t, n >= 8, xid == 7, n)
	}
	_, err := NewReader(bytes.NewReader([]byte{0xff, 0xff, 0xff, 0xff})).NextHeader()
	require.ErrorIs(t, err, ErrMalformed)
}

func TestTheShortestAndTheLongestFramesAreRead(t *testing.T) {
	in := NewReader(io.MultiReader(bytes.NewReader(words()), iotest.OneByteReader(bytes.NewReader(slices.Concat(words(7), words(1, 2))))))
	_, size, err := in.Begin()
	require.NoError(t, err)
	require.Zero(t, size)
	frame, err := in.Next(0)
	require.NoError(t, err)
	require.Empty(t, frame)
	xid, size, err := in.Begin()
	require.NoError(t, err)
	require.Equal(t, []int{7, 4}, []int{int(xid), size}, "it has nothing but its number")
	frame, err = in.Next(4)
	require.NoError(t, err)
	require.Equal(t, words(7)[4:], frame)
	_, err = in.Next(7)
	require.ErrorIs(t, err, ErrMalformed)
}

// A listing needs a large buffer for a moment, not for the life of the connection.
func TestALargeBufferIsNotKept(t *testing.T) {
	frame := func(n int, mark byte) []byte {
		return append(binary.BigEndian.AppendUint32(nil, uint32(n)), bytes.Repeat([]byte{mark}, n)...)
	}
	stream := frame(1<<20, 0)
	for i := range 40 {
		stream = append(stream, frame(16, byte(i+1))...)
	}
	in := NewReader(bytes.NewReader(stream))
	read := byte(0)
	next := func() {
		got, err := in.Next(MaxFrame)
		require.NoError(t, err)
		require.Equal(t, bytes.Repeat([]byte{read}, len(got)), got)
		read++
	}
	next()
	for range 15 {
		next()
	}
	require.GreaterOrEqual(t, cap(in.buf), 1<<20, "another may follow")
	next()
	require.Less(t, cap(in.buf), 1<<10, "after sixteen short frames")
}

// A buffer is kept if all frames are short, and while long ones arrive.
func TestABufferIsUsedAgain(t *testing.T) {
	for _, long := range []int{16, 8 << 10} { // the size of every third frame
		var stream []byte
		for i := range 101 {
			size := 16
			if i%3 == 0 {
				size = long
			}
			stream = append(append(stream, binary.BigEndian.AppendUint32(nil, uint32(size))...), make([]byte, size)...)
		}
		in := NewReader(bytes.NewReader(stream))
		frame, err := in.Next(MaxFrame)
		require.NoError(t, err)
		first := &frame[:1][0]
		for range 100 {
			frame, err = in.Next(MaxFrame)
			require.NoError(t, err)
			require.Same(t, first, &frame[:1][0], long)
		}
	}
}

func TestTheFirstBytesAreSeenBeforeTheFrameIsRead(t *testing.T) {
	in := NewReader(bytes.NewReader(append(words(-1, 7), 0, 0, 0, 2, 1, 2, 0, 0, 0, 9)))
	for range 2 {
		xid, size, err := in.Begin()
		require.NoError(t, err)
		require.Equal(t, []int{-1, 8}, []int{int(xid), size})
	}
	_, err := in.Next(8)
	require.NoError(t, err)
	xid, size, err := in.Begin()
	require.NoError(t, err)
	require.Equal(t, []int{0, 2}, []int{int(xid), size}, "too short for a number")
	_, err = in.Next(1)
	require.ErrorIs(t, err, ErrMalformed, "longer than it may be")
	_, _, err = NewReader(bytes.NewReader([]byte{0x80, 0, 0, 0})).Begin()
	require.ErrorIs(t, err, ErrMalformed)
	_, _, err = NewReader(bytes.NewReader([]byte{0, 0, 0, 9, 1})).Begin()
	require.Error(t, err)
}
