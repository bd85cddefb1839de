// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/outcome"
)

func TestOwnerDataDescribesTheProcess(t *testing.T) {
	host, err := os.Hostname()
	require.NoError(t, err)
	named := Owner{Host: host, PID: os.Getpid(), Label: "import"}
	for name, c := range map[string]struct {
		data []byte
		want Owner
		text string
	}{
		"named":     {OwnerData("import", false), named, "import"},
		"unnamed":   {OwnerData("", false), Owner{Host: host, PID: os.Getpid()}, fmt.Sprintf("process %d on %s", os.Getpid(), host)},
		"anonymous": {OwnerData("", true), Owner{PID: Nobody}, "an anonymous client"},
		"a label":   {OwnerData("import", true), Owner{PID: Nobody, Label: "import"}, "import"},
		"a cohort":  {OfCohort(OwnerData("import", false)), Owner{Host: host, PID: os.Getpid(), Label: "import", Cohort: true}, "import"},
		"no UTF-8":  {Owner{Host: "h\xff", PID: 7, Label: "\xfe"}.Encode(), Owner{Host: "h\uFFFD", PID: 7, Label: "\uFFFD"}, "\uFFFD"},
	} {
		o, ok := ReadOwner(c.data)
		require.True(t, ok, name)
		require.Equal(t, c.want, o, name)
		require.Equal(t, c.text, o.String(), name)
		require.False(t, IsDowngraded(c.data), name)
		require.False(t, IsRevocation(c.data), name)
	}
	for _, data := range []string{"", "import", `{}`, `{"host":"h"}`, `{"host":"h","pid":7} `, `{"pid":7,"host":"h"}`, `{"host":"h","pid":7,"more":1}`, `{"pid":"7"}`, `{"pid":7,"shared":true,"x":1}`} {
		_, ok := ReadOwner([]byte(data))
		require.False(t, ok, data)
		require.False(t, IsDowngraded([]byte(data)), data)
	}
	require.True(t, IsDowngraded(Owner{PID: 1, Shared: true}.Encode()))
}

func TestARevocationIsAddedAndRemoved(t *testing.T) {
	owner := Owner{Host: "h", PID: 7, Shared: true}
	asked := owner
	asked.Revoke = true
	for name, c := range map[string]struct{ data, asked string }{
		"owner data":     {string(owner.Encode()), string(asked.Encode())},
		"a value":        {"value", "__REVOKE__\nvalue"},
		"nothing":        {"", "__REVOKE__\n"},
		"similar JSON":   {`{"pid":7,"host":"h"}`, "__REVOKE__\n" + `{"pid":7,"host":"h"}`},
		"a false number": {`{"host":"h"}`, "__REVOKE__\n" + `{"host":"h"}`},
	} {
		require.False(t, IsRevocation([]byte(c.data)), name)
		require.Equal(t, c.data, string(WithoutRevocation([]byte(c.data))), name)
		for range 2 { // what one request has changed does not change the next
			got := WithRevocation([]byte(c.data))
			require.Equal(t, c.asked, string(got), name)
			require.True(t, IsRevocation(got), name)
			require.Equal(t, c.data, string(WithoutRevocation(got)), name)
			for i := range got {
				got[i] = 'x'
			}
		}
	}
	require.True(t, IsRevocation(CuratorRevocation))
	require.Nil(t, WithoutRevocation(CuratorRevocation))
	require.True(t, IsRevocation([]byte(`{"revoke":true}`)), "another client's data")
	require.Equal(t, `{"revoke":true}`, string(WithoutRevocation([]byte(`{"revoke":true}`))), "it is not ours to change")
	require.False(t, IsRevocation([]byte(`{"revoke":true`)))
}

func TestANodeIsDescribedByItsNameItsDataAndItsStat(t *testing.T) {
	stat := &zk.Stat{Czxid: 5, EphemeralOwner: 6, Ctime: 7_000}
	owner, anonymous := Owner{Host: "h", PID: 7, Label: "l", Cohort: true}.Encode(), OwnerData("", true)
	for name, c := range map[string]struct {
		entry string
		data  []byte
		want  View
	}{
		"owner data":          {ours + "lock-0000000007", owner, View{Kind: KindLock, Client: ClientZklock, Cohort: true, Host: "h", PID: 7, Label: "l", Data: owner}},
		"anonymous":           {ours + "__READ__0000000007", anonymous, View{Kind: KindRead, Client: ClientZklock, Anonymous: true, Data: anonymous}},
		"similar":             {ours + "__WRIT__0000000007", []byte(`{"pid":-1, "cohort":true}`), View{Kind: KindWrite, Client: ClientZklock, Data: []byte(`{"pid":-1, "cohort":true}`)}},
		"a value":             {ours + "latch-0000000007", []byte("value"), View{Kind: KindLatch, Client: ClientZklock, Data: []byte("value")}},
		"of others":           {theirs + "lock-0000000007", []byte(`{"host":"h","pid":7,"label":"l","x":1}`), View{Kind: KindLock, Client: clientGo, Data: []byte(`{"host":"h","pid":7,"label":"l","x":1}`)}},
		"revoked":             {ours + "lock-0000000007", WithRevocation(anonymous), View{Kind: KindLock, Client: ClientZklock, Anonymous: true, Revoked: true, Data: anonymous}},
		"revoked and similar": {ours + "lock-0000000007", []byte("__REVOKE__\n" + `{"host":"h", "pid":7}`), View{Kind: KindLock, Client: ClientZklock, Revoked: true, Data: []byte(`{"host":"h", "pid":7}`)}},
		"kazoo":               {"0123456789abcdef0123456789abcdef__rlock__0000000007", nil, View{Kind: KindRead, Client: clientKazoo}},
	} {
		c.want.Node, c.want.Token, c.want.Session, c.want.Since = "/a/"+c.entry, 5, 6, time.UnixMilli(7_000)
		e, ok := ParseEntry(c.entry)
		require.True(t, ok, name)
		require.Equal(t, c.want, e.View("/a", c.data, stat), name)
	}
	e, _ := ParseEntry(theirs + "__WRIT__0000000007")
	require.Equal(t, KindWrite, e.View("/a", nil, stat).Kind)
	e.Shared = true
	require.Equal(t, KindRead, e.View("/a", nil, stat).Kind, "a writer that has become a reader")
	for _, n := range []int{MaxLabel - 1, MaxLabel, MaxLabel + 1, MaxLabel + 2} {
		label := strings.Repeat("a", n-2) + "é"
		want := label
		if n > MaxLabel {
			want = strings.Repeat("a", min(n-2, MaxLabel))
		}
		e, _ := ParseEntry(ours + "lock-0000000007")
		require.Equal(t, want, e.View("/a", Owner{PID: 1, Label: label}.Encode(), stat).Label, n)
	}
}

func guidsOf(d DirData) (guids []string) {
	for _, e := range d.Evicted {
		guids = append(guids, e.GUID)
	}
	return guids
}

// A version of the library that knows no origins reads every field of the list, and takes those for
// evictions that look like a guid. So nothing in an origin may look like one.
func TestAnOriginIsNoEvictionForOtherReaders(t *testing.T) {
	guid := GUIDMark + strings.Repeat("0", 26)
	for _, o := range []Origin{{guid, guid}, {" " + guid + " ", "a " + guid + " b"}, {"\n" + guid, EvictedPrefix + guid + "\n" + NotePrefix}} {
		data := DirData{}.WithEvicted(Eviction{GUIDMark + strings.Repeat("1", 26), o}).Encode()
		_, list, _ := strings.Cut(string(data), EvictedPrefix)
		var seen []string
		for _, word := range strings.Fields(list) {
			if isGUID(word) {
				seen = append(seen, word)
			}
		}
		require.Equal(t, []string{GUIDMark + strings.Repeat("1", 26)}, seen)
		d, _ := ParseDirData(data)
		require.Equal(t, o, d.Evicted[0].Origin)
	}
}

// What an operator says is bounded, and only the latest operators are known.
func TestOriginsAreBounded(t *testing.T) {
	guid := func(n int) string { return GUIDMark + fmt.Sprintf("%026x", n) }
	identity := Owner{Host: strings.Repeat("h", 300), PID: 1}.Encode()
	var d DirData
	for n := range 2 * MaxOrigins {
		d = d.WithEvicted(Eviction{guid(2 * n), NewOrigin(identity, fmt.Sprint(n)+strings.Repeat("é", MaxReason))})
		d = d.WithEvicted(Eviction{guid(2*n + 1), NewOrigin(nil, "")})
	}
	require.LessOrEqual(t, len(d.Encode()), 64+MaxEvicted*33+MaxOrigins*(3*(maxBy+MaxReason)+20))
	for n := range 2 * MaxOrigins {
		e, found := d.EvictionOf(guid(2 * n))
		require.True(t, found)
		require.Equal(t, n >= MaxOrigins, e.Reason != "")
		require.LessOrEqual(t, len(e.Reason), MaxReason)
		require.True(t, utf8.ValidString(e.Reason))
		require.LessOrEqual(t, len(e.By), maxBy)
		e, _ = d.EvictionOf(guid(2*n + 1))
		require.Equal(t, Origin{}, e.Origin)
	}
	back, _ := ParseDirData(d.Encode())
	require.Equal(t, d, back)
	require.Empty(t, NewOrigin(Owner{PID: Nobody, Label: "l"}.Encode(), "").By, "it is anonymous")
	_, found := d.EvictionOf("another")
	require.False(t, found)
	for _, bad := range []string{"by=%zz&reason=x", "by=x&reason=%", "by=x"} {
		d, ours := ParseDirData([]byte(NotePrefix + EvictedPrefix + "by=a&reason=b " + bad + " " + guid(1)))
		require.True(t, ours)
		require.Equal(t, []Eviction{{GUID: guid(1)}}, d.Evicted)
	}
}

func TestTheDataOfADirectoryIsReadAsItIsWritten(t *testing.T) {
	guid := func(n int) string { return GUIDMark + fmt.Sprintf("%026x", n) }
	var many DirData
	for n := range MaxEvicted + 3 {
		before := slices.Clone(many.Evicted)
		next := many.WithEvicted(Eviction{GUID: guid(n)})
		require.Equal(t, before, many.Evicted)
		other := many.WithEvicted(Eviction{GUID: "another"})
		require.Equal(t, guid(n), next.Evicted[len(next.Evicted)-1].GUID, "the other list is not this one")
		require.Equal(t, "another", other.Evicted[len(other.Evicted)-1].GUID)
		many = next
	}
	require.Len(t, many.Evicted, MaxEvicted)
	require.Equal(t, guid(3), many.Evicted[0].GUID)
	guids := guidsOf(many)
	for text, want := range map[string]DirData{
		NotePrefix:                            {},
		NotePrefix + ours + "lock-0000000007": {Last: ours + "lock-0000000007"},
		NotePrefix + "x" + EvictedPrefix + guid(1) + " " + guid(2): {Last: "x", Evicted: []Eviction{{GUID: guid(1)}, {GUID: guid(2)}}},
		NotePrefix + EvictedPrefix + strings.Join(guids, " "):      {Evicted: many.Evicted},
		NotePrefix + "x" + EvictedPrefix + guid(1) + " by=web-1&reason=disk+%26+memory " + guid(2) + " " + guid(3) + " by=&reason= " + guid(4): {Last: "x", Evicted: []Eviction{
			{GUID: guid(1)}, {guid(2), Origin{"web-1", "disk & memory"}}, {guid(3), Origin{"web-1", "disk & memory"}}, {GUID: guid(4)},
		}},
	} {
		got, ours := ParseDirData([]byte(text))
		require.True(t, ours)
		require.Equal(t, want, got)
		require.Equal(t, text, string(got.Encode()))
	}
	got, ours := ParseDirData([]byte(NotePrefix + EvictedPrefix + guid(0) + " " + strings.Join(guids, " ") + " foreign"))
	require.True(t, ours)
	require.Equal(t, many.Evicted, got.Evicted, "the newest, without others' words")
	got, ours = ParseDirData(nil)
	require.True(t, ours, "nobody wrote anything")
	require.Equal(t, DirData{}, got)
	_, ours = ParseDirData([]byte("value"))
	require.False(t, ours)

	for dir, want := range map[string][2]string{"/a": {"/a", "/a"}, "/a/leases": {"/a/leases", "/a/locks"}, "/leases/b": {"/leases/b", "/leases/b"}} {
		require.Equal(t, want, [2]string{EvictedIn(dir, false), EvictedIn(dir, true)})
	}
}

func TestATransactionIsNoLongerThanARequestMayBe(t *testing.T) {
	op := &zk.SetDataRequest{Path: "/a"}
	size, err := RequestSize([]any{op})
	require.NoError(t, err)
	for _, c := range []struct {
		more int
		ok   bool
	}{{0, true}, {MaxRequest - size, true}, {MaxRequest - size + 1, false}} {
		op.Data = make([]byte, c.more)
		err := CheckSize([]any{op})
		require.Equal(t, c.ok, err == nil, c.more)
		if !c.ok {
			require.ErrorIs(t, err, outcome.ErrInvalid)
			require.ErrorContains(t, err, fmt.Sprint(MaxRequest+1))
		}
	}
	op.Data = make([]byte, 2*MaxRequest)
	for name, ops := range map[string][]any{"alone": {"nothing"}, "with one that is too long": {op, nil}} {
		require.ErrorIs(t, CheckSize(ops), outcome.ErrInvalid, name)
		require.ErrorContains(t, CheckSize(ops), "not an operation", name)
	}
}

func TestAQueueKnowsItsListing(t *testing.T) {
	delayed := NamePrefix + DelayMark + "0123456789abcdef0123456789-lock-0000000003"
	for _, c := range []struct {
		names            []string
		permits, delayed bool
	}{
		{[]string{"leases", "a-lock-0000000001"}, true, false}, {[]string{delayed}, false, true}, {[]string{"leases", delayed}, true, true}, {[]string{"lease", "locks"}, false, false}, {nil, false, false},
	} {
		q := NewQueue(c.names)
		require.Equal(t, []bool{c.permits, c.delayed}, []bool{q.Permits, q.HasDelay}, "%v", c.names)
	}
	q := NewQueue([]string{"c-lock-0000000003", "other", "a-lock-0000000001", "b-lock-0000000002", "a-lock-2147483647", "b-lock--2147483648"})
	var names []string
	for _, e := range q.Entries {
		names = append(names, e.Name)
	}
	require.Equal(t, []string{"a-lock-0000000001", "b-lock-0000000002", "c-lock-0000000003", "a-lock-2147483647", "b-lock--2147483648"}, names)
	for own, want := range map[string]int{"a-lock-0000000001": 0, "b-lock-0000000002": 1, "c-lock-0000000003": 2, "x-lock-0000000004": 3} {
		e, ok := ParseEntry(own)
		require.True(t, ok)
		before, known := q.Before(e)
		require.True(t, known, own)
		require.Equal(t, q.Entries[:want], before, own)
		require.Equal(t, want, cap(before), "an append does not overwrite the next")
	}
	for _, own := range []string{"x-lock-0000000002", "a-lock-2147483647", "b-lock--2147483648"} {
		e, _ := ParseEntry(own)
		_, known := q.Before(e)
		require.False(t, known, own)
	}
	for _, seq := range []int32{0, 1, 1<<31 - 2} {
		require.True(t, IsPlain(seq))
	}
	for _, seq := range []int32{-1, -1 << 31, 1<<31 - 1} {
		require.False(t, IsPlain(seq))
	}
	require.Equal(t, []string{"/", "/a"}, []string{DirOf(""), DirOf("/a")})
}

func TestGUIDsDiffer(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		seen[NewGUID(GUIDMark)] = true
	}
	require.Len(t, seen, 100)
}
