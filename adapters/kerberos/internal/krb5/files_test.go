// SPDX-License-Identifier: Apache-2.0

package krb5

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestKrb5Conf(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	write("conf.d/realms", "[realms]\n B = {\n  kdc = kdc.b:750\n }\n")
	write("conf.d/more.conf", "[domain_realm]\n .b.test = B\n")
	write("conf.d/ignored~", "[realms]\n no\n")
	main := write("krb5.conf", "# a comment\nincludedir "+dir+`/conf.d
[libdefaults]
 default_realm = A   # another
 clockskew = 2
 ticket_lifetime = 1d 2h
 default_ccache_name = FILE:/tmp/krb5cc_%{uid}_x
 permitted_enctypes = aes128-cts-hmac-sha1-96 rc4-hmac aes256-sha2
 dns_lookup_kdc = false
[realms]
 A = {
  kdc = kdc1
  kdc = tcp/kdc2:89
  kdc = https://proxy/KdcProxy
  kdc = [::1]:90
  kdc = fe80::1
  auth_to_local_names = {
   joe = other
  }
  admin_server = kdc1
 }
[logging]
 kdc = FILE:/x
[domain_realm]
 .a.test = A
 host.a.test = "B"
`)
	c, err := LoadConfig(main)
	require.NoError(t, err)
	require.Equal(t, "A", c.Realm)
	require.Equal(t, fmt.Sprintf("FILE:/tmp/krb5cc_%d_x", os.Getuid()), c.Cache)
	require.Equal(t, []string{"kdc1:88", "kdc2:89", "[::1]:90", "[fe80::1]:88"}, c.kdcs("A"))
	require.Equal(t, []string{"kdc.b:750"}, c.kdcs("B"))
	require.Equal(t, []int32{AES128SHA1, AES256SHA2}, c.types)
	require.Equal(t, []int32{AES256SHA2, AES128SHA1}, c.kinds([]int32{AES256SHA2}))
	require.Equal(t, 2*time.Second, c.skew)
	require.Equal(t, 26*time.Hour, c.life)
	require.True(t, c.Serves("B"))
	require.False(t, c.Serves("C"))
	for host, realm := range map[string]string{"x.a.test": "A", "HOST.A.test": "B", "y.x.b.test": "B", "a.test": "", "other": ""} {
		require.Equal(t, realm, c.realmOf(host), host)
	}

	second := write("second.conf", "[libdefaults]\n default_realm = B\n clockskew = 7:00\n")
	c, err = LoadConfig(main + string(os.PathListSeparator) + second)
	require.NoError(t, err)
	require.Equal(t, "A", c.Realm, "the first file counts")

	c, err = LoadConfig(write("empty.conf", ""))
	require.NoError(t, err)
	require.True(t, c.Serves("C"), "by DNS, which is the default")
	require.Equal(t, Encryption, c.types)
	require.Equal(t, 5*time.Minute, c.skew)

	for name, text := range map[string]string{
		"neither":    "[libdefaults]\nx\n",
		"no section": "a = b\n",
		"RC4 only":   "[libdefaults]\n permitted_enctypes = rc4-hmac\n",
		"a skew":     "[libdefaults]\n clockskew = much\n",
		"a circle":   "include " + dir + "/a circle\n",
	} {
		_, err := LoadConfig(write(name, text))
		require.Error(t, err, name)
	}
}

func TestDurations(t *testing.T) {
	for s, want := range map[string]time.Duration{
		"36000": 10 * time.Hour, "10h": 10 * time.Hour, "1d": 24 * time.Hour, "1d 2h 3m 4s": 26*time.Hour + 3*time.Minute + 4*time.Second,
		"10:30": 10*time.Hour + 30*time.Minute, "1:00:05": time.Hour + 5*time.Second, "5m30s": 5*time.Minute + 30*time.Second,
	} {
		d, err := duration(s)
		require.NoError(t, err, s)
		require.Equal(t, want, d, s)
	}
	for _, s := range []string{"", "x", "-1h", "1:2:3:4", "a:b", "xd", "1dx", "99999999999999"} {
		_, err := duration(s)
		require.Error(t, err, s)
	}
}

func TestTheNewestKeyOfAKeytabIsUsed(t *testing.T) {
	k := NewKDC(realm, time.Hour)
	k.Add("joe", AES256SHA1)
	file := k.Keytab("joe", 3)
	newest := k.Add("joe", AES256SHA1)
	file = append(file, k.Keytab("joe", 260)[2:]...)
	k.Add("joe", AES256SHA1)
	file = append(file, k.Keytab("joe", 2)[2:]...)
	other := k.Add("joe", AES128SHA2)
	file = append(file, k.Keytab("joe", 1)[2:]...)
	file = append(file, 0xff, 0xff, 0xff, 0xfe, 0, 0) // a hole of two bytes
	keytab, err := ParseKeytab(file)
	require.NoError(t, err)
	keys := keytab.For(joe)
	require.ElementsMatch(t, []int32{AES256SHA1, AES128SHA2}, keys.Kinds())
	key, err := keys.Key(AES256SHA1, "", nil)
	require.NoError(t, err)
	require.Equal(t, newest, key)
	key, err = keys.Key(AES128SHA2, "", nil)
	require.NoError(t, err)
	require.Equal(t, other, key)
	_, err = keys.Key(AES128SHA1, "", nil)
	require.Error(t, err)
	require.Nil(t, keytab.For(Principal{realm, []string{"ann"}}))
	for n := range file[:len(file)-6] {
		if part, err := ParseKeytab(file[:n]); err == nil {
			require.NotEmpty(t, part.entries, "only whole entries are used")
		}
	}
	_, err = ParseKeytab([]byte{5, 1, 0, 0})
	require.ErrorIs(t, err, ErrMalformed)
}

func TestTheTicketsOfACacheAreRead(t *testing.T) {
	key, now := keyFor(AES256SHA1), time.Now()
	first, other := ticketIn{tgs(realm, realm), key, now, message(tagTicket)}, ticketIn{Principal{realm, []string{"zookeeper", "zk1"}}, keyFor(AES128SHA1), now, message(tagTicket)}
	all, err := ParseCache(cacheOf(joe, other, first))
	require.NoError(t, err)
	require.Len(t, all, 2)
	require.True(t, all[0].Service.isTGS())
	require.Equal(t, joe, all[0].Client)
	require.Equal(t, key, all[0].Key)
	require.Equal(t, now.Unix(), all[0].End.Unix())
	_, err = ParseCache(cacheOf(joe, other))
	require.ErrorContains(t, err, "no ticket for krbtgt/"+realm)
	first.key = Key{23, make([]byte, 16)}
	_, err = ParseCache(cacheOf(joe, first))
	require.ErrorContains(t, err, "no ticket for krbtgt/"+realm)
}

func TestOnlyRegularFilesAreRead(t *testing.T) {
	dir := t.TempDir()
	_, err := LoadKeytab(dir)
	require.ErrorContains(t, err, "not a regular file")
	_, err = LoadCache("/dev/zero")
	require.Error(t, err)
	big := filepath.Join(dir, "big")
	require.NoError(t, os.WriteFile(big, make([]byte, maxConfig+1), 0o600))
	_, err = LoadConfig(big)
	require.ErrorContains(t, err, "has more than")
}
