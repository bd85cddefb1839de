// SPDX-License-Identifier: Apache-2.0

package node

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/outcome"
)

const ours, theirs = NamePrefix + GUIDMark + "0123456789abcdef0123456789-", NamePrefix + "0123456789abcdef0123456789abcdef-"

func TestNamesOfContendersAreParsed(t *testing.T) {
	for name, want := range map[string]Entry{
		ours + "lock-0000000007":       {Seq: 7},
		"lock-0000000007":              {Seq: 7}, // without protection
		"lock-x-lock-0000000007":       {Seq: 7}, // a prefix that looks like a name
		"__WRIT__0000000007":           {Seq: 7},
		theirs + "__READ__-2147483648": {Seq: -1 << 31, Shared: true},
		"x__rlock__2147483647":         {Seq: 1<<31 - 1, Shared: true},
		"x-lock--1000000000":           {Seq: -1e9},
		"x-lock--000000001":            {Seq: -1},
	} {
		want.Name = name
		e, ok := ParseEntry(name)
		require.True(t, ok, name)
		require.Equal(t, want, e)
	}
}

func TestNamesThatNoServerCreatesAreNotContenders(t *testing.T) {
	for _, name := range []string{
		"", "lock-", "x-lock-", "x-lock-1", "x-lock-00000000007", "x-lock-+000000007", "x-lock--000000000", "x-lock--0000000001", "x-lock-9999999999",
		"x-lock-abcdefghij", "-lock-0000000007", "__lock__0000000007", "_lock__0000000007", "x-wait-0000000007",
	} {
		_, ok := ParseEntry(name)
		require.False(t, ok, name)
	}
}

func TestOnlyOurNamesHaveGUIDsAndGroups(t *testing.T) {
	require.Equal(t, GUIDMark+"0123456789abcdef0123456789", GUIDOf(ours+"lock-0000000007"))
	require.Equal(t, "0123456789abcd", GroupOf(ours+"lease-0000000007"))
	for _, name := range []string{"", theirs + "lock-0000000007", "lock-0000000007"} {
		require.Empty(t, GUIDOf(name), name)
		require.Empty(t, GroupOf(name), name)
	}
}

func TestGUIDsHaveOneForm(t *testing.T) {
	for _, mark := range []string{GUIDMark, DelayMark} {
		guid := NewGUID(mark)
		require.True(t, isGUID(guid), guid)
		require.False(t, isGUID(guid+"0"), "too long")
		require.False(t, isGUID(guid[:31]+"g"), "no digit")
		require.False(t, isGUID("000000"+guid[6:]), "not marked")
	}
}

func TestOnlyAWriterOfAnotherLibraryMayStay(t *testing.T) {
	for name, may := range map[string]bool{
		theirs + "__WRIT__0000000007": true, ours + "__WRIT__0000000007": false, theirs + "lock-0000000007": false, ours + "lock-0000000007": false,
	} {
		require.Equal(t, may, MayStay(Entry{Name: name}), name)
	}
}

func TestARecordIsReadAsItIsWritten(t *testing.T) {
	for _, r := range []Record{
		{Delay: time.Second}, {time.Nanosecond, IsHeld, "x-lock-0000000007"}, {time.Minute, WasReleased, "a"}, {time.Hour, WasLost, "b c"},
	} {
		got, err := ParseRecord(r.Encode())
		require.NoError(t, err)
		require.Equal(t, r, got)
	}
	for _, text := range []string{
		"", "1s", "zklock: delay ", "zklock: delay x", "zklock: delay 0s", "zklock: delay -1s", "zklock: delay 1", "zklock: delay 1s\n", "zklock: delay 1s\nkept by x",
	} {
		_, err := ParseRecord([]byte(text))
		require.ErrorIs(t, err, outcome.ErrMismatch, text)
	}
}

func TestANumberOfPermitsIsReadAsItIsWritten(t *testing.T) {
	for _, n := range []int{1, 7, MaxPermits} {
		got, err := ParseLimit(LimitData(n))
		require.NoError(t, err)
		require.Equal(t, n, got)
	}
	for _, text := range []string{"", "7", "zklock: permits ", "zklock: permits x", "zklock: permits 0", "zklock: permits -1", "zklock: permits 100001"} {
		_, err := ParseLimit([]byte(text))
		require.ErrorIs(t, err, outcome.ErrMismatch, text)
	}
}
