// SPDX-License-Identifier: Apache-2.0

// Command zklock takes ZooKeeper locks from a shell, shows their holders and waiters, and
// demonstrates the library with an in-process server. See `zklock --help`.
package main

import "github.com/zklock-go/zklock/cmd/zklock/internal/command"

func main() { command.Main() }
