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

// refuseNested returns an error if the lock at lockPath is held by a zklock that started this one: this one would wait for
// itself. The environment alone does not show that, because a job that was started in another way can have inherited it.
func refuseNested(ctx context.Context, client *zklock.Client, lockPath string) error {
	nodes := slices.DeleteFunc(heldAround(), func(node string) bool { return !strings.HasSuffix(directoryOf(node), lockPath) })
	if len(nodes) == 0 {
		return nil
	}
	q, err := operate.Inspect(ctx, client, lockPath)
	if err != nil {
		return err
	}
	for _, who := range q.Contenders {
		if slices.Contains(nodes, who.Node) {
			return outcome.Usage.Errorf("%s is held by a zklock that started this one: this one would wait for itself", escape.Short(lockPath, 512))
		}
	}
	return nil
}

// directoryOf returns the directory of the lock to which a node belongs.
func directoryOf(node string) string { return strings.TrimSuffix(path.Dir(node), "/leases") }
