// SPDX-License-Identifier: Apache-2.0

// Package engine prepares the environment of this repository's own tests in containers. Programs set it themselves.
package engine

import "os"

// Prepare sets what testcontainers reads, if it is not set. Call it in TestMain.
func Prepare() {
	setDefault("TESTCONTAINERS_RYUK_DISABLED", "true") // Ryuk's image needs a registry
	if _, err := os.Stat("/.dockerenv"); err == nil {
		// testcontainers would look for published ports at the gateway. The engine that integration/setup starts is in the same
		// container as the tests.
		setDefault("TESTCONTAINERS_HOST_OVERRIDE", "127.0.0.1")
	}
}

func setDefault(name, value string) {
	if os.Getenv(name) == "" {
		_ = os.Setenv(name, value)
	}
}
