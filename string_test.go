package zklock_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/zktest"
)

// A program that hangs can be asked what it waits for.
func TestAClientTellsWhatItHoldsAndWaitsFor(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		a, b := connect(t, srv, "a", term), connect(t, srv, "b", term)
		hold, err := a.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		first := lockLater(t.Context(), b.Mutex(path).Lock)
		time.Sleep(time.Second)
		second := lockLater(t.Context(), b.Mutex(path).Lock)
		time.Sleep(time.Second)
		names := inOrder(srv, path)

		lines := strings.Split(a.String(), "\n")
		require.Len(t, lines, 2)
		require.Regexp(t, `^session 0x[0-9a-f]+ lease=\S+ of 10s`, lines[0])
		require.Regexp(t, "^"+regexp.QuoteMeta(hold.Node())+` holds for 2s: token=\d+ lease=`, lines[1])
		lines = strings.Split(b.String(), "\n")
		require.Len(t, lines, 3)
		said := strings.Join(lines[1:], "\n")
		require.Regexp(t, regexp.QuoteMeta(path+"/"+names[1])+` waits for 2s: ahead=1 watching `+names[0]+` lease=`, said)
		require.Regexp(t, regexp.QuoteMeta(path+"/"+names[2])+` waits for 1s: ahead=2 watching `+names[0]+` lease=`, said)

		unlock(t, hold)
		<-first.done
		unlock(t, first.hold)
		<-second.done
		require.Contains(t, b.String(), second.hold.Node()+" holds for 0s")
		require.NotContains(t, b.String(), "waits for")
		unlock(t, second.hold)
		require.NoError(t, b.Close())
		require.NotContains(t, b.String(), "holds")
	})
}
