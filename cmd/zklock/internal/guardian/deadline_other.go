// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package guardian

import "time"

// sinceBoot returns zero: on this system the standard library has no access to a clock that processes share and that cannot
// be set.
func sinceBoot() time.Duration { return 0 }
