//go:build !unix

package zkcontainer

import (
	"errors"
	"os"
	"syscall"
)

// A run's life is a locked file, see life_unix.go. Elsewhere nothing would clean up after a run that dies, so none begins.
var errNoLife = errors.New("containers for tests need a Unix")

func begin(string) (*os.File, error)   { return nil, errNoLife }
func claim(string) (*os.File, error)   { return nil, errNoLife }
func outlive(string) (*os.File, error) { return nil, errNoLife }

func detached() *syscall.SysProcAttr { return nil }
