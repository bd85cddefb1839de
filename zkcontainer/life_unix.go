//go:build unix

package zkcontainer

import (
	"os"
	"path/filepath"
	"syscall"
)

// A run's life is a locked file: the kernel drops the lock when the process ends, in whatever way. Each user has their own,
// and one that somebody else has put into its place is not followed anywhere.
func lifeFile(run string, create int) (*os.File, error) {
	return os.OpenFile(filepath.Join(os.TempDir(), "zkcontainer-"+filepath.Base(run)+".life"), create|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
}

func lockLife(run string, create, how int) (*os.File, error) {
	f, err := lifeFile(run, create)
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

// begin makes a run's life.
func begin(run string) (*os.File, error) {
	return lockLife(run, os.O_CREATE, syscall.LOCK_EX|syscall.LOCK_NB)
}

// claim takes the life of a run that has ended. It fails at once if its process lives, and if its life is not here: it may
// be in the directory for temporary files of another container, and its process live there.
func claim(run string) (*os.File, error) { return lockLife(run, 0, syscall.LOCK_EX|syscall.LOCK_NB) }

// outlive waits until the run's process is no more.
func outlive(run string) (*os.File, error) { return lockLife(run, os.O_CREATE, syscall.LOCK_EX) }

func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
