// SPDX-License-Identifier: Apache-2.0

package web

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/cmd/zklock/internal/locks"
	"github.com/zklock-go/zklock/operate"
)

// queue makes a queue of contenders whose first ones hold.
func queue(path string, holders int, names ...string) *operate.Queue {
	q := &operate.Queue{Path: path}
	for i, name := range names {
		q.Contenders = append(q.Contenders, zklock.Contender{
			Node: path + "/_c_" + name + "-lock-0000000000", Kind: operate.KindLock, Client: operate.ClientZklock,
			Holds: i < holders, Label: name, Host: "host", PID: 1, Session: int64(len(name)), Token: int64(i + 1),
		})
	}
	return q
}

// later is when holders that come are not taken for ones that were there before.
func (b *board) later(d time.Duration) time.Time { return b.begun.Add(locks.Settling + d) }

func headOf[T any](t *testing.T, v view) T {
	head, ok := v.head.(T)
	require.True(t, ok, "%T", v.head)
	return head
}

// The locks of a fleet of package shards are one row, which leads to its members. A search for what is below its path shows them
// one by one.
func TestAFleetOfShardsIsOneRow(t *testing.T) {
	b := newBoard("/", false)
	members := queue("/fleet/members", 2, "a", "bb")
	for i := range members.Contenders {
		members.Contenders[i].Kind, members.Contenders[i].Data = operate.KindRead, []byte(`{"shards":3,"weight":1}`)
	}
	b.note(members, b.later(0))
	b.note(queue("/fleet/0000", 1, "a"), b.later(0))
	b.note(queue("/fleet/0001", 1, "bb", "a"), b.later(0))
	b.note(queue("/fleet/0003", 1, "a"), b.later(0))
	b.note(queue("/other/members", 1, "a"), b.later(0))
	paths := func(text string) (paths []string) {
		v := b.overview(text, b.later(time.Second))
		for _, r := range v.sections["locks"] {
			paths = append(paths, r.value.(lockRow).Path)
		}
		assert.Equal(t, len(paths), headOf[overview](t, v).Found)
		return paths
	}
	assert.ElementsMatch(t, []string{"/fleet", "/fleet/0003", "/other/members"}, paths(""))
	row := b.overview("", b.later(time.Second)).sections["locks"][0].value
	assert.Equal(t, lockRow{Path: "/fleet", Link: "/fleet/members", Kind: "shards of 2 members", Held: 2, Permits: 3, Waits: 1}, row)
	assert.ElementsMatch(t, []string{"/fleet", "/fleet/0003"}, paths("/fleet"))
	assert.Equal(t, []string{"/fleet"}, paths("bb"))
	assert.ElementsMatch(t, []string{"/fleet/members", "/fleet/0000", "/fleet/0001", "/fleet/0003"}, paths("/fleet/"))
	assert.Equal(t, []string{"/fleet/0001"}, paths("/fleet/0001"))
}

func TestTheBusiestLockComesFirst(t *testing.T) {
	b := newBoard("/", false)
	b.note(queue("/quiet", 1, "a"), b.later(0))
	b.note(queue("/busy", 1, "a", "bb", "ccc"), b.later(time.Second))
	v := b.overview("", b.later(time.Second))
	assert.Equal(t, overview{common: common{Below: "/", Begun: millis(b.begun)}, Locks: 2, Holding: 2, Waiting: 2, Found: 2}, v.head)
	rows := v.sections["locks"]
	require.Len(t, rows, 2)
	busy := rows[0].value.(lockRow)
	assert.Equal(t, "/busy", busy.Path)
	assert.Equal(t, 2, busy.Waits)
	assert.Equal(t, "a", busy.Owner.Label)
	assert.Equal(t, millis(b.later(time.Second)), busy.Since)

	b.note(queue("/busy", 1), b.later(time.Second))
	assert.Len(t, b.overview("", b.later(time.Second)).sections["locks"], 1, "a queue without contenders is still shown")
}

func TestASearchFindsPathsAndContenders(t *testing.T) {
	b := newBoard("/", false)
	b.note(queue("/Orders/42", 1, "worker"), b.later(0))
	b.note(queue("/stock", 1, "reader", "Printer"), b.later(0))
	for text, want := range map[string]string{"orders": "/Orders/42", "printer": "/stock", "0x7": "/stock"} {
		rows := b.overview(text, b.later(0)).sections["locks"]
		require.Len(t, rows, 1, text)
		assert.Equal(t, want, rows[0].key)
	}
	assert.Empty(t, b.overview("nothing", b.later(0)).sections["locks"])
	one := b.oneLock("/stock", "printer", b.later(0))
	assert.Empty(t, one.sections["holders"])
	require.Len(t, one.sections["queue"], 1)
	assert.Equal(t, 1, one.sections["queue"][0].value.(contender).Place)
	assert.Equal(t, 1, headOf[oneLock](t, one).Found)
}

func TestALockShowsItsQueueAndItsPast(t *testing.T) {
	b := newBoard("/", false)
	b.note(queue("/l", 1, "a"), b.begun)
	b.note(queue("/l", 1, "a", "bb"), b.later(0))
	b.note(queue("/l", 1, "bb"), b.later(time.Second))
	v := b.oneLock("/l", "", b.later(2*time.Second))
	head := headOf[oneLock](t, v)
	assert.Equal(t, 1, head.Entered, "one was there before")
	assert.Equal(t, 1, head.Held)
	holder := v.sections["holders"][0].value.(contender)
	assert.Equal(t, "bb", holder.Label)
	assert.Equal(t, millis(b.later(time.Second)), holder.Held)
	assert.Empty(t, holder.Node, "nothing can be changed")
	spans := v.sections["spans"]
	require.Len(t, spans, 2)
	first, second := spans[0].value.(stretch), spans[1].value.(stretch)
	assert.True(t, first.Early)
	assert.Equal(t, millis(b.later(time.Second)), first.Until)
	assert.Equal(t, millis(b.later(0)), second.From)
	assert.Equal(t, millis(b.later(time.Second)), second.Held)
	assert.Zero(t, second.Until)

	b.note(queue("/l", 0, "ccc"), b.later(3*time.Second))
	assert.True(t, headOf[oneLock](t, b.oneLock("/l", "", b.later(3*time.Second))).Delayed)
	b.note(queue("/l", 0), b.later(4*time.Second))
	v = b.oneLock("/l", "", b.later(4*time.Second))
	assert.Empty(t, v.sections["queue"])
	require.Len(t, v.sections["spans"], 3)
	left := v.sections["spans"][2].value.(stretch)
	assert.Zero(t, left.Held, "it left without holding")
	assert.NotZero(t, left.Until)
	assert.Empty(t, b.oneLock("/never", "", b.later(0)).sections["spans"])
}

// A semaphore's waiter has a different node from its permits.
func TestAQueueNodeForPermitsAndItsPermitAreShownAsOne(t *testing.T) {
	b := newBoard("/", false)
	permits := func(holders int, names ...string) *operate.Queue {
		q := queue("/s", holders, names...)
		for i := range q.Contenders {
			q.Contenders[i].Kind, q.Contenders[i].Session = operate.KindPermit, int64(names[i][0])
		}
		return q
	}
	b.note(permits(1, "a-permit", "b-place", "c-place"), b.later(0))
	b.note(permits(1, "b-permit", "c-place"), b.later(time.Second))
	v := b.oneLock("/s", "", b.later(time.Second))
	assert.Equal(t, 3, headOf[oneLock](t, v).Entered)
	holder := v.sections["holders"][0]
	assert.Contains(t, holder.key, "b-place", "its card stays the same")
	assert.Equal(t, millis(b.later(0)), holder.value.(contender).From)
	require.Len(t, v.sections["spans"], 3, "nobody left without holding")
	held := v.sections["spans"][1].value.(stretch)
	assert.Equal(t, []int64{millis(b.later(0)), millis(b.later(time.Second)), 0}, []int64{held.From, held.Held, held.Until})

	b.note(permits(1, "b-permit"), b.later(2*time.Second))
	left := b.oneLock("/s", "", b.later(2*time.Second)).sections["spans"]
	assert.Zero(t, left[1].value.(stretch).Held, "it left without a permit")
}

func TestACycleIsShownWhenItHasLastedForAWhile(t *testing.T) {
	b := newBoard("/", false)
	b.note(queue("/x", 1, "a", "bb"), b.later(0))
	assert.Zero(t, b.overview("", b.later(0)).again)
	b.note(queue("/y", 1, "bb", "a"), b.later(0))
	v := b.overview("", b.later(0))
	assert.Empty(t, headOf[overview](t, v).Cycles)
	assert.Equal(t, b.later(standing), v.again, "it is looked at again, though nothing changes")
	v = b.overview("", v.again)
	assert.Zero(t, v.again)
	head := headOf[overview](t, v)
	require.Len(t, head.Cycles, 1)
	assert.Equal(t, "/y", head.Cycles[0][0].Path)
	assert.Equal(t, "bb", head.Cycles[0][0].By.Label)
	assert.True(t, v.sections["locks"][0].value.(lockRow).Cyclic)
	one := b.oneLock("/x", "", b.later(standing))
	assert.Len(t, headOf[oneLock](t, one).Cycles, 1)
	assert.True(t, one.sections["queue"][0].value.(contender).Cyclic)

	b.note(queue("/z", 1, "ccc"), b.later(2*standing))
	assert.Empty(t, headOf[oneLock](t, b.oneLock("/z", "", b.later(2*standing))).Cycles, "it is elsewhere")
	assert.Len(t, headOf[overview](t, b.overview("", b.later(2*standing))).Cycles, 1, "it stands since then")
	b.note(queue("/y", 1, "bb"), b.later(3*standing))
	assert.Empty(t, headOf[overview](t, b.overview("", b.later(3*standing))).Cycles)
}

func TestKindsAreDerivedFromTheNodes(t *testing.T) {
	of := func(change func(*zklock.Contender)) string {
		q := queue("/l", 1, "a")
		change(&q.Contenders[0])
		return kindOf(q)
	}
	assert.Equal(t, "lock", of(func(*zklock.Contender) {}))
	assert.Equal(t, "lock", of(func(who *zklock.Contender) { who.Host, who.Anonymous = "", true }))
	assert.Equal(t, "election", of(func(who *zklock.Contender) { who.Host, who.PID, who.Data = "", 0, []byte("value") }))
	assert.Equal(t, "election", of(func(who *zklock.Contender) { who.Kind = operate.KindLatch }))
	assert.Equal(t, "read-write lock", of(func(who *zklock.Contender) { who.Kind = operate.KindRead }))
	assert.Equal(t, "semaphore", of(func(who *zklock.Contender) { who.Kind = operate.KindPermit }))
	assert.Equal(t, "lock", kindOf(&operate.Queue{}))
}

// names returns n different names.
func names(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprint("worker ", i))
	}
	return all
}

func TestALongQueueIsDrawnInPartAndAHandOffIsASmallFrame(t *testing.T) {
	b := newBoard("/", false)
	long := queue("/l", 1, names(10_000)...)
	b.note(long, b.later(0))
	d := newDifference()
	_, err := d.of(b.oneLock("/l", "", b.later(0)), b.later(0))
	require.NoError(t, err)
	next := &operate.Queue{Path: "/l", Contenders: slices.Clone(long.Contenders[1:])}
	next.Contenders[0].Holds = true
	b.note(next, b.later(time.Second))
	v := b.oneLock("/l", "", b.later(time.Second))
	assert.Len(t, v.sections["queue"], mostWaiters)
	assert.Equal(t, 9998-mostWaiters, headOf[oneLock](t, v).MoreWait)
	assert.LessOrEqual(t, len(v.sections["spans"]), 2+mostDrawn)
	f, err := d.of(v, b.later(time.Second))
	require.NoError(t, err)
	text, err := json.Marshal(f)
	require.NoError(t, err)
	assert.Less(t, len(text), 4096)
}

func TestManyLocksAreListedInPart(t *testing.T) {
	b := newBoard("/", false)
	for i := range 5000 {
		b.note(queue(fmt.Sprint("/l/", i), 1, "a", "bb"), b.later(0))
	}
	v := b.overview("", b.later(0))
	assert.Len(t, v.sections["locks"], mostLocks)
	assert.Equal(t, 5000, headOf[overview](t, v).Found)
}

func TestThePastIsBounded(t *testing.T) {
	b := newBoard("/", false)
	for i := range 3 * keptInAll / 2 {
		path := fmt.Sprint("/l/", i) // each is used once
		b.note(queue(path, 1, "a"), b.later(0))
		b.note(queue(path, 1), b.later(time.Duration(i)))
	}
	assert.LessOrEqual(t, len(b.past), keptInAll+1)
	for i := range 3 * keptOfLock {
		b.note(queue("/often", 1, fmt.Sprint(i)), b.later(time.Duration(i)*time.Second))
	}
	assert.Len(t, b.past["/often"].ended, keptOfLock)
	last := b.past["/often"].ended[0]
	assert.Equal(t, last.from, b.past["/often"].kept, "it came when the one before it left")
}

func TestAFrameContainsOnlyChanges(t *testing.T) {
	at := func(head string, rows ...row) view { return view{head: head, sections: map[string][]row{"s": rows}} }
	d := newDifference()
	next := func(v view) string {
		f, err := d.of(v, time.UnixMilli(7))
		require.NoError(t, err)
		if f == nil {
			return ""
		}
		text, err := json.Marshal(f)
		require.NoError(t, err)
		return string(text)
	}
	assert.JSONEq(t, `{"now":7,"first":true,"head":"h"}`, next(at("h")), "what is empty is not there")
	assert.JSONEq(t, `{"now":7,"sections":{"s":{"order":[1,2],"rows":{"1":"x","2":"y"}}}}`, next(at("h", row{"a", "x"}, row{"b", "y"})))
	assert.Empty(t, next(at("h", row{"a", "x"}, row{"b", "y"})), "nothing has changed")
	assert.JSONEq(t, `{"now":7,"sections":{"s":{"rows":{"2":"z"}}}}`, next(at("h", row{"a", "x"}, row{"b", "z"})))
	assert.JSONEq(t, `{"now":7,"sections":{"s":{"order":[2,1]}}}`, next(at("h", row{"b", "z"}, row{"a", "x"})))
	assert.JSONEq(t, `{"now":7,"head":"i","sections":{"s":{"order":[1]}}}`, next(at("i", row{"a", "x"})))
	assert.JSONEq(t, `{"now":7,"sections":{"s":{"empty":true}}}`, next(at("i")))
	assert.JSONEq(t, `{"now":7,"sections":{"s":{"order":[3],"rows":{"3":"x"}}}}`, next(at("i", row{"a", "x"})), "a name is not used again")
}

// What contenders say of themselves comes from anybody.
func TestTextOfContendersIsEscaped(t *testing.T) {
	b := newBoard("/", true)
	hostile := "<script>alert(1)</script>\u202e\x1b[2J\xff"
	q := queue("/"+hostile, 1, hostile)
	q.Contenders[0].Host = strings.Repeat(hostile, 100)
	b.note(q, b.later(0))
	for _, v := range []view{b.overview("", b.later(0)), b.oneLock("/"+hostile, "", b.later(0))} {
		f, err := newDifference().of(v, b.later(0))
		require.NoError(t, err)
		text, err := json.Marshal(f)
		require.NoError(t, err)
		for _, bad := range []string{"<", "\x1b", "\n"} {
			assert.NotContains(t, string(text), bad)
		}
		shown := strings.ReplaceAll(string(text), "/_c_"+`\u003c`, "") // nodes are as they are: they are to be found again
		assert.Contains(t, shown, `\\u202e`)
	}
	row := b.overview("", b.later(0)).sections["locks"][0].value.(lockRow)
	assert.NotContains(t, row.Path+row.Owner.Label+row.Owner.Host, "\u202e")
	assert.Less(t, len(row.Owner.Host), 1000)
}
