// SPDX-License-Identifier: Apache-2.0

package zktest_test

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestMain fails the run if a server left a goroutine behind.
func TestMain(m *testing.M) {
	code := m.Run()
	if left := leftovers(); code == 0 && left != "" {
		fmt.Fprintf(os.Stderr, "goroutines left behind:\n%s\n", left)
		code = 1
	}
	os.Exit(code)
}

// leftovers answers the stacks of goroutines that run this package's code. A
// client that is closed may need a moment to notice.
func leftovers() string {
	var found []string
	for range 100 {
		buf := make([]byte, 4<<20)
		buf = buf[:runtime.Stack(buf, true)]
		found = nil
		for _, stack := range strings.Split(string(buf), "\n\n") {
			if strings.Contains(stack, "/zktest.(") {
				found = append(found, stack)
			}
		}
		if len(found) == 0 {
			return ""
		}
		time.Sleep(10 * time.Millisecond)
	}
	return strings.Join(found, "\n\n")
}

func netDial(addr string) (net.Conn, error) { return net.DialTimeout("tcp", addr, 5*time.Second) }
