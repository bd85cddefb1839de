// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"os"

	"github.com/zklock-go/zklock/cmd/zklock/internal/terminal"
)

// sharesGroup reports whether a command that has a terminal is in zklock's own process group.
func sharesGroup() bool { return !GroupOnly }

// leadsSession reports whether this process leads its session, so that no shell started it on its terminal.
func leadsSession() bool { return terminal.SessionID() == os.Getpid() }

// GroupOnly makes Linux behave like other Unix systems. Tests set it.
var GroupOnly = false
