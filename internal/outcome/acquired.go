// SPDX-License-Identifier: Apache-2.0

package outcome

import "errors"

// NotAcquired returns err in a form in which errors.Is also finds ErrNotAcquired. The text stays the
// same: it says why the lock was not acquired.
func NotAcquired(err error) error {
	if errors.Is(err, ErrNotAcquired) {
		return err
	}
	return &notAcquired{err}
}

type notAcquired struct{ error }

func (n *notAcquired) Is(target error) bool { return target == ErrNotAcquired }

func (n *notAcquired) Unwrap() error { return n.error }

// Ran returns the error of a function that ran under a lock. errors.Is does not find ErrNotAcquired
// in it, even if the function could not acquire another lock: its caller asks about the lock that
// the function ran under.
func Ran(err error) error {
	if !errors.Is(err, ErrNotAcquired) {
		return err
	}
	return &ran{err}
}

// A ran has no method Unwrap, through which errors.Is would find ErrNotAcquired.
type ran struct{ error }

func (r *ran) Is(target error) bool { return target != ErrNotAcquired && errors.Is(r.error, target) }

func (r *ran) As(target any) bool { return errors.As(r.error, target) }
