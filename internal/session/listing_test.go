// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/conn"
	"github.com/zklock-go/zklock/internal/frames"
	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/zktest"
)

// share requests a listing as a bundle of its own.
func (c *client) share(s *Session, dir string) *listing {
	b := c.BundleNow(s)
	l := c.shareIn(b, dir)
	b.SendNow()
	return l
}

// shareIn returns the listing that b.List returns a function for.
func (c *client) shareIn(b *Bundle, dir string) *listing {
	request := func(then func(Listing, error)) { add(b, frames.Children(dir, false), readListing, then) }
	return c.listings.share(c.Requests, listed{b.sess, dir}, request)
}

// children creates n nodes in dir.
func children(srv *zktest.Server, dir string, n int) (err error) {
	for i := range n {
		err = errors.Join(err, srv.PutNode(fmt.Sprintf("%s/%06d", dir, i), nil))
	}
	return err
}

// A call during a listing gets the result of another listing that is requested later, and shares it with other such calls.
func TestAListingIsRequestedAfterTheCall(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		for _, dir := range []string{"/a", "/b"} {
			require.NoError(t, srv.PutNode(dir, nil))
		}
		c := startClient(t, srv, "a")
		s := c.session(t)
		synctest.Wait()
		srv.ResetCounts()
		lists := func() int {
			synctest.Wait()
			return srv.Requests()[zktest.OpGetChildren2]
		}
		member := srv.Member(0)
		member.Freeze()
		first := c.share(s, "/a")
		second, third := c.share(s, "/a"), c.share(s, "/a")
		require.NotSame(t, first, second)
		require.Same(t, second, third)
		elsewhere := c.share(s, "/b")
		require.False(t, first.done.IsSet())
		member.Thaw()
		require.Equal(t, 3, lists())
		require.True(t, first.done.IsSet() && second.done.IsSet() && elsewhere.done.IsSet())
		require.Empty(t, c.listings.running)

		var changed []*listing
		stop := srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Op == zktest.OpGetChildren2 && len(changed) < 3 {
				changed = append(changed, c.share(s, "/a")) // while the server handles a listing
				assert.NoError(t, children(srv, "/a", len(changed)))
			}
			return zktest.Pass
		})
		first = c.share(s, "/a")
		require.Equal(t, 3+4, lists())
		stop()
		got := []int{len(first.Names)}
		for _, l := range changed {
			got = append(got, len(l.Names))
		}
		require.True(t, slices.IsSorted(got), got)
		require.Equal(t, 3, got[3], "it was requested after the last call")
	})
}

// The caller that adds a listing to its bundle may give up before it is sent. Others may wait for the same listing.
func TestAListingThatIsNotSentIsRequestedAgain(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.PutNode(testDir, nil))
		c := startClient(t, srv, "a")
		s := c.session(t)
		b := c.BundleNow(s)
		first, second := c.shareIn(b, testDir), c.shareIn(b, testDir)
		b.fail(context.Canceled)
		synctest.Wait()
		for _, l := range []*listing{first, second} {
			require.True(t, l.done.IsSet())
			require.NoError(t, l.err)
			require.NotNil(t, l.Stat)
		}

		c.Calls.Close()
		first = c.share(s, testDir)
		second = c.share(s, testDir)
		synctest.Wait()
		require.NoError(t, first.err)
		require.ErrorIs(t, second.err, outcome.ErrClosed, "no goroutine can request it")
		require.Empty(t, c.listings.running)

		b = c.BundleNow(s)
		first = c.shareIn(b, testDir)
		b.fail(context.Canceled)
		require.ErrorIs(t, first.err, outcome.ErrClosed)
	})
}

// Callers that share a request with the one that has not sent it get an error after which they try again.
func TestABundleThatIsNotSent(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.PutNode(testDir, nil))
		c := startClient(t, srv, "a")
		b, err := c.Bundle(t.Context(), c.session(t))
		require.NoError(t, err)
		stat := b.Stat(testDir)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, b.Send(ctx), context.Canceled)
		_, err = stat(t.Context())
		require.ErrorIs(t, err, conn.ErrNotSent)
		require.NotErrorIs(t, err, context.Canceled)
		require.True(t, outcome.IsTransient(err))

		s := c.session(t)
		c.Link.Close()
		b = c.BundleNow(s)
		stat = b.Stat(testDir)
		b.SendNow()
		_, err = stat(t.Context())
		require.ErrorIs(t, err, outcome.ErrSessionOver)
	})
}

// Only a few long listings of directories are requested at the same time.
func TestFewLongListingsAreUnderWay(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		dirs := []string{"/a", "/b", "/c", "/d"}
		for _, dir := range append(dirs, "/short") {
			require.NoError(t, srv.PutNode(dir, nil))
		}
		require.NoError(t, children(srv, "/a", manyChildren))
		c := startClient(t, srv, "a")
		s := c.session(t)
		for _, dir := range dirs {
			c.share(s, dir)
			synctest.Wait()
		}
		require.Len(t, c.listings.long, 1)
		for _, dir := range dirs {
			c.listings.remember(dir, manyChildren)
		}
		c.listings.room = make(chan struct{}, longAtOnce)
		for range longAtOnce {
			c.listings.room <- struct{}{}
		}
		synctest.Wait()
		srv.ResetCounts()
		for _, dir := range append(dirs, "/short") {
			c.share(s, dir)
		}
		synctest.Wait()
		require.Equal(t, 1, srv.Requests()[zktest.OpGetChildren2], "no long one")
		for range longAtOnce {
			<-c.listings.room
		}
		synctest.Wait()
		require.Equal(t, 1+len(dirs), srv.Requests()[zktest.OpGetChildren2])
		require.Equal(t, map[string]struct{}{"/a": {}}, c.listings.long, "the others are short now")
		require.Empty(t, c.listings.room)
	})
}

// Servers that have too many requests are asked again.
func TestAThrottledListingIsRequestedAgain(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.PutNode(testDir, nil))
		c := startClient(t, srv, "a")
		srv.Next(5, throttled, zktest.OpGetChildren2)
		l, err := c.List(t.Context(), c.session(t), testDir)
		require.NoError(t, err)
		require.NotNil(t, l.Stat)
	})
}
