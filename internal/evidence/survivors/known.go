// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// knownIn returns the directory in which known keeps what it knows.
var knownIn = func() (string, error) {
	cache, err := os.UserCacheDir()
	return filepath.Join(cache, "zklock-survivors"), err
}

// known returns what find finds out about the tests in a binary. It takes the tests' time, so the user's cache keeps it, under the hash of
// the binary: the same sources make the same binary.
func known(binary string, find func() ([]test, error)) (tests []test, _ error) {
	text, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	dir, err := knownIn()
	if err != nil {
		return find() // there is no such directory
	}
	name := filepath.Join(dir, fmt.Sprintf("%x.json", sha256.Sum256(text)))
	if text, err := os.ReadFile(name); err == nil && json.Unmarshal(text, &tests) == nil {
		return tests, nil
	}
	tests, err = find()
	if err != nil {
		return nil, err
	}
	text, err = json.Marshal(tests)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return tests, os.WriteFile(name, text, 0o600)
}
