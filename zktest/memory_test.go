// SPDX-License-Identifier: Apache-2.0

package zktest

import (
	"bytes"
	"io"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAConnectionWithoutASocketKeepsWhatIsNotReadYet(t *testing.T) {
	near, far := newMemoryConns()
	_, err := near.Write([]byte("hello"))
	require.NoError(t, err)
	require.NoError(t, near.Close())
	got, err := io.ReadAll(far)
	require.NoError(t, err)
	assert.Equal(t, "hello", string(got))
	_, err = far.Write([]byte("x"))
	require.ErrorIs(t, err, io.ErrClosedPipe)
	_, err = near.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.ErrClosedPipe)
	require.NoError(t, far.Close())
	require.ErrorIs(t, far.SetDeadline(time.Time{}), io.ErrClosedPipe)
	assert.Equal(t, "far", near.RemoteAddr().String())
}

func TestAWriterWithoutASocketWaitsForAReaderThatIsFarBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := newMemoryConns()
		sent := bytes.Repeat([]byte("0123456789"), memoryLimit/4)
		written := make(chan error, 1)
		go func() { // ends with the reads below
			_, err := near.Write(sent)
			written <- err
		}()
		synctest.Wait()
		require.Empty(t, written)
		got := make([]byte, len(sent))
		_, err := io.ReadFull(far, got)
		require.NoError(t, err)
		require.NoError(t, <-written)
		require.Equal(t, sent, got)

		require.NoError(t, near.SetWriteDeadline(time.Now().Add(time.Second)))
		n, err := near.Write(sent)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Equal(t, memoryLimit, n)
	})
}

func TestADeadlineCountsForTheReadThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, _ := newMemoryConns()
		start, over := time.Now(), make(chan time.Duration, 1)
		read := func() { // ends with its deadline, which every case has
			_, err := near.Read(make([]byte, 1))
			assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
			over <- time.Since(start)
		}
		after := func(d time.Duration) { require.NoError(t, near.SetReadDeadline(start.Add(d))) }
		go read() // it has none yet
		synctest.Wait()
		after(5 * time.Second)
		require.Equal(t, 5*time.Second, <-over)

		after(time.Minute)
		go read()
		synctest.Wait()
		after(10 * time.Second) // sooner than what it waits for
		require.Equal(t, 10*time.Second, <-over)

		after(20 * time.Second)
		go read()
		synctest.Wait()
		after(30 * time.Second) // later
		require.Equal(t, 30*time.Second, <-over)

		require.NoError(t, near.SetReadDeadline(time.Time{}))
		require.NoError(t, near.SetDeadline(start))
		_, err := near.Write([]byte("x"))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	})
}
