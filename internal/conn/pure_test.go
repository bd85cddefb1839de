// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/frames"
	"github.com/zklock-go/zklock/internal/lease"
)

//zklock:promise P2.12
func TestRepliesProveTheirEvidence(t *testing.T) {
	for _, c := range []struct {
		op, code int32
		of       lease.Evidence
		ok       bool
	}{
		{frames.OpCreate, frames.CodeOK, lease.OfQuorum, true},
		{frames.OpCreate, frames.CodeNodeExists, lease.OfQuorum, true}, // refused by a transaction
		{frames.OpDelete, frames.CodeNoNode, lease.OfQuorum, true},
		{frames.OpMulti, frames.CodeBadVersion, lease.OfQuorum, true},
		{frames.OpCreate, -102, lease.OfServer, true}, // NoAuth
		{frames.OpSync, frames.CodeOK, lease.OfLeader, true},
		{frames.OpSync, -1, lease.OfServer, true},
		{frames.OpGetData, frames.CodeOK, lease.OfServer, true},
		{frames.OpGetData, frames.CodeNoNode, lease.OfServer, true},
		{frames.OpPing, frames.CodeOK, lease.OfServer, true},
		{frames.OpAuth, frames.CodeOK, 0, false},
		{frames.OpSASL, frames.CodeOK, 0, false},
		{frames.OpCreate, frames.CodeThrottled, 0, false},
		{frames.OpGetData, frames.CodeThrottled, 0, false},
	} {
		of, ok := evidenceOf(c.op, c.code)
		assert.Equal(t, c.ok, ok, "%+v", c)
		if ok {
			assert.Equal(t, c.of, of, "%+v", c)
		}
	}
}

//zklock:promise P18.1
func TestServersAreReadAsUsersWriteThem(t *testing.T) {
	for _, c := range []struct {
		list    []string
		servers []string
		chroot  string
	}{
		{[]string{"a"}, []string{"a:2181"}, ""},
		{[]string{"a:1", "b:2"}, []string{"a:1", "b:2"}, ""},
		{[]string{"a, b:2 ,c"}, []string{"a:2181", "b:2", "c:2181"}, ""},
		{[]string{"a,b/app/x"}, []string{"a:2181", "b:2181"}, "/app/x"},
		{[]string{"a", "b/app"}, []string{"a:2181", "b:2181"}, "/app"},
		{[]string{"a/app", "b/app"}, []string{"a:2181", "b:2181"}, "/app"},
		{[]string{"a/"}, []string{"a:2181"}, ""},
		{[]string{"10.0.0.1", "[::1]", "[::1]:7"}, []string{"10.0.0.1:2181", "[::1]:2181", "[::1]:7"}, ""},
	} {
		servers, chroot, err := ParseServers(c.list)
		require.NoError(t, err, "%q", c.list)
		assert.Equal(t, c.servers, servers, "%q", c.list)
		assert.Equal(t, c.chroot, chroot, "%q", c.list)
	}
}

//zklock:promise P18.1
func TestInvalidServersAreRefused(t *testing.T) {
	for text, why := range map[string]string{
		"":               "is empty",
		"a,,b":           "is empty",
		"zk://a:1":       `without "zk://"`,
		"https://a":      `without "https://"`,
		"a b":            "is not host:port",
		"user@a":         "is not host:port",
		"::1":            "use [address]:port",
		":7":             "has no host",
		"a:0":            "1 to 65535",
		"a:65536":        "1 to 65535",
		"a:http":         "1 to 65535",
		"a:":             "1 to 65535",
		"a:1:2":          "is not host:port",
		"a/app,b":        "must follow the last address",
		"[::1":           "is not host:port",
		"a]":             "is not host:port",
		"[]":             "is not host:port",
		"a\x00":          "is not host:port",
		"a:2181?x=y":     "is not host:port",
		"a:2181#comment": "is not host:port",
	} {
		_, _, err := ParseServers([]string{text})
		assert.ErrorContains(t, err, why, "%q", text)
	}
	_, _, err := ParseServers(nil)
	assert.ErrorContains(t, err, "no servers")
	_, _, err = ParseServers([]string{"a/x", "b/y"})
	assert.ErrorContains(t, err, "chroots")
}

func TestARotationTriesAllServersWithoutAPause(t *testing.T) {
	given := []string{"a", "b", "c", "d"}
	var r Rotation
	require.NoError(t, r.Init(given))
	assert.Equal(t, 4, r.Len())
	r.Connected()
	var first, second []string
	for i := range 8 {
		server, again := r.Next()
		assert.False(t, again, "the client library would wait")
		if i < 4 {
			first = append(first, server)
		} else {
			second = append(second, server)
		}
	}
	assert.ElementsMatch(t, given, first)
	assert.Equal(t, first, second)
	assert.Equal(t, []string{"a", "b", "c", "d"}, given, "the caller's list is as it was")
}

func TestRotationsBeginAtDifferentServers(t *testing.T) {
	orders := map[string]bool{}
	for range 200 {
		var r Rotation
		require.NoError(t, r.Init([]string{"a", "b", "c"}))
		orders[r.servers[0]] = true
	}
	assert.Len(t, orders, 3, "clients must not all go to one server")
}

func TestARoundEndsWithTheLink(t *testing.T) {
	l := NewLink()
	var r Rotation
	h := l.Hosts(&r)
	require.NoError(t, h.Init([]string{"a"}))
	_, again := h.Next()
	assert.False(t, again)
	l.Close()
	_, again = h.Next()
	assert.True(t, again, "the client library looks whether it was closed")
}

func TestAClientIsDeniedUntilAServerAnswers(t *testing.T) {
	var g loginState
	login, credentials := g.starts()
	assert.Nil(t, login)
	assert.Empty(t, credentials)
	g.deny(nil, errRefused)
	assert.True(t, g.isDenied())
	assert.NoError(t, g.verdict(), "without a number of refusals none is final")
	g.serve()
	assert.False(t, g.isDenied())
}

func TestAsManyRefusalsInARowAsServersAreFinal(t *testing.T) {
	var g loginState
	login := Digest(joe)
	g.set(&login, 2)
	g.deny(&login, errRefused)
	g.serve()
	g.deny(&login, errRefused)
	require.NoError(t, g.verdict(), "not in a row")
	g.deny(&login, errRefused)
	require.ErrorIs(t, g.verdict(), errRefused)
	g.admit(&login)
	assert.NoError(t, g.verdict(), "a login that was taken once may be taken again")
}

func TestARefusalOfAFormerLoginSaysNothingAboutTheNext(t *testing.T) {
	var g loginState
	former, next := Digest(joe), Digest(joe)
	assert.Nil(t, g.set(&former, 1))
	assert.Same(t, &former, g.set(&next, 1))
	assert.False(t, g.deny(&former, errRefused), "it is from a connection that was closed")
	assert.False(t, g.deny(nil, errRefused))
	assert.NoError(t, g.verdict())
	g.admit(&former)
	assert.True(t, g.deny(&next, errRefused))
	assert.ErrorIs(t, g.verdict(), errRefused)
	assert.Same(t, &next, g.set(nil, 0))
	assert.False(t, g.isDenied())
}
