// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package signals

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
)

// Terminate asks a command to end. These systems cannot send it.
const Terminate = syscall.SIGTERM

var passedOn = []os.Signal{os.Interrupt}

// FromTerminal are the signals that a console sends to all its processes.
var FromTerminal = []os.Signal{os.Interrupt}

// EndsWaiting returns true: every signal ends zklock while no command is running.
func EndsWaiting(os.Signal) (code int, ends bool) { return outcome.SignalBase + 2, true }

// Listen delivers signals to the channel.
func Listen(signals chan os.Signal) { signal.Notify(signals, passedOn...) }

// IgnoreSuspension does nothing: these systems do not suspend processes.
func IgnoreSuspension() {}

// NameOf returns "": no signal stops a process on these systems.
func NameOf(int) string { return "" }
