//go:build !unix

package engine

import (
	"errors"
	"os"
	"syscall"
)

// A run's life is a locked file, see life_unix.go. Elsewhere nothing would clean up after a run that dies, so none begins.
var errNoLife = errors.New("these tests need a Unix")

func claim(string) (*os.File, error)   { return nil, errNoLife }
func outlive(string) (*os.File, error) { return nil, errNoLife }

func detached() *syscall.SysProcAttr { return nil }
