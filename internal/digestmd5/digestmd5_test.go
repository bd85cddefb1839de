// SPDX-License-Identifier: Apache-2.0

package digestmd5

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What a server of ZooKeeper 3.8.0, on Java 17, has asked and accepted, and with what it has proved itself.
func TestARealServerAcceptsTheAnswer(t *testing.T) {
	for _, c := range []struct {
		Credential
		nonce, response, proof string
	}{
		{Credential{"joe", `se"cret\x`}, "tiCu8htqtHMwHfzFMyslsydzOmsn92lqmf+wYlcV", "f5c58824fa3dce5798dc61e9e1580434", "2bd12079a47b0a93857aeed586d14aae"},
		{Credential{"umlaut", "pässwört"}, "tNz46tVz4wJ1oLqF21ynU2cngy/QNSnQGhTxZGbM", "4ae49fecbde77c87e193786aea9e5d47", "4bc9ff3fb88828fc5b15d6d485da8b2a"},
		{Credential{"greek", "κωδικός"}, "Cp7chK7ugRG8CLTfnK88FGabPPH6UThNFjSoqp2L", "d92f0ae612461478530d1cbbf0fa8319", "45594972462da42c000607e2b86f52b6"},
	} {
		asked := fmt.Sprintf(`realm="zk-sasl-md5",nonce="%s",charset=utf-8,algorithm=md5-sess`, c.nonce)
		answer, proof, err := c.Answer([]byte(asked), "0123456789abcdef")
		require.NoError(t, err)
		fields, ok := parseFields(string(answer))
		require.True(t, ok)
		assert.Equal(t, c.response, fields["response"], c.User)
		assert.Equal(t, "rspauth="+c.proof, string(proof), c.User)
	}
}

func TestChallengesThatCannotBeAnsweredAreRefused(t *testing.T) {
	const good = `realm="zk-sasl-md5",nonce="n",charset=utf-8,algorithm=md5-sess,qop="auth"`
	_, _, err := Credential{"joe", "secret"}.Answer([]byte(good), "c")
	require.NoError(t, err)
	for name, challenge := range map[string]string{
		"nothing":                     "",
		"no fields":                   "hello",
		"a quotation without its end": `nonce="n`,
		"text behind a quotation":     `nonce="n"x,algorithm=md5-sess,charset=utf-8`,
		"no nonce":                    strings.ReplaceAll(good, `nonce="n",`, ""),
		"another algorithm":           strings.ReplaceAll(good, "md5-sess", "sha-256"),
		"another character set":       strings.ReplaceAll(good, "utf-8", "latin-1"),
		"encryption and nothing less": strings.ReplaceAll(good, `"auth"`, `"auth-int,auth-conf"`),
		"too long":                    good + strings.Repeat(" ", maxChallenge),
	} {
		_, _, err := Credential{"joe", "secret"}.Answer([]byte(challenge), "c")
		assert.ErrorIs(t, err, ErrChallenge, name)
	}
}

func TestSpacesAndTheLengthOfAChallengeDoNotMatter(t *testing.T) {
	const plain = `realm="r",nonce="n",charset=utf-8,algorithm=md5-sess,qop="auth"`
	want, proof, err := Credential{"joe", "secret"}.Answer([]byte(plain), "c")
	require.NoError(t, err)
	for _, challenge := range []string{
		` realm = "r" , nonce = "n" ,charset = utf-8 , algorithm=md5-sess ,qop="auth" `,
		plain + strings.Repeat(" ", maxChallenge-len(plain)),
		`nonce="n",realm="r",nonce="later",charset=utf-8,algorithm=md5-sess,qop="auth-int, auth"`,
		`nonce="n",realm="r",charset=utf-8,algorithm=md5-sess`,
	} {
		answer, again, err := Credential{"joe", "secret"}.Answer([]byte(challenge), "c")
		require.NoError(t, err, challenge)
		require.Equal(t, string(want), string(answer), challenge)
		require.Equal(t, string(proof), string(again))
	}
	answer, proof, err := Credential{"joe", "secret"}.Answer([]byte("realm"), "c")
	require.Error(t, err)
	require.Nil(t, answer)
	require.Nil(t, proof)
}

func TestFieldsAreNotReadBeyondTheirEnd(t *testing.T) {
	for text, well := range map[string]bool{
		`a=b`: true, `a="b"`: true, `a="b",c=d`: true, `a="b" , c = d`: true, `a="\\"`: true, ``: true,
		`a`: false, `a="b`: false, `a="b\"`: false, `a="b"c`: false, `a="b" c=d`: false, `a=b,c`: false,
	} {
		fields, ok := parseFields(text)
		require.Equal(t, well, ok, text)
		require.Equal(t, well, fields != nil, text)
	}
	require.Equal(t, "\xff", octets("ÿ"), "the last character of ISO 8859-1")
	require.Equal(t, "Āÿ", octets("Āÿ"))
}

// What a server has chosen goes back to it between quotation marks: it must not end them.
func TestQuotedTextStaysQuoted(t *testing.T) {
	answer, _, err := Credential{`j"o\e`, "secret"}.Answer([]byte(`realm="a\"b\\",nonce="n\",x=y",charset=utf-8,algorithm=md5-sess`), "c")
	require.NoError(t, err)
	fields, ok := parseFields(string(answer))
	require.True(t, ok)
	assert.Equal(t, `j"o\e`, fields["username"])
	assert.Equal(t, `a"b\`, fields["realm"])
	assert.Equal(t, `n",x=y`, fields["nonce"])
	assert.NotContains(t, fields, "x")
}

//zklock:promise P8.6
func FuzzChallenge(f *testing.F) {
	f.Add(`realm="zk-sasl-md5",nonce="n",charset=utf-8,algorithm=md5-sess,qop="auth"`)
	f.Add(`nonce="\`)
	f.Fuzz(func(t *testing.T, challenge string) {
		answer, proof, err := Credential{"joe", "secret"}.Answer([]byte(challenge), "c")
		if err != nil {
			return
		}
		fields, ok := parseFields(string(answer))
		require.True(t, ok)
		require.Equal(t, "joe", fields["username"])
		require.Equal(t, "auth", fields["qop"])
		require.Len(t, fields["response"], 32)
		require.Len(t, proof, len("rspauth=")+32)
	})
}
