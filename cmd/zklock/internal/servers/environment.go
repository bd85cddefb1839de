// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zklock-go/zklock/cmd/zklock/internal/cli"
	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
	"github.com/zklock-go/zklock/cmd/zklock/internal/spell"
	"github.com/zklock-go/zklock/internal/escape"
)

// variables are the names that zklock reads, and those that it sets for a command and therefore for a zklock that the command
// starts.
func variables() []string {
	names := []string{EnvServers, EnvRoot, EnvAuth, "ZKLOCK_PATH", "ZKLOCK_NODE", "ZKLOCK_TOKEN", "ZKLOCK_HELD"}
	for _, flag := range slices.Concat(tlsFlags, nodeFlags, []string{delayFlag}) {
		names = append(names, cli.Variable(flag))
	}
	return names
}

// foreignVariables are the beginnings of names that others set: Kubernetes for a service that is called zklock, and tests.
var foreignVariables = []string{"ZKLOCK_SERVICE_", "ZKLOCK_PORT", "ZKLOCK_TEST_"}

// checkEnvironment rejects a variable whose name is almost one that zklock reads: without it, zklock would use another ensemble or
// another path. It prints the names of other variables that begin like them.
func (s *Flags) checkEnvironment(environment []string) error {
	known := variables()
	for _, v := range environment {
		name, _, _ := strings.Cut(v, "=")
		if !strings.HasPrefix(name, "ZKLOCK_") || slices.Contains(known, name) || slices.ContainsFunc(foreignVariables, func(f string) bool { return strings.HasPrefix(name, f) }) {
			continue
		}
		for _, k := range known {
			if spell.Distance(name, k) == 1 {
				return outcome.Misuse("unknown variable %s, did you mean %q?", escape.Short(name, 60), k)
			}
		}
		fmt.Fprintf(s.Streams.Err, "zklock: unknown variable %s in the environment: it has no effect\n", escape.Short(name, 60))
	}
	return nil
}
