package session

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
)

// slowLists is a server that answers a listing only when the test lets it.
type slowLists struct {
	asked  atomic.Int32
	answer chan int32 // the version in the reply
}

func (w *slowLists) ask(listed) (Listing, error) {
	w.asked.Add(1)
	return NewListing(nil, &zk.Stat{Cversion: <-w.answer}, time.Now()), nil
}

// A call during a listing gets the result of another listing that is requested later, and shares it with other such calls.
func TestAListingIsRequestedAfterTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &slowLists{answer: make(chan int32)}
		var all listings
		tasks := NewTasks()
		key, other := listed{dir: "/a"}, listed{dir: "/b"}
		first := all.share(tasks, key, w.ask)
		synctest.Wait()
		second, third := all.share(tasks, key, w.ask), all.share(tasks, key, w.ask)
		require.NotSame(t, first, second)
		require.Same(t, second, third)
		elsewhere := all.share(tasks, other, w.ask)
		synctest.Wait()
		require.Equal(t, 2, int(w.asked.Load()), "another directory does not wait")

		w.answer <- 1
		w.answer <- 1
		synctest.Wait()
		require.True(t, first.done.IsSet())
		require.True(t, elsewhere.done.IsSet())
		require.False(t, second.done.IsSet())
		require.Equal(t, 3, int(w.asked.Load()))
		fourth := all.share(tasks, key, w.ask)
		require.NotSame(t, second, fourth, "that one was asked for already")
		w.answer <- 2
		w.answer <- 3
		synctest.Wait()
		require.Equal(t, []int32{1, 2, 3}, []int32{first.Stat.Cversion, second.Stat.Cversion, fourth.Stat.Cversion})
		require.Empty(t, all.running)

		last := all.share(tasks, key, w.ask)
		w.answer <- 4
		synctest.Wait()
		require.True(t, last.done.IsSet())
		<-tasks.Close()
		closed := all.share(tasks, key, w.ask)
		require.True(t, closed.done.IsSet())
		require.Error(t, closed.err)
	})
}

// Only a few long listings of directories are requested at the same time.
func TestFewLongListingsAreUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &slowLists{answer: make(chan int32)}
		var all listings
		tasks := NewTasks()
		dirs := []string{"/a", "/b", "/c", "/d"}
		for _, dir := range dirs {
			all.remember(dir, manyChildren)
			all.share(tasks, listed{dir: dir}, w.ask)
		}
		all.share(tasks, listed{dir: "/short"}, w.ask)
		synctest.Wait()
		require.Equal(t, longAtOnce+1, int(w.asked.Load()))
		for range len(dirs) + 1 {
			w.answer <- 1
		}
		<-tasks.Close()
		require.Equal(t, len(dirs)+1, int(w.asked.Load()))
		require.Empty(t, all.long, "they are short now")
		require.Empty(t, all.room)
	})
}
