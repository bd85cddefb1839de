// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/operate"
	"github.com/zklock-go/zklock/slots"
	"github.com/zklock-go/zklock/zktest"
)

// Tests of the ACLs and the data of the nodes that zklock creates.

// program returns a client whose nodes only its own user may access.
func program(t *testing.T, srv *zktest.Server, name string, parents []zk.ACL) *zklock.Client {
	t.Helper()
	return connectWith(t, srv, &zklock.Options{
		Label: name, SessionTimeout: term, Root: "/shared", ParentACL: parents,
		Auth: []zklock.Auth{{Scheme: "digest", Data: []byte(name + ":secret")}},
		ACL:  zk.DigestACL(zk.PermAll, name, "secret"),
	})
}

// obtainAndLeave holds a lock for a moment.
func obtainAndLeave(ctx context.Context, lock lockFunc) error {
	hold, err := lock(ctx)
	if err != nil {
		return err
	}
	return hold.Unlock(ctx)
}

//zklock:promise P20.2
func TestTheFirstProgramExcludesNoOtherFromACommonParent(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		for _, name := range []string{"one", "two"} {
			c := program(t, srv, name, nil)
			for kind, lock := range map[string]lockFunc{
				"mutex": c.Mutex("/locks/" + name).Lock,
				"semaphore": func(ctx context.Context) (*zklock.Hold, error) {
					return c.Semaphore("/permits/"+name, 2).Acquire(ctx, 1)
				},
				"election": func(ctx context.Context) (*zklock.Hold, error) {
					return c.Election("/leaders/"+name, nil).Campaign(ctx, nil)
				},
			} {
				require.NoError(t, obtainAndLeave(t.Context(), lock), "%s of %s", kind, name)
			}
		}
		stranger := rawClient(t, srv, term)
		for _, own := range []string{"/locks/one", "/permits/one", "/permits/one/leases", "/permits/one/locks", "/leaders/one"} {
			_, err := stranger.Create("/shared"+own+"/lock-", nil, zk.FlagSequence, zk.WorldACL(zk.PermAll))
			require.ErrorIs(t, err, zk.ErrNoAuth, own)
			_, _, err = stranger.Children("/shared" + own)
			require.ErrorIs(t, err, zk.ErrNoAuth, own)
		}
		for _, parent := range []string{"/shared", "/shared/locks", "/shared/permits"} {
			_, err := stranger.SetACL(parent, zk.WorldACL(zk.PermAll), -1)
			require.ErrorIs(t, err, zk.ErrNoAuth, parent)
			require.ErrorIs(t, stranger.Delete(parent+"/one", -1), zk.ErrNoAuth, parent)
			_, err = stranger.Set(parent, nil, -1)
			require.ErrorIs(t, err, zk.ErrNoAuth, parent)
		}
	})
}

//zklock:promise P20.2
func TestParentsBelongToTheirCreatorIfConfigured(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		one := program(t, srv, "one", zk.DigestACL(zk.PermAll, "one", "secret"))
		require.NoError(t, obtainAndLeave(t.Context(), one.Mutex("/locks/one").Lock))
		require.ErrorIs(t, obtainAndLeave(t.Context(), program(t, srv, "two", nil).Mutex("/locks/two").Lock), zk.ErrNoAuth)
		_, err := zklock.Connect(t.Context(), srv.Addrs(), &zklock.Options{ParentACL: []zk.ACL{}})
		require.ErrorIs(t, err, zklock.ErrInvalid)
	})
}

//zklock:promise P20.3
func TestAnonymousNodesContainNoHostAndNoProcess(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c := connectWith(t, srv, &zklock.Options{Label: "nightly", Anonymous: true, SessionTimeout: term})
		hold, err := c.RWMutex(path).Lock(t.Context())
		require.NoError(t, err)
		host, err := os.Hostname()
		require.NoError(t, err)
		tells := func() string {
			node, ok := srv.Node(hold.Node())
			require.True(t, ok)
			require.NotContains(t, string(node.Data), host)
			require.NotContains(t, string(node.Data), strconv.Itoa(os.Getpid()))
			require.Contains(t, string(node.Data), "nightly")
			q, err := operate.Inspect(t.Context(), c, path)
			require.NoError(t, err)
			who := q.Contenders[0]
			require.True(t, who.Anonymous)
			require.Empty(t, who.Host)
			require.Zero(t, who.PID)
			require.Equal(t, "nightly", who.Label)
			require.NoError(t, operate.Revoke(t.Context(), c, who))
			return string(node.Data)
		}
		tells()
		<-hold.Revoked()
		reader := lockLater(t.Context(), connect(t, srv, "b", term).RWMutex(path).RLock)
		require.False(t, reader.returned())
		require.NoError(t, hold.Downgrade(t.Context()))
		time.Sleep(time.Second)
		<-reader.done
		require.NoError(t, reader.err)
		require.Contains(t, tells(), "shared")
		unlock(t, hold)
		unlock(t, reader.hold)
	})
}

// TestTheRecommendedSetUp uses a directory of an operator: members contend, and all others may only read.
//
//zklock:promise P20.1
func TestTheRecommendedSetUp(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		operator := aDirectory(t, srv)
		members := append(zk.DigestACL(zk.PermAll&^zk.PermAdmin, "orders", "secret"), zk.WorldACL(zk.PermRead)...)
		_, err := operator.SetACL(path, append(members, zk.DigestACL(zk.PermAll, "operator", "secret")...), -1)
		require.NoError(t, err)
		member := func(label string) *zklock.Client {
			return connectWith(t, srv, &zklock.Options{
				Label: label, SessionTimeout: term, ACL: members,
				Auth: []zklock.Auth{{Scheme: "digest", Data: []byte("orders:secret")}},
			})
		}
		hold, err := member("a").Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		next := lockLater(t.Context(), member("b").Mutex(path).Lock)
		require.False(t, next.returned())

		outsider := connect(t, srv, "outsider", term)
		q, err := operate.Inspect(t.Context(), outsider, path)
		require.NoError(t, err)
		require.Len(t, q.Contenders, 2)
		require.ErrorIs(t, obtainAndLeave(t.Context(), outsider.Mutex(path).Lock), zk.ErrNoAuth)
		require.ErrorIs(t, obtainAndLeave(t.Context(), outsider.Mutex(path).TryLock), zklock.ErrLocked)
		require.ErrorIs(t, operate.Evict(t.Context(), outsider, "", q.Contenders...), zk.ErrNoAuth)
		require.ErrorIs(t, operate.Revoke(t.Context(), outsider, q.Contenders[0]), zk.ErrNoAuth)
		stranger := rawClient(t, srv, term)
		for _, node := range []string{path, hold.Node()} {
			_, _, err = stranger.Exists(node)
			require.NoError(t, err, "this needs no permission")
			require.ErrorIs(t, stranger.Delete(hold.Node(), -1), zk.ErrNoAuth)
			_, err = stranger.Create(path+"/lock-0000000000", nil, 0, zk.WorldACL(zk.PermAll))
			require.ErrorIs(t, err, zk.ErrNoAuth)
			_, err = stranger.Set(node, []byte("zklock: last held by "+q.Contenders[0].Node), -1)
			require.ErrorIs(t, err, zk.ErrNoAuth)
			_, err = stranger.SetACL(node, zk.WorldACL(zk.PermAll), -1)
			require.ErrorIs(t, err, zk.ErrNoAuth)
		}
		require.NoError(t, hold.Check())
		unlock(t, hold)
		<-next.done
		require.NoError(t, next.err)
		unlock(t, next.hold)
	})
}

// TestMembersWithDifferentCredentialsShareALock uses members that can release each other's locks, but not write to each other's nodes.
//
//zklock:promise P20.1
func TestMembersWithDifferentCredentialsShareALock(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		operator := aDirectory(t, srv)
		const contend = zk.PermCreate | zk.PermDelete | zk.PermRead
		dir := zk.DigestACL(zk.PermAll, "operator", "secret")
		names := []string{"a", "b"}
		for _, name := range names {
			dir = append(dir, zk.DigestACL(contend, name, "secret")...)
		}
		_, err := operator.SetACL(path, dir, -1)
		require.NoError(t, err)
		member := func(name string) *zklock.Client {
			acl := zk.DigestACL(zk.PermAll, name, "secret")
			for _, other := range names {
				acl = append(acl, zk.DigestACL(zk.PermRead, other, "secret")...)
			}
			return connectWith(t, srv, &zklock.Options{
				Label: name, SessionTimeout: term, ACL: acl,
				Auth: []zklock.Auth{{Scheme: "digest", Data: []byte(name + ":secret")}},
			})
		}
		a, b := member("a"), member("b")
		hold, err := a.RWMutex(path).Lock(t.Context())
		require.NoError(t, err)
		next := lockLater(t.Context(), b.RWMutex(path).RLock)
		require.False(t, next.returned())
		q, err := operate.Inspect(t.Context(), b, path)
		require.NoError(t, err)
		require.ErrorIs(t, operate.Revoke(t.Context(), b, q.Contenders[0]), zk.ErrNoAuth)
		for _, node := range []string{path, hold.Node()} {
			conn := rawClient(t, srv, term)
			require.NoError(t, conn.AddAuth("digest", []byte("b:secret")))
			_, err = conn.Set(node, nil, -1)
			require.ErrorIs(t, err, zk.ErrNoAuth, node)
		}
		require.NoError(t, hold.Downgrade(t.Context()))
		<-next.done
		require.NoError(t, next.err)
		unlock(t, hold)
		unlock(t, next.hold)
		for range 3 {
			for _, c := range []*zklock.Client{a, b} {
				require.NoError(t, obtainAndLeave(t.Context(), c.RWMutex(path).Lock))
			}
		}
		hold, err = a.RWMutex(path).Lock(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Second)
		q, err = operate.Inspect(t.Context(), b, path)
		require.NoError(t, err)
		require.NoError(t, operate.Evict(t.Context(), b, "", q.Contenders[0]), "who may release its own node may release any")
		<-hold.Context().Done()
		require.ErrorIs(t, context.Cause(hold.Context()), zklock.ErrLost)
	})
}

// TestAnUnreadableRecordBlocksALockUntilItIsRemoved uses a client that may create nodes next to a lock. It creates the lock's
// record first, and no one else may read it.
//
//zklock:promise P20.6
func TestAnUnreadableRecordBlocksALockUntilItIsRemoved(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		hostile := rawClient(t, srv, term)
		require.NoError(t, hostile.AddAuth("digest", []byte("mallory:secret")))
		require.NoError(t, srv.PutNode("/locks", nil))
		c := connectWith(t, srv, &zklock.Options{Label: "a", SessionTimeout: term, LockDelay: term})
		uses := map[string]func() error{
			path + ".zklock-delay": func() error { return c.Mutex(path).Do(t.Context(), nothing) },
			"/locks/job.zklock-slots": func() error {
				return slots.Named(connect(t, srv, "b", term), "/locks/job", "x").Do(t.Context(), nothing)
			},
		}
		for record, use := range uses {
			require.NoError(t, srv.PutNode(record[:strings.LastIndex(record, "/")], nil))
			_, err := hostile.Create(record, []byte("zklock: delay 30s"), 0, zk.DigestACL(zk.PermAll, "mallory", "secret"))
			require.NoError(t, err)
			require.ErrorIs(t, use(), zk.ErrNoAuth, record)
			require.NoError(t, srv.DeleteNode(record))
			require.NoError(t, use(), record)
		}
	})
}

// The error of a refused create names the node and the permission.
//
//zklock:promise P8.1
func TestARefusedCreateNamesTheNode(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		_, err := rawClient(t, srv, term).Create("/team", nil, 0, zk.WorldACL(zk.PermRead))
		require.NoError(t, err)
		c := connectWith(t, srv, &zklock.Options{Label: "a", SessionTimeout: term, Root: "/team"})
		for _, lock := range []lockFunc{c.Mutex("/b/x").Lock, c.Mutex("/b/x").TryLock, c.Semaphore("/b", 1).Permits(1).Lock, c.Cohort("/b").Lock} {
			_, err := lock(t.Context())
			require.ErrorIs(t, err, zk.ErrNoAuth)
			require.ErrorContains(t, err, "no permission to create /team/b: ")
		}
		_, err = connect(t, srv, "b", term).Mutex("/team").Lock(t.Context())
		require.ErrorIs(t, err, zk.ErrNoAuth)
		require.ErrorContains(t, err, "no permission to create a node in /team: ")
	})
}
