// SPDX-License-Identifier: Apache-2.0

//go:build unix

package zkcontainer

import (
	"os"
	"path/filepath"
	"syscall"
)

// A run's life is a locked file: the kernel releases the lock when the process ends, for any reason. Each user has their own
// files. If someone else puts a symbolic link in the place of one, it is not followed.
func lifeFile(run string, create int) (*os.File, error) {
	return os.OpenFile(filepath.Join(os.TempDir(), "zkcontainer-"+filepath.Base(run)+".life"), create|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
}

func lockLife(run string, create, how int) (*os.File, error) {
	f, err := lifeFile(run, create)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), how)
		if err != syscall.EINTR {
			break
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// begin creates and locks a run's life.
func begin(run string) (*os.File, error) {
	return lockLife(run, os.O_CREATE, syscall.LOCK_EX|syscall.LOCK_NB)
}

// claim locks the life of a run that has ended. It fails at once if the run's process is alive or if the file does not exist:
// the file may be in another container's directory for temporary files, and the process alive there.
func claim(run string) (*os.File, error) { return lockLife(run, 0, syscall.LOCK_EX|syscall.LOCK_NB) }

// outlive waits until the run's process has ended.
func outlive(run string) (*os.File, error) { return lockLife(run, os.O_CREATE, syscall.LOCK_EX) }

func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
