// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
)

// notesFile creates the file to which tests on real servers write what they leave out.
func notesFile() (name string, remove func()) {
	f, err := os.CreateTemp("", "lanes")
	if err != nil {
		return "", func() {}
	}
	_ = f.Close() // nothing was written
	_ = os.Setenv("ZKLOCK_TEST_NOTES", f.Name())
	return f.Name(), func() { _ = os.Remove(f.Name()) }
}

// memory returns the file with the durations of the last run.
func memory() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	return filepath.Join(dir, "zklock-lanes.json")
}

func recall() map[string]float64 {
	usual := map[string]float64{}
	if text, err := os.ReadFile(memory()); err == nil {
		_ = json.Unmarshal(text, &usual) // an unreadable file is ignored
	}
	return usual
}

// remember saves the durations for the next run, if possible.
func remember(usual map[string]float64) {
	if text, err := json.Marshal(usual); err == nil {
		_ = os.WriteFile(memory(), text, 0o600)
	}
}
