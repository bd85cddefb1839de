//go:build unix

package zkcontainer

import (
	"os"
	"path/filepath"
	"syscall"
)

// A run's life is a locked file: the kernel drops the lock when the process ends, in whatever way. Each user has their own,
// and one that somebody else has put into its place is not followed anywhere.
func lifeFile(run string) (*os.File, error) {
	return os.OpenFile(filepath.Join(os.TempDir(), "zkcontainer-"+filepath.Base(run)+".life"), os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
}

func lockLife(run string, how int) (*os.File, error) {
	f, err := lifeFile(run)
	if err != nil {
		return nil, err
	}
	for {
		if err = syscall.Flock(int(f.Fd()), how); err != syscall.EINTR {
			break
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// claim takes a run's life, and fails at once if its process lives.
func claim(run string) (*os.File, error) { return lockLife(run, syscall.LOCK_EX|syscall.LOCK_NB) }

// outlive waits until the run's process is no more.
func outlive(run string) (*os.File, error) { return lockLife(run, syscall.LOCK_EX) }

func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
