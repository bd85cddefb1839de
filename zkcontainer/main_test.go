// SPDX-License-Identifier: Apache-2.0

package zkcontainer

import (
	"os"
	"testing"

	"github.com/zklock-go/zklock/internal/evidence/engine"
)

// Tests that need another environment start a process of their own.
func TestMain(m *testing.M) {
	if os.Getenv(elsewhereEnv) == "" {
		engine.Prepare()
	}
	os.Exit(m.Run())
}
