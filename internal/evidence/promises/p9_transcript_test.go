// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/operate"
	"github.com/zklock-go/zklock/zktest"
)

var update = flag.Bool("update", false, "rewrite the transcripts")

// A transcript records the requests of each client and the times of holds. A message takes five milliseconds each way. Heartbeats
// are left out.
type transcript struct {
	mu    sync.Mutex
	start time.Time
	lines []string // guarded by mu
}

func (s *transcript) note(who, what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, fmt.Sprintf("%5d ms  %-8s %s", time.Since(s.start).Milliseconds(), who, what))
}

// String returns the lines in order of time. Lines with the same time are sorted by their text.
func (s *transcript) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.Sort(s.lines)
	return strings.Join(s.lines, "\n") + "\n"
}

var (
	nodeName = regexp.MustCompile(`_c_[0-9a-f]{32}(-[a-z_A-Z]+?-?_*)(0*)(\d*)$`)
	verbs    = map[zktest.Op]string{
		zktest.OpCreate: "create", zktest.OpCreateContainer: "make", zktest.OpDelete: "delete", zktest.OpExists: "look at",
		zktest.OpGetData: "read", zktest.OpSetData: "write", zktest.OpGetChildren: "list", zktest.OpGetChildren2: "list", zktest.OpCheck: "check",
	}
)

// shortName shows a contender's node by its number, and other paths below the lock's parent.
func shortName(path string) string {
	path = strings.TrimPrefix(path, "/locks")
	m := nodeName.FindStringSubmatch(path)
	switch {
	case m == nil:
		return path
	case m[2]+m[3] == "":
		return "its node"
	case m[3] == "":
		return "#0"
	}
	return "#" + m[3]
}

// tell returns a description of a request, or "" for a heartbeat and for what a new client asks once.
func tell(r *zktest.Request) string {
	paths, ops := r.Paths, r.Ops
	if r.Op != zktest.OpMulti {
		paths, ops = []string{r.Path}, []zktest.Op{r.Op}
	}
	var parts []string
	beat := true
	for i, op := range ops {
		verb, ok := verbs[op]
		if !ok || paths[i] == "/" || strings.HasPrefix(paths[i], "/keeper/") {
			return ""
		}
		beat = beat && op == zktest.OpCheck
		parts = append(parts, verb+" "+shortName(paths[i]))
	}
	if beat {
		return ""
	}
	text := strings.Join(parts, ", ")
	if r.Watch {
		text += ", watch it"
	}
	return text
}

// played returns the transcript of a scenario.
func played(t *testing.T, play func(t *testing.T, srv *zktest.Server, s *transcript)) (text string) {
	virtual(t, zktest.Options{Latency: fixed(5 * time.Millisecond), TickTime: time.Second}, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.PutNode(path, nil))
		s := &transcript{start: time.Now()}
		remove := srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if what := tell(r); what != "" {
				s.note(r.Client, what)
			}
			return zktest.Pass
		})
		play(t, srv, s)
		remove()
		text = s.String()
	})
	return text
}

// shortest returns the shortest of several transcripts. A transcript is longer if the client library sent a listing before the
// create that it had to follow, so that the listing was repeated.
func shortest(t *testing.T, play func(t *testing.T, srv *zktest.Server, s *transcript)) string {
	text := played(t, play)
	for range 7 {
		if again := played(t, play); strings.Count(again, "\n") < strings.Count(text, "\n") {
			text = again
		}
	}
	return text
}

// holds waits for a hold in the background, records its grant, and sends it to the channel.
func (s *transcript) holds(t *testing.T, who string, lock func(context.Context) (*zklock.Hold, error)) <-chan *zklock.Hold {
	got := make(chan *zklock.Hold, 1)
	// Owned by the test's bubble, which ends with it.
	go func() {
		hold, err := lock(t.Context())
		if err != nil {
			s.note(who, "gives up: "+err.Error()[strings.LastIndex(err.Error(), ": ")+2:])
			close(got)
			return
		}
		s.note(who, "HOLDS")
		got <- hold
	}()
	time.Sleep(100 * time.Millisecond)
	synctest.Wait()
	return got
}

func (s *transcript) unlock(t *testing.T, who string, got <-chan *zklock.Hold) {
	s.note(who, "unlocks")
	unlock(t, <-got)
	time.Sleep(100 * time.Millisecond)
}

// TestTranscripts compares the requests with testdata/transcripts. Run it with -update to rewrite them.
//
//zklock:promise P9.10
func TestTranscripts(t *testing.T) {
	for name, play := range map[string]func(t *testing.T, srv *zktest.Server, s *transcript){
		"uncontended": func(t *testing.T, srv *zktest.Server, s *transcript) {
			c := connect(t, srv, "ann", term)
			for range 2 {
				s.unlock(t, "ann", s.holds(t, "ann", c.Mutex(path).Lock))
			}
		},
		"hand-off": func(t *testing.T, srv *zktest.Server, s *transcript) {
			var waiting []<-chan *zklock.Hold
			names := []string{"ann", "bob", "cat", "dan"}
			for _, name := range names {
				waiting = append(waiting, s.holds(t, name, connect(t, srv, name, term).Mutex(path).Lock))
			}
			for i, name := range names {
				s.unlock(t, name, waiting[i])
			}
		},
		"crash": func(t *testing.T, srv *zktest.Server, s *transcript) {
			s.holds(t, "ann", connect(t, srv, "ann", term).Mutex(path).Lock)
			bob := s.holds(t, "bob", connect(t, srv, "bob", term).Mutex(path).Lock)
			cat := s.holds(t, "cat", connect(t, srv, "cat", term).Mutex(path).Lock)
			node, _ := srv.Node(path + "/" + inOrder(srv, path)[0])
			s.note("ann", "crashes, and its session ends")
			srv.Partition("ann")
			srv.ExpireSession(node.Stat.EphemeralOwner)
			time.Sleep(100 * time.Millisecond)
			s.unlock(t, "bob", bob)
			s.unlock(t, "cat", cat)
		},
		"eviction": func(t *testing.T, srv *zktest.Server, s *transcript) {
			ann := s.holds(t, "ann", connect(t, srv, "ann", term).Mutex(path).Lock)
			s.holds(t, "bob", connect(t, srv, "bob", term).Mutex(path).Lock)
			cat := s.holds(t, "cat", connect(t, srv, "cat", term).Mutex(path).Lock)
			operator := connectWith(t, srv, &zklock.Options{Label: "operator", SessionTimeout: term, Anonymous: true}) // has no host, which would differ
			q, err := operate.Inspect(t.Context(), operator, path)
			require.NoError(t, err)
			s.note("operator", "evicts #1")
			require.NoError(t, operate.Evict(t.Context(), operator, "", q.Contenders[1]))
			time.Sleep(100 * time.Millisecond)
			s.unlock(t, "ann", ann)
			s.unlock(t, "cat", cat)
		},
		"downgrade": func(t *testing.T, srv *zktest.Server, s *transcript) {
			ann := s.holds(t, "ann", connect(t, srv, "ann", term).RWMutex(path).Lock)
			bob := s.holds(t, "bob", connect(t, srv, "bob", term).RWMutex(path).RLock)
			cat := s.holds(t, "cat", connect(t, srv, "cat", term).RWMutex(path).Lock)
			hold := <-ann
			s.note("ann", "becomes a reader")
			require.NoError(t, hold.Downgrade(t.Context()))
			time.Sleep(100 * time.Millisecond)
			s.unlock(t, "bob", bob)
			s.note("ann", "unlocks")
			unlock(t, hold)
			time.Sleep(100 * time.Millisecond)
			s.unlock(t, "cat", cat)
		},
		"cohort": func(t *testing.T, srv *zktest.Server, s *transcript) {
			c := connect(t, srv, "ann", term)
			one := s.holds(t, "ann", c.Cohort(path, nil).Lock)
			two := s.holds(t, "ann", c.Cohort(path, nil).Lock)
			bob := s.holds(t, "bob", connect(t, srv, "bob", term).Mutex(path).Lock)
			s.unlock(t, "ann", one)
			s.unlock(t, "bob", bob) // two gets a node of its own, behind bob's
			s.unlock(t, "ann", two)
		},
	} {
		t.Run(name, func(t *testing.T) {
			text := shortest(t, play)
			file := filepath.Join("testdata", "transcripts", name+".txt")
			if *update {
				require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
				require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, string(want), text)
		})
	}
}
