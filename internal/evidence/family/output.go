package family

import (
	"bytes"
	"sync"
)

// Output is what a process has written. It may be read while the process runs.
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
