// SPDX-License-Identifier: Apache-2.0

package zktest_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/zktest"
)

// ending is a test whose end the test decides.
type ending struct {
	testing.TB
	cleanups []func()
	logged   []string
}

func (e *ending) Cleanup(fn func()) { e.cleanups = append(e.cleanups, fn) }

func (e *ending) Logf(format string, args ...any) {
	e.logged = append(e.logged, fmt.Sprintf(format, args...))
}

func (e *ending) end() {
	for _, fn := range slices.Backward(e.cleanups) {
		fn()
	}
}

// A client that a test has not closed ends the test binary of a bubble with a deadlock, which names nobody.
func TestAClientThatIsOpenAtTheEndOfATestIsNamed(t *testing.T) {
	for _, closes := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			e := &ending{TB: t}
			srv := zktest.Start(e)
			conn, _, err := zk.Connect(srv.Addrs(), 10*time.Second, zk.WithDialer(srv.DialFrom("a")), zk.WithLogger(quiet{}))
			require.NoError(t, err)
			_, err = conn.Create("/a", nil, 0, open)
			require.NoError(t, err)
			if closes {
				conn.Close()
			}
			e.end()
			if closes {
				require.Empty(t, e.logged)
			} else {
				require.Equal(t, []string{`zktest: the client of DialFrom("a") is open at the end of the test: close it`}, e.logged)
				conn.Close()
			}
		})
	}
}
