// SPDX-License-Identifier: Apache-2.0

package family

import (
	"bytes"
	"sync"
)

// Output is the output of a process. It can be read while the process is running.
type Output struct {
	mu  sync.Mutex
	buf bytes.Buffer // guarded by mu
}

func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}
