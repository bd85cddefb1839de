// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package zkcontainer

import (
	"errors"
	"os"
	"syscall"
)

// A run's life is a locked file: see life_unix.go. On other systems nothing would clean up after a run that dies, so runs are
// not supported.
var errNoLife = errors.New("containers for tests are only supported on Unix")

func begin(string) (*os.File, error)   { return nil, errNoLife }
func claim(string) (*os.File, error)   { return nil, errNoLife }
func outlive(string) (*os.File, error) { return nil, errNoLife }

func detached() *syscall.SysProcAttr { return nil }
