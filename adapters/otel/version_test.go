// SPDX-License-Identifier: Apache-2.0

package zkotel

import "testing"

// In this module, because the build information of tests names no other.
func TestTheVersionIsKnown(t *testing.T) {
	if version() == "" {
		t.Fatal("the instrumentation scope needs a version")
	}
}
