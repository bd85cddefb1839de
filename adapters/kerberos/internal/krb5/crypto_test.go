// SPDX-License-Identifier: Apache-2.0

package krb5

import (
	"bytes"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"
)

func unhex(t *testing.T, s string) []byte {
	b, err := hex.DecodeString(s)
	require.NoError(t, err)
	return b
}

// The values are those of RFC 3961, appendix A.1.
func TestFolding(t *testing.T) {
	for _, c := range []struct {
		in, want string
	}{
		{"012345", "be072631276b1955"},
		{"password", "78a07b6caf85fa"},
		{"Rough Consensus, and Running Code", "bb6ed30870b7f0e0"},
		{"password", "59e4a8ca7c0385c3c37b3f6d2000247cb6e6bd5b3e"},
		{"MASSACHVSETTS INSTITVTE OF TECHNOLOGY", "db3b0d8f0b061e603282b308a50841229ad798fab9540c1b"},
		{"kerberos", "6b65726265726f737b9b5b2b93132b93"},
	} {
		want := unhex(t, c.want)
		require.Equal(t, want, fold([]byte(c.in), len(want)), c.in)
	}
}

// The values are those of RFC 3962, appendix B, and RFC 8009, appendix A.
func TestKeysOfPasswords(t *testing.T) {
	const salt = "ATHENA.MIT.EDUraeburn"
	random := string(unhex(t, "10DF9DD783E5BC8ACEA1730E74355F61"))
	for _, c := range []struct {
		kind       int32
		salt       string
		iterations int
		want       string
	}{
		{AES128SHA1, salt, 1, "42263c6e89f4fc28b8df68ee09799f15"},
		{AES256SHA1, salt, 1, "fe697b52bc0d3ce14432ba036a92e65bbb52280990a2fa27883998d72af30161"},
		{AES128SHA1, salt, 1200, "4c01cd46d632d01e6dbe230a01ed642a"},
		{AES256SHA1, salt, 1200, "55a6ac740ad17b4846941051e1e8b0a7548d93b0ab30a8bc3ff16280382b8c2a"},
		{AES128SHA2, random + salt, 32768, "089BCA48B105EA6EA77CA5D2F39DC5E7"},
		{AES256SHA2, random + salt, 32768, "45BD806DBF6A833A9CFFC1C94589A222367A79BC21C413718906E9F578A78467"},
	} {
		k, err := encryptions[c.kind].keyOf(c.kind, "password", c.salt, c.iterations)
		require.NoError(t, err)
		require.Equal(t, Key{c.kind, unhex(t, c.want)}, k)
	}
}

func TestAKDCCannotAskForTooFewOrTooManyIterations(t *testing.T) {
	for _, params := range []string{"00000001", "00000fff", "00100001", "ffffffff", "00000000", "0001", "000000100000"} {
		_, err := KeyOf(AES256SHA1, "password", "salt", unhex(t, params))
		require.Error(t, err, params)
	}
	usual, err := KeyOf(AES256SHA1, "password", "salt", nil)
	require.NoError(t, err)
	given, err := KeyOf(AES256SHA1, "password", "salt", unhex(t, "00001000"))
	require.NoError(t, err)
	require.Equal(t, usual, given)
	_, err = KeyOf(23, "password", "salt", nil)
	require.ErrorContains(t, err, "encryption type 23 is not supported")
}

// The values are those of RFC 3962, appendix B.
func TestCiphertextStealing(t *testing.T) {
	key := []byte("chicken teriyaki")
	for _, c := range []struct{ plain, want string }{
		{"I would like the ", "c6353568f2bf8cb4d8a580362da7ff7f97"},
		{"I would like the General Gau's ", "fc00783e0efdb2c1d445d4c8eff7ed2297687268d6ecccc0c07b25e25ecfe5"},
		{"I would like the General Gau's C", "39312523a78662d5be7fcbcc98ebf5a897687268d6ecccc0c07b25e25ecfe584"},
		{"I would like the General Gau's Chicken, please,", "97687268d6ecccc0c07b25e25ecfe584b3fffd940c16a18c1b5549d2f838029e39312523a78662d5be7fcbcc98ebf5"},
		{"I would like the General Gau's Chicken, please, and wonton soup.", "97687268d6ecccc0c07b25e25ecfe58439312523a78662d5be7fcbcc98ebf5a84807efe836ee89a526730dbc2f7bc8409dad8bbb96c4cdc03bc103e1a194bbd8"},
	} {
		got := seal(key, []byte(c.plain))
		require.Equal(t, unhex(t, c.want), got, c.plain)
		require.Equal(t, c.plain, string(open(key, got)))
	}
	for n := 16; n < 80; n++ {
		plain := bytes.Repeat([]byte{byte(n)}, n)
		require.Equal(t, plain, open(key, seal(key, plain)), n)
	}
}

// The values are those of RFC 8009, appendix A.
func TestDerivedKeys(t *testing.T) {
	for _, c := range []struct {
		kind         int32
		key          string
		kc, ke, ki   string
		sumOf, sumIs string
	}{
		{AES128SHA2, "3705D96080C17728A0E800EAB6E0D23C", "B31A018A48F54776F403E9A396325DC3", "9B197DD1E8C5609D6E67C3E37C62C72E", "9FDA0E56AB2D85E1569A688696C26A6C",
			"000102030405060708090A0B0C0D0E0F1011121314", "D78367186643D67B411CBA9139FC1DEE"},
		{AES256SHA2, "6D404D37FAF79F9DF0D33568D320669800EB4836472EA8A026D16B7182460C52", "EF5718BE86CC84963D8BBB5031E9F5C4BA41F28FAF69E73D",
			"56AB22BEE63D82D7BC5227F6773F8EA7A5EB1C825160C38312980C442E5C7E49", "69B16514E3CD8E56B82010D5C73012B622C4D00FFC23ED1F",
			"000102030405060708090A0B0C0D0E0F1011121314", "45EE791567EEFCA37F4AC1E0222DE80D43C3BFA06699672A"},
	} {
		k := Key{c.kind, unhex(t, c.key)}
		e, err := k.encryption()
		require.NoError(t, err)
		require.Equal(t, unhex(t, c.kc), e.derive(k.Value, 2, forChecksum))
		require.Equal(t, unhex(t, c.ke), e.derive(k.Value, 2, forEncryption))
		require.Equal(t, unhex(t, c.ki), e.derive(k.Value, 2, forIntegrity))
		sum, err := k.Checksum(2, unhex(t, c.sumOf))
		require.NoError(t, err)
		require.Equal(t, unhex(t, c.sumIs), sum)
	}
}

// keyFor returns a key of an encryption type.
func keyFor(kind int32) Key {
	return Key{kind, bytes.Repeat([]byte{7}, encryptions[kind].key)}
}

func TestOnlyTheKeyOpensAText(t *testing.T) {
	for kind := range encryptions {
		k := keyFor(kind)
		for n := range 50 {
			message := bytes.Repeat([]byte{1}, n)
			text, err := k.encrypt(3, message)
			require.NoError(t, err)
			plain, err := k.decrypt(3, text)
			require.NoError(t, err)
			require.True(t, bytes.Equal(message, plain))
			_, err = k.decrypt(4, text)
			require.ErrorIs(t, err, ErrIntegrity, "another use")
			text[n%len(text)] ^= 1
			_, err = k.decrypt(3, text)
			require.ErrorIs(t, err, ErrIntegrity)
		}
		for n := range 64 { // shorter than any encrypted text, and longer
			_, err := k.decrypt(3, make([]byte, n))
			require.Error(t, err)
		}
		_, err := Key{kind, k.Value[1:]}.decrypt(3, make([]byte, 64))
		require.ErrorIs(t, err, errKey)
	}
	_, err := Key{23, make([]byte, 16)}.decrypt(3, make([]byte, 64))
	require.ErrorContains(t, err, "not supported")
}
