// SPDX-License-Identifier: Apache-2.0

package ways

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/zklock-go/zklock/internal/evidence/peer"
)

// foreignWay is a library in another language. One peer process serves all sessions.
type foreignWay struct {
	plain
	servers []string
	program string   // one of the programs of package peer
	command []string // runs the program; its file, the servers and the lease are appended

	mu   sync.Mutex
	peer *Peer // guarded by mu; started with the first session
}

// IsInProcess reports whether a way's clients run in this process.
func IsInProcess(w Way) bool {
	_, foreign := w.(*foreignWay)
	return !foreign
}

// curatorClassPath is the class path of Debian's Curator.
const curatorClassPath = "/usr/share/java/curator-recipes.jar:/usr/share/java/curator-framework.jar:/usr/share/java/curator-client.jar:" +
	"/usr/share/java/zookeeper.jar:/usr/share/java/zookeeper-jute.jar:/usr/share/java/guava.jar:/usr/share/java/slf4j-api.jar:/usr/share/java/slf4j-nop.jar"

func newCurator(at Endpoints) Way {
	return &foreignWay{
		plain:   plain{Info{"curator", "ZooKeeper", "InterProcessMutex, in a Java process behind a pipe", false, "isOwnedByCurrentThread"}},
		servers: at.ZooKeeper,
		program: peer.Curator,
		command: []string{"java", "-Xmx768m", "-cp", curatorClassPath},
	}
}

func newKazoo(at Endpoints) Way {
	return &foreignWay{
		plain:   plain{Info{"kazoo", "ZooKeeper", "Lock, in a Python process behind a pipe", false, "is_acquired"}},
		servers: at.ZooKeeper,
		program: peer.Kazoo,
		command: []string{"/usr/bin/python3"},
	}
}

// spawn starts a process for this library.
func (w *foreignWay) spawn() (*Peer, error) {
	dir, err := os.MkdirTemp("", "zklock-peer-")
	if err != nil {
		return nil, err
	}
	p, err := w.spawnIn(dir)
	if err != nil {
		_ = os.RemoveAll(dir)
	}
	return p, err
}

func (w *foreignWay) spawnIn(dir string) (*Peer, error) {
	source, err := peer.Programs.ReadFile(w.program)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, w.program)
	if err := os.WriteFile(file, source, 0o644); err != nil {
		return nil, err
	}
	args := []string{file, strings.Join(w.servers, ","), strconv.FormatInt(Lease.Milliseconds(), 10)}
	return start(dir, zkRoot+"/", append(append([]string{}, w.command...), args...)...)
}

func (w *foreignWay) Open(ctx context.Context) (Session, error) {
	w.mu.Lock()
	if w.peer == nil {
		spawned, err := w.spawn()
		if err != nil {
			w.mu.Unlock()
			return nil, err
		}
		w.peer = spawned
	}
	p := w.peer
	w.mu.Unlock()
	return p.Open(ctx)
}

func (w *foreignWay) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.peer != nil {
		w.peer.Kill()
		w.peer = nil
	}
	return nil
}

// Spawn starts a process for one way, so that the process can be paused and killed.
func Spawn(w Way, at Endpoints) (*Peer, error) {
	if foreign, ok := w.(*foreignWay); ok {
		return foreign.spawn()
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	where, err := json.Marshal(at)
	if err != nil {
		return nil, err
	}
	return start("", "", self, PeerCommand, w.Info().Name, string(where), Lease.String())
}
