// SPDX-License-Identifier: Apache-2.0

//go:build unix

package docs

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zktest"
)

// lockOfPrograms is the lock that the programs of the documents take.
const lockOfPrograms = "/locks/orders/42"

// queues reports whether a transaction makes a contender.
func queues(txn zktest.Txn) bool {
	if strings.HasPrefix(txn.Path, lockOfPrograms+"/") && txn.Owner != 0 {
		return true
	}
	for _, step := range txn.Steps {
		if queues(step) {
			return true
		}
	}
	return false
}

// TestProgramsInTheDocumentsEndByASignal starts each program while another one holds, and sends it TERM while it
// waits. It must end, and leave nothing in the queue.
func TestProgramsInTheDocumentsEndByASignal(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short: builds and runs whole programs")
	}
	t.Parallel()
	srv := zktest.Run(t)
	client, err := zklock.Connect(t.Context(), srv.Addrs(), nil)
	require.NoError(t, err)
	defer client.Close()
	hold, err := client.Mutex(lockOfPrograms).Lock(t.Context())
	require.NoError(t, err)
	waits := make(chan struct{}, 1)
	defer srv.OnTxn(func(txn zktest.Txn) {
		if !queues(txn) {
			return
		}
		select {
		case waits <- struct{}{}:
		default: // told already
		}
	})()
	programs := 0
	for _, b := range blocksIn(t, "go") {
		if !b.IsFile() || b.IsTest() {
			continue
		}
		programs++
		path, overlay := asPackage(t, ".", "main.go", []byte(strings.ReplaceAll(b.Text, localServer, srv.Addr())))
		bin := filepath.Join(t.TempDir(), "program")
		out, err := goCommand(t, "build", "-o", bin, overlay, path)
		require.NoError(t, err, out)
		endsByTerm(t, bin, waits)
		assert.Len(t, srv.Children(lockOfPrograms), 1, "%v left a contender", b)
		assert.Len(t, srv.Sessions(), 1, "%v must close its client", b)
	}
	assert.Positive(t, programs)
	require.NoError(t, hold.Unlock(t.Context()))
}

// endsByTerm starts a program, sends it TERM when it waits, and expects that it fails soon.
func endsByTerm(t *testing.T, bin string, waits <-chan struct{}) {
	cmd := exec.Command(bin)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // ends with the program, which is killed at last
	select {
	case <-waits:
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	case err := <-ended:
		require.Fail(t, "it did not wait", "%v\n%s", err, out.String())
	}
	select {
	case err := <-ended:
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit)
		assert.Equal(t, 1, exit.ExitCode(), out.String())
	case <-time.After(time.Minute):
		_ = cmd.Process.Kill()
		<-ended
		assert.Fail(t, "TERM did not end it", out.String())
	}
}
