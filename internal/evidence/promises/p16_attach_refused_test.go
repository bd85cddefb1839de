// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zktest"
)

// refuseCredentials makes all servers refuse every credential.
func refuseCredentials(srv *zktest.Server) (stop func()) {
	return srv.Intercept(func(r *zktest.Request) zktest.Verdict {
		if r.Op == zktest.OpAuth {
			return zktest.Answer(zktest.CodeAuthFailed)
		}
		return zktest.Pass
	})
}

// The client library does not process requests while servers reject a credential that it presents again. A request that was made
// before is not answered until the servers accept the credential.
//
//zklock:promise P16.6
func TestCloseOfAnAttachedClientReturnsWhileServersRefuseItsCredentials(t *testing.T) {
	credential := zklock.Auth{Scheme: "digest", Data: []byte("u:p")}
	for name, c := range map[string]struct{ theirs, ours []zklock.Auth }{
		"the program's": {theirs: []zklock.Auth{credential}},
		"the client's":  {ours: []zklock.Auth{credential}},
		"both":          {theirs: []zklock.Auth{{Scheme: "digest", Data: []byte("x:y")}}, ours: []zklock.Auth{credential}},
	} {
		for _, after := range []time.Duration{0, time.Second, term / 2, 3 * term} {
			t.Run(name+" after "+after.String(), func(t *testing.T) {
				virtual(t, zktest.Options{Servers: 3}, func(t *testing.T, srv *zktest.Server) {
					conn, hooks := hooked(t, srv)
					for _, a := range c.theirs {
						require.NoError(t, conn.AddAuth(a.Scheme, a.Data))
					}
					client, err := zklock.Attach(t.Context(), conn, hooks, &zklock.Options{Auth: c.ours})
					require.NoError(t, err)
					_, err = client.Mutex(path).Lock(t.Context())
					require.NoError(t, err)
					refuseCredentials(srv)
					srv.DropConnections()
					time.Sleep(after)
					start := time.Now()
					require.NoError(t, client.Close())
					require.LessOrEqual(t, time.Since(start), 5*time.Second)
				})
			})
		}
	}
}

//zklock:promise P18.4
func TestAttachReturnsInTimeWhileServersRefuseCredentials(t *testing.T) {
	for name, theirs := range map[string]bool{"that the program has presented": true, "that are the client's": false} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{Servers: 3}, func(t *testing.T, srv *zktest.Server) {
				conn, hooks := hooked(t, srv)
				if theirs {
					require.NoError(t, conn.AddAuth("digest", []byte("x:y")))
				}
				refuseCredentials(srv)
				if theirs {
					srv.DropConnections()
					time.Sleep(time.Second)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				start := time.Now()
				_, err := zklock.Attach(ctx, conn, hooks, &zklock.Options{Auth: []zklock.Auth{{Scheme: "digest", Data: []byte("u:p")}}})
				require.Error(t, err)
				require.ErrorContains(t, err, "credential")
				require.LessOrEqual(t, time.Since(start), time.Minute)
			})
		})
	}
}
