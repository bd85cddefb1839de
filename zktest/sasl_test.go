// SPDX-License-Identifier: Apache-2.0

package zktest_test

import (
	"crypto/md5"
	"fmt"
	"io"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/evidence/wire"
	"github.com/zklock-go/zklock/internal/lab"
	"github.com/zklock-go/zklock/zktest"
)

var saslUsers = zktest.Options{SASL: map[string]string{"joe": `se"cret`}}

// sasl sends a token and returns the answer's code and token.
func sasl(t *testing.T, c *wire.Conn, token string) (code int32, answer string) {
	t.Helper()
	require.NoError(t, c.Send(9, 102, wire.NewBody().Buf([]byte(token))))
	frame, err := c.Read()
	require.NoError(t, err)
	require.Equal(t, int32(9), frame.Xid)
	return frame.Err, string(wire.Parse(frame.Body).Buf())
}

// prove answers a challenge as RFC 2831 has it, and returns what the server must say then.
func prove(challenge, user, password string) (token, last string) {
	h := func(s string) string { return fmt.Sprintf("%x", md5.Sum([]byte(s))) }
	nonce := regexp.MustCompile(`nonce="([^"]*)"`).FindStringSubmatch(challenge)[1]
	secret := md5.Sum([]byte(user + ":zk-sasl-md5:" + password))
	a1 := h(string(secret[:]) + ":" + nonce + ":c,n=o:" + user)
	respond := func(a2 string) string { return h(a1 + ":" + nonce + ":00000001:c,n=o:auth:" + h(a2)) }
	const uri = "zookeeper/zk-sasl-md5"
	return fmt.Sprintf(`charset=utf-8,username="%s",realm="zk-sasl-md5",nonce="%s",nc=00000001,cnonce="c,n=o",digest-uri="%s",maxbuf=65536,response=%s,qop=auth,authzid="%s"`,
		user, nonce, uri, respond("AUTHENTICATE:"+uri), user), "rspauth=" + respond(":"+uri)
}

func TestAnACLForSASLNeedsSASL(t *testing.T) {
	step := zktest.Step{Op: zktest.OpCreate, Path: "/joe", ACL: []zktest.ACL{{Perms: zktest.PermAll, Scheme: "sasl", ID: "joe"}}}
	bubble(t, 1, func(t *testing.T, srv *zktest.Server) { require.ErrorContains(t, srv.Apply(step), "-114") })
	bubble(t, 1, func(t *testing.T, srv *zktest.Server) { require.NoError(t, srv.Apply(step)) }, saslUsers)
}

func TestSASLProvesAUser(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *zktest.Server) {
		c, _ := raw(t, srv, srv.Member(0), wire.Hello{Timeout: 10000})
		require.NoError(t, srv.Apply(zktest.Step{
			Op: zktest.OpCreate, Path: "/joe", ACL: []zktest.ACL{{Perms: zktest.PermAll, Scheme: "sasl", ID: "joe"}},
		}))
		get := func() int32 {
			require.NoError(t, c.Send(1, 4, wire.NewBody().Str("/joe").Bool(false)))
			frame, err := c.Read()
			require.NoError(t, err)
			return frame.Err
		}
		require.Equal(t, zktest.CodeNoAuth, get())
		code, challenge := sasl(t, c, "")
		require.Zero(t, code)
		token, last := prove(challenge, "joe", `se"cret`)
		code, answer := sasl(t, c, token)
		require.Zero(t, code)
		require.Equal(t, last, answer)
		require.Zero(t, get())
	}, saslUsers)
}

func TestSASLRefusesWrongTokens(t *testing.T) {
	for name, answer := range map[string]func(challenge string) string{
		"another password":   func(ch string) string { token, _ := prove(ch, "joe", "guess"); return token },
		"another user":       func(ch string) string { token, _ := prove(ch, "jim", ""); return token },
		"another challenge":  func(string) string { token, _ := prove(`nonce="old"`, "joe", `se"cret`); return token },
		"an empty quotation": func(string) string { return `username="joe\` },
		"no fields at all":   func(string) string { return "=,=,," },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 1, func(t *testing.T, srv *zktest.Server) {
				c, _ := raw(t, srv, srv.Member(0), wire.Hello{Timeout: 10000})
				_, challenge := sasl(t, c, "")
				code, _ := sasl(t, c, answer(challenge))
				require.Equal(t, zktest.CodeAuthFailed, code)
				_, err := c.Read()
				require.Error(t, err)
				require.False(t, isTimeout(err))
			}, saslUsers)
		})
	}
}

// So do real servers.
func TestWithoutUsersSASLIsAnsweredWithNoToken(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *zktest.Server) {
		c, _ := raw(t, srv, srv.Member(0), wire.Hello{Timeout: 10000})
		require.NoError(t, c.Send(9, 102, wire.NewBody().Buf([]byte{})))
		frame, err := c.Read()
		require.NoError(t, err)
		require.Zero(t, frame.Err)
		require.Equal(t, []byte{0xff, 0xff, 0xff, 0xff}, frame.Body)
	})
}

func TestANullTokenClosesTheConnection(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *zktest.Server) {
		c, _ := raw(t, srv, srv.Member(0), wire.Hello{Timeout: 10000})
		require.NoError(t, c.Send(9, 102, wire.NewBody().Buf(nil)))
		_, err := c.Read()
		require.ErrorIs(t, err, io.EOF)
	}, saslUsers)
}

func TestSASLCanBeRequired(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *zktest.Server) {
		stranger, _ := raw(t, srv, srv.Member(0), wire.Hello{Timeout: 10000})
		require.NoError(t, stranger.Send(-2, 11, nil)) // a ping
		frame, err := stranger.Read()
		require.NoError(t, err)
		require.Equal(t, zktest.CodeRequiresSASL, frame.Err)
		_, err = stranger.Read()
		require.ErrorIs(t, err, io.EOF)

		wrong, _ := raw(t, srv, srv.Member(0), wire.Hello{Timeout: 10000})
		_, challenge := sasl(t, wrong, "")
		token, _ := prove(challenge, "joe", "guess")
		code, _ := sasl(t, wrong, token)
		require.Equal(t, zktest.CodeRequiresSASL, code)

		member, _ := raw(t, srv, srv.Member(0), wire.Hello{Timeout: 10000})
		_, challenge = sasl(t, member, "")
		token, _ = prove(challenge, "joe", `se"cret`)
		code, _ = sasl(t, member, token)
		require.Zero(t, code)
		require.NoError(t, member.Send(1, 3, wire.NewBody().Str("/").Bool(false)))
		frame, err = member.Read()
		require.NoError(t, err)
		require.Zero(t, frame.Err)
	}, zktest.Options{SASL: saslUsers.SASL, RequireSASL: true})
}

func TestAServerInFIPSModeRefusesTheFirstToken(t *testing.T) {
	for code, required := range map[int32]bool{zktest.CodeAuthFailed: false, zktest.CodeRequiresSASL: true} {
		bubble(t, 1, func(t *testing.T, srv *zktest.Server) {
			c, _ := raw(t, srv, srv.Member(0), wire.Hello{Timeout: 10000})
			got, _ := sasl(t, c, "")
			require.Equal(t, code, got)
			_, err := c.Read()
			require.ErrorIs(t, err, io.EOF)
		}, lab.With(zktest.Options{SASL: saslUsers.SASL, RequireSASL: required}, lab.Options{FIPS: true}))
	}
}

func TestRequiringSASLNeedsUsers(t *testing.T) {
	_, err := zktest.New(zktest.Options{RequireSASL: true})
	require.ErrorContains(t, err, "no users")
}
