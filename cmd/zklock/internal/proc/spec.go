// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"os/exec"

	"github.com/zklock-go/zklock/cmd/zklock/internal/terminal"
)

// Spec describes a command to start. Like an event, it can be sent to another process as JSON.
type Spec struct {
	Path     Raw
	Args     []Raw
	Terminal bool // there is a controlling terminal
	Group    int  // zklock's own process group
	Leader   bool // zklock leads the terminal's session: only its command needs its group
}

// SpecOf returns the Spec of cmd, for another process that starts it. hasTerminal says that there is a controlling terminal.
func SpecOf(cmd *exec.Cmd, hasTerminal bool) Spec {
	return Spec{Path: Raw(cmd.Path), Args: allRaw(cmd.Args), Terminal: hasTerminal, Group: terminal.ProcessGroup(), Leader: leadsSession()}
}

// Event is an event in the life of a command.
type Event struct {
	Started int  `json:",omitempty"` // the command's process ID
	Cgroup  Raw  `json:",omitempty"` // the command's control group; comes with Started
	Failed  Raw  `json:",omitempty"` // why the command could not be started; the last event
	Exited  *int `json:",omitempty"` // the command's exit code
	EndedBy int  `json:",omitempty"` // the signal that ended the command; comes with Exited
	Stopped int  `json:",omitempty"` // the signal that stopped the command
	Empty   bool `json:",omitempty"` // no process of the command is left; the last event
}

// IsLast reports whether e is the last event.
func (e Event) IsLast() bool { return e.Empty || len(e.Failed) > 0 }

// SharesTerminal reports whether a terminal sends its signals to zklock, to the command and to the shell that started zklock.
func SharesTerminal() bool { return sharesGroup() && !leadsSession() }

// Raw is text that need not be UTF-8. JSON would replace the invalid bytes of a string.
type Raw []byte

func allRaw(texts []string) (all []Raw) {
	for _, text := range texts {
		all = append(all, Raw(text))
	}
	return all
}

func allStrings(texts []Raw) (all []string) {
	for _, text := range texts {
		all = append(all, string(text))
	}
	return all
}
