package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestHelpNamesEveryCommandAndEachTellsItsFlags(t *testing.T) {
	code, out, _ := run(t, "", "--help")
	assert.Zero(t, code)
	for _, c := range subcommands() {
		assert.Contains(t, out, "  "+c.name+" ")
		code, help, err := run(t, "", c.name, "--help")
		assert.Zero(t, code, c.name)
		assert.Empty(t, err)
		assert.True(t, strings.HasPrefix(help, "Usage: zklock "+c.name+" "), help)
		assert.Contains(t, help, "\nFlags:\n  --")
	}
}

func TestWrongUseIsOneLine(t *testing.T) {
	for _, args := range [][]string{{"no-such-command"}, {"serve", "extra"}, {"demo", "--no-such-flag"}, {"demo", "--items", "2"}, {"serve", "--members", "0"}} {
		code, out, err := run(t, "", args...)
		assert.Equal(t, codeUsage, code, args)
		assert.Empty(t, out)
		assert.Regexp(t, `^zklock: .+\n$`, err)
	}
	code, _, err := run(t, "")
	assert.Equal(t, codeUsage, code)
	assert.Contains(t, err, "Usage: zklock")
}

func TestErrorsOfSeveralLinesBecomeOne(t *testing.T) {
	assert.Equal(t, "a; b", oneLine(errors.Join(errors.New("zklock: a"), errors.New("b"))))
}

func TestServersByNameAreHandedOutInTurn(t *testing.T) {
	var b byName
	assert.Error(t, b.Init(nil))
	assert.NoError(t, b.Init([]string{"a", "b", "c"}))
	assert.Equal(t, 3, b.Len())
	next := func(want string, round bool) {
		t.Helper()
		server, cameRound := b.Next()
		assert.Equal(t, want, server)
		assert.Equal(t, round, cameRound, "round is over at %s", want)
	}
	next("a", false)
	next("b", false)
	b.Connected()
	next("c", false)
	next("a", false)
	next("b", true)
	next("c", false)
}
