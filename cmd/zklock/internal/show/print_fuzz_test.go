// SPDX-License-Identifier: Apache-2.0

package show

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/cmd/zklock/internal/locks"
	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
	"github.com/zklock-go/zklock/cmd/zklock/internal/terminal"
	"github.com/zklock-go/zklock/operate"
)

// FuzzPrintedText shows what others can write in every way the command has: nothing of it
// acts on a terminal, adds a line, or makes a line wider than the screen.
//
//zklock:promise P8.3
func FuzzPrintedText(f *testing.F) {
	for _, text := range []string{"", "host", hostile, strings.Repeat("wide ", 100), "\xff\xfe", "\u0301", "\u200b\u2060", "a\\b", "😀", `"`, "<script>"} {
		f.Add(text, text, []byte(text), int64(1), uint8(3))
	}
	f.Fuzz(func(t *testing.T, name, label string, data []byte, token int64, kind uint8) {
		who := zklock.Contender{
			Node: "/l/" + name, Host: label, Label: name, PID: int(kind), Data: data, Token: token, Session: token, Since: time.Unix(token%1e10, 0),
			Holds: kind&1 != 0, Revoked: kind&2 != 0, Client: []string{"", operate.ClientZklock, operate.ClientCurator}[int(kind)%3], Kind: operate.KindWrite,
		}
		q := &operate.Queue{Path: "/" + label, Contenders: []zklock.Contender{who, who}}
		var out strings.Builder
		for _, v := range []View{{Out: &out, Columns: 80}, {Out: &out, Wide: true}, {Out: &out, JSON: true}} {
			out.Reset()
			require.NoError(t, v.Queue(q))
			text := out.String()
			assertHarmless(t, text)
			if v.JSON {
				assert.Equal(t, 1, strings.Count(text, "\n"))
				continue
			}
			lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
			require.Len(t, lines, 4, "a line for the path, one for the heads, one for each contender")
			for _, line := range lines[1:] {
				assert.True(t, v.Wide || terminal.Width(line) <= 80, "%d columns: %q", terminal.Width(line), line)
			}
		}
		table := locks.NewTable(time.Now())
		table.Update(q, time.Now())
		for _, line := range topScreen(table, q.Path, status{}, time.Now(), 60, 5) {
			assertHarmless(t, line)
			assert.LessOrEqual(t, terminal.Width(line), 60)
		}
		for _, text := range []string{Value(who), outcome.Explain(fmt.Errorf("zklock: %s: %w", label, errors.New(name)))} {
			assertHarmless(t, text)
			assert.NotContains(t, text, "\n")
		}
	})
}
