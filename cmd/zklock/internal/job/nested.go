// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"encoding/json"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/escape"
	"github.com/zklock-go/zklock/operate"
)

// envHeld is the variable that tells a zklock which locks are held by those that started it, through any number of levels: the
// nodes of the holders, as a JSON list.
const envHeld = "ZKLOCK_HELD"

func heldAround() (nodes []string) {
	json.Unmarshal([]byte(os.Getenv(envHeld)), &nodes) // another program's value means no locks
	return nodes
}

// withHeld returns the value of envHeld for a command under one more hold.
func withHeld(node string) string {
	text, err := json.Marshal(append(heldAround(), node))
	if err != nil {
		panic("bug: " + err.Error())
	}
	return string(text)
}

// refuseNested returns an error if the lock is held by a zklock that started this one: this one would wait for itself, or could. The
// environment alone does not show that, because a job that was started in another way can have inherited it.
func (j *Job) refuseNested(ctx context.Context, client *zklock.Client) error {
	nodes := slices.DeleteFunc(heldAround(), func(node string) bool { return !strings.HasSuffix(directoryOf(node), j.Path) })
	if len(nodes) == 0 {
		return nil
	}
	q, err := operate.Inspect(ctx, client, j.Path)
	if err != nil {
		return err
	}
	for _, who := range q.Contenders {
		if slices.Contains(nodes, who.Node) {
			return outcome.Usage.Errorf("%s is held by a zklock that started this one: %s", escape.Short(j.Path, 512), j.whyNested(who))
		}
	}
	return nil
}

// whyNested says why this process does not acquire the lock under the given hold.
func (j *Job) whyNested(outer zklock.Contender) string {
	switch {
	case j.Shared && outer.Kind == operate.KindRead:
		return "if a writer waits for that one, this one would wait for the writer, forever"
	case j.Permits > 1 && outer.Kind == operate.KindPermit:
		return "if it is not the only one, all could wait for each other's permits, forever"
	}
	return "this one would wait for itself"
}

// directoryOf returns the directory of the lock to which a node belongs.
func directoryOf(node string) string { return strings.TrimSuffix(path.Dir(node), "/leases") }
