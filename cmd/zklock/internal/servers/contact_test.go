// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An open connection is not an answer, and a new one is not either.
func TestASilentServerIsNotedThoughItsConnectionIsOpen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newContact()
		ours, theirs := net.Pipe()
		conn := c.watch(ours)
		answer := func() {
			go theirs.Write([]byte("x"))
			_, err := conn.Read(make([]byte, 1))
			require.NoError(t, err)
		}
		c.expect(10 * time.Second)
		time.Sleep(time.Minute)
		assert.False(t, c.SilentSince().IsZero())
		answer()
		heard := time.Now()
		time.Sleep(4 * time.Second)
		assert.True(t, c.SilentSince().IsZero())
		conn.Close()
		assert.Equal(t, heard, c.SilentSince(), "no connection is left")
		ours, theirs = net.Pipe()
		conn = c.watch(ours)
		assert.Equal(t, heard, c.SilentSince(), "a server that takes a connection has not answered yet")
		answer()
		assert.True(t, c.SilentSince().IsZero())
		conn.Close()
		assert.True(t, c.SilentSince().IsZero(), "a client that changes its server has no connection for a moment")
		theirs.Close()
	})
}
