// SPDX-License-Identifier: Apache-2.0

package show

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/cmd/zklock/internal/locks"
	"github.com/zklock-go/zklock/cmd/zklock/internal/terminal"
	"github.com/zklock-go/zklock/operate"
)

//zklock:promise P8.3
func TestTextOfContendersCannotActOnAScreen(t *testing.T) {
	t.Parallel()
	table := locks.NewTable(time.Now())
	table.Update(&operate.Queue{Path: "/" + hostile, Contenders: []zklock.Contender{{Node: "/l/" + hostile, Holds: true, Host: hostile, PID: 1, Label: hostile}}}, time.Now())
	for _, line := range topScreen(table, "/"+hostile, status{}, time.Now(), 80, 10) {
		assertHarmless(t, line)
		assert.NotContains(t, line, "\n")
	}
	var b strings.Builder
	require.NoError(t, JSON(&b, map[string]string{"x": strings.ToValidUTF8(hostile, "?") + "😀"}, false))
	assertHarmless(t, b.String())
	var back map[string]string
	require.NoError(t, json.Unmarshal([]byte(b.String()), &back))
	assert.Equal(t, strings.ToValidUTF8(hostile, "?")+"😀", back["x"], "the value itself is unchanged")
}

func TestLsFitsTheScreen(t *testing.T) {
	t.Parallel()
	who := zklock.Contender{
		Node: "/l/_c_7a6b6c0123456789abcdef01234567ab-__WRIT__2147483646", Kind: operate.KindWrite, Client: operate.ClientZklock, Token: 1<<40 + 7,
		Session: math.MaxInt64, Since: time.Now().Add(-2000 * time.Hour), Revoked: true, Holds: true,
		Host: strings.Repeat("host", 20), PID: 4194304, Label: strings.Repeat("label ", 50),
	}
	var b strings.Builder
	View{Columns: 80}.table(&b, &operate.Queue{Path: "/l", Contenders: []zklock.Contender{who, who}}, time.Now())
	for line := range strings.Lines(b.String()) {
		assert.LessOrEqual(t, utf8.RuneCountInString(line), 81, line)
	}
	assert.Contains(t, b.String(), "__WRIT__2147483646")
	assert.Contains(t, b.String(), "83d8h")
}

func TestTheBoardShowsTheBusiestFirstAndSinceTheGrant(t *testing.T) {
	t.Parallel()
	begin := time.Now()
	b := locks.NewTable(begin)
	who := func(name string, holds bool) zklock.Contender {
		return zklock.Contender{Node: "/l/" + name, Holds: holds, Host: "host", PID: 1, Label: "job"}
	}
	b.Update(&operate.Queue{Path: "/quiet", Contenders: []zklock.Contender{who("a", true)}}, begin)
	b.Update(&operate.Queue{Path: "/busy", Contenders: []zklock.Contender{who("a", true), who("b", false), who("c", false)}}, begin)
	b.Update(&operate.Queue{Path: "/busy", Contenders: []zklock.Contender{who("b", true), who("c", false)}}, begin.Add(time.Minute))
	lines := topScreen(b, "/", status{}, begin.Add(2*time.Minute), 80, 10)
	require.Len(t, lines, 4)
	assert.Contains(t, lines[0], "/: 2 locks in use, 1 waiting")
	assert.Regexp(t, `^1 +1 +1m0s +/busy +job host:1$`, lines[2])
	assert.Regexp(t, `^0 +1 +>2m0s +/quiet `, lines[3])
	b.Update(&operate.Queue{Path: "/busy"}, begin.Add(3*time.Minute))
	assert.Len(t, topScreen(b, "/", status{}, begin, 80, 10), 3)
	for _, columns := range []int{20, 40, 80} {
		for _, line := range topScreen(b, "/", status{}, begin, columns, 10) {
			assert.LessOrEqual(t, terminal.Width(line), columns)
		}
	}
}

func TestValuesOfLeadersAreOneLine(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "host:80", Value(zklock.Contender{Data: []byte("host:80")}))
	assert.Equal(t, `a\nb`, Value(zklock.Contender{Data: []byte("a\nb")}))
	assert.Equal(t, `\x1b[2J`, Value(zklock.Contender{Data: []byte("\x1b[2J")}))
}

func TestAListFitsANarrowScreen(t *testing.T) {
	t.Parallel()
	now := time.Now()
	q := &operate.Queue{Path: "/locks/of/a/deep/directory/report", Contenders: []zklock.Contender{
		{Node: "/l/_c_00000000000000000000000000000001-lock-0000000007", Holds: true, Revoked: true, Kind: "lock", Since: now.Add(-30 * time.Hour), Token: 1 << 52, Label: "report of the day", Host: "db-17.example.net", PID: 12345},
		{Node: "/l/_c_00000000000000000000000000000002-lock-0000000008", Kind: "lock", Since: now, Token: 1<<52 + 1},
	}}
	for _, columns := range []int{30, 40, 60, 80, 120} {
		var b bytes.Buffer
		View{Columns: columns}.table(&b, q, now)
		for line := range strings.Lines(b.String()) {
			assert.LessOrEqual(t, terminal.Width(strings.TrimSuffix(line, "\n")), columns, line)
		}
		assert.Equal(t, columns >= 40, strings.Contains(b.String(), "lock-0000000007"), "revoke and evict want it:\n%s", b.String())
		assert.Contains(t, b.String(), "report: 1 held, 1 waiting")
	}
}

func TestAScreenDoesNotChangeWhileNoServerAnswers(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 11, 22, 15, 4, 5, 0, time.Local)
	table := locks.NewTable(begin)
	st := status{silentSince: begin.Add(10 * time.Second), gaps: operate.Incomplete{Unreadable: 1}}
	lines := topScreen(table, "/", st, begin.Add(time.Hour), 120, 10)
	assert.True(t, strings.HasPrefix(lines[0], "15:04:15  /:"), lines[0])
	assert.Equal(t, []string{"no server has answered since 15:04:15: what is shown was known then", "1 directory could not be read"}, lines[1:3])
}
