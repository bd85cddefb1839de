// SPDX-License-Identifier: Apache-2.0

package lockprofile_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/adapters/lockprofile"
	"github.com/zklock-go/zklock/observe"
	"github.com/zklock-go/zklock/zktest"
)

// pprof shows a profile as go tool pprof does.
func pprof(t *testing.T, profile []byte, flags ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "zklock.pb.gz")
	require.NoError(t, os.WriteFile(file, profile, 0o600))
	cmd := exec.Command("go", append(append([]string{"tool", "pprof"}, flags...), file)...)
	cmd.Env = append(os.Environ(), "PPROF_TMPDIR="+t.TempDir())
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	require.NoError(t, err, "%s", complaints.String())
	return string(out)
}

// count counts events.
type count struct {
	mu sync.Mutex
	n  int // guarded by mu
}

func (c *count) Observe(observe.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
}

func connect(ctx context.Context, srv *zktest.Server, o observe.Observer) *zklock.Client {
	c, err := zklock.Connect(ctx, srv.Addrs(), &zklock.Options{Dialer: srv.Dial, Observer: o})
	if err != nil {
		panic(err)
	}
	return c
}

//go:noinline
func slowHolder(ctx context.Context, c *zklock.Client, d time.Duration) {
	hold, err := c.Mutex("/locks/orders").Lock(ctx)
	if err != nil {
		panic(err)
	}
	time.Sleep(d)
	if err := hold.Unlock(ctx); err != nil {
		panic(err)
	}
}

//go:noinline
func impatient(ctx context.Context, c *zklock.Client) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return c.Mutex("/locks/orders").Do(ctx, func(context.Context) error { return nil })
}

// measured is a program's day: one holds for 7 s, another waits 5 s for it and holds for 3, a third gives up after 2.
func measured(t *testing.T, profile *lockprofile.Profile) []byte {
	var out bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.Options{})
		c := connect(t.Context(), srv, profile)
		defer c.Close()
		var done sync.WaitGroup
		done.Go(func() { slowHolder(t.Context(), c, 7*time.Second) })
		time.Sleep(2 * time.Second)
		done.Go(func() { slowHolder(t.Context(), c, 3*time.Second) })
		assert.ErrorIs(t, impatient(t.Context(), c), context.DeadlineExceeded)
		done.Wait()

		hold, err := c.RWMutex("/locks/report").RLock(t.Context())
		require.NoError(t, err)
		time.Sleep(4 * time.Second)
		require.NoError(t, profile.Write(&out), "while something is held")
		require.NoError(t, hold.Unlock(t.Context()))
	})
	return out.Bytes()
}

//zklock:promise P19.8
func TestTheProfileShowsHowLongGoroutinesWaitAndHold(t *testing.T) {
	seen := &count{}
	profile := measured(t, &lockprofile.Profile{Next: seen})
	require.Positive(t, seen.n)

	wait := pprof(t, profile, "-top", "-cum")
	assert.Regexp(t, `(?m)Total samples = 7s\b|of 7s total`, wait, "5 s and 2 s")
	assert.Regexp(t, `5s .*zklock\.\(\*Mutex\)\.Lock`, wait)
	assert.Regexp(t, `5s .*lockprofile_test\.slowHolder`, wait)
	assert.Regexp(t, `2s .*lockprofile_test\.impatient`, wait)
	assert.NotContains(t, wait, "Observe", "frames below the call are left out")

	hold := pprof(t, profile, "-top", "-cum", "-sample_index=hold")
	assert.Regexp(t, `10s .*lockprofile_test\.slowHolder`, hold, "7 s and 3 s")
	assert.Regexp(t, `4s .*RLock`, hold, "one that has not ended")
	assert.NotContains(t, hold, "impatient")

	tags := tagsOf(t, profile, "-sample_index=waits")
	assert.Regexp(t, `^3 .*: /locks/orders$`, tags[0])
	assert.Regexp(t, `^1 .*: /locks/report$`, tags[1])
	raw := pprof(t, profile, "-raw")
	assert.Contains(t, raw, "wait/nanoseconds")
	assert.Contains(t, raw, "profile_test.go")
}

// tagsOf returns the paths of a profile, each with its part, the largest first.
func tagsOf(t *testing.T, profile []byte, flags ...string) []string {
	t.Helper()
	var tags []string
	for text := range strings.Lines(pprof(t, profile, append(flags, "-tags")...)) {
		tags = append(tags, strings.Join(strings.Fields(text), " "))
	}
	require.Regexp(t, "path: Total", tags[0])
	return tags[1:]
}

//zklock:promise P19.8
func TestManyPathsBecomeOne(t *testing.T) {
	profile := &lockprofile.Profile{}
	for i := range 3000 {
		profile.Observe(observe.Event{Kind: observe.Acquired, Path: fmt.Sprint("/locks/", i), Node: "n", Elapsed: time.Second})
		profile.Observe(observe.Event{Kind: observe.Released, Path: fmt.Sprint("/locks/", i), Node: "n", Elapsed: time.Second})
	}
	var out bytes.Buffer
	require.NoError(t, profile.Write(&out))
	tags := tagsOf(t, out.Bytes())
	assert.Regexp(t, `^2000s \(66\.67%\): other$`, tags[0])
	assert.Regexp(t, `^1s .*: /locks/0$`, tags[1])

	folded := &lockprofile.Profile{Name: func(string) string { return "orders" }}
	out.Reset()
	require.NoError(t, folded.Write(&out), "an empty one")
	for i := range 3000 {
		folded.Observe(observe.Event{Kind: observe.GivenUp, Path: fmt.Sprint("/locks/", i), Elapsed: time.Second})
	}
	out.Reset()
	require.NoError(t, folded.Write(&out))
	assert.Regexp(t, `^3000s .*: orders$`, tagsOf(t, out.Bytes())[0])
}

//zklock:promise P19.8
func TestTheProfileIsServed(t *testing.T) {
	profile := &lockprofile.Profile{}
	profile.Observe(observe.Event{Kind: observe.GivenUp, Path: "/locks/orders", Elapsed: time.Second})
	server := httptest.NewServer(profile)
	defer server.Close()
	cmd := exec.Command("go", "tool", "pprof", "-top", server.URL+"/debug/pprof/zklock")
	cmd.Env = append(os.Environ(), "PPROF_TMPDIR="+t.TempDir())
	out, err := cmd.Output()
	require.NoError(t, err)
	assert.Contains(t, string(out), "1s")
}

// before calls a function before it passes an event on.
type before struct {
	observe.Observer
	do func(observe.Event)
}

func (b before) Observe(e observe.Event) {
	b.do(e)
	b.Observer.Observe(e)
}

// A grant and a loss are reported on different goroutines.
//
//zklock:promise P19.8
func TestAHoldWhoseEndIsReportedBeforeItsBeginningHasEnded(t *testing.T) {
	var out bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.Options{})
		profile := &lockprofile.Profile{}
		c := connect(t.Context(), srv, before{profile, func(e observe.Event) {
			if e.Kind == observe.Acquired && e.Path == "/lost" {
				assert.NoError(t, srv.DeleteNode(e.Path+"/"+e.Node))
				synctest.Wait() // until the loss is reported
			}
		}})
		defer c.Close()
		for _, path := range []string{"/lost", "/held"} {
			_, err := c.Mutex(path).Lock(t.Context())
			require.NoError(t, err)
		}
		time.Sleep(time.Hour)
		require.NoError(t, profile.Write(&out))
	})
	assert.Regexp(t, `^1hrs \( *100%\): /held$`, tagsOf(t, out.Bytes(), "-sample_index=hold")[0])
}

// The next hold of a Cohort may be reported before the end of the previous one.
//
//zklock:promise P19.8
func TestHoldsOnOneNodeCountEach(t *testing.T) {
	held := map[time.Duration]*bytes.Buffer{}
	synctest.Test(t, func(t *testing.T) {
		profile := &lockprofile.Profile{}
		happens := func(kind observe.Kind, took time.Duration) {
			profile.Observe(observe.Event{Kind: kind, Path: "/l", Node: "n", Elapsed: took})
		}
		write := func(total time.Duration) {
			held[total] = new(bytes.Buffer)
			require.NoError(t, profile.Write(held[total]))
		}
		happens(observe.Acquired, 0)
		time.Sleep(time.Second)
		happens(observe.Acquired, 0)
		time.Sleep(2 * time.Second)
		happens(observe.Released, 2*time.Second)
		write(5 * time.Second)
		time.Sleep(time.Second)
		happens(observe.Released, 4*time.Second)
		happens(observe.Released, 4*time.Second) // of one that began before there was a profile
		write(6 * time.Second)
	})
	for total, profile := range held {
		assert.Regexp(t, fmt.Sprintf(`Total samples = %v\b|of %[1]v total`, total), pprof(t, profile.Bytes(), "-top", "-sample_index=hold"))
	}
}
