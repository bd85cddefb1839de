// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/cmd/zklock/internal/cli"
	"github.com/zklock-go/zklock/cmd/zklock/internal/servers"
)

// optionsOf returns the options of a client with these flags.
func optionsOf(t *testing.T, args ...string) (*zklock.Options, error) {
	servers.Additional = mechanism
	f := cli.NewFlags(cli.Streams{}, "test", "", "")
	s := servers.New(f)
	_, err := f.Parse(args, 0, 0)
	require.NoError(t, err)
	return s.Options()
}

func TestWithoutAFlagThereIsNoLogin(t *testing.T) {
	o, err := optionsOf(t)
	require.NoError(t, err)
	require.Nil(t, o.Login)
}

func TestAPasswordIsReadFromAFile(t *testing.T) {
	dir := t.TempDir()
	conf, password := filepath.Join(dir, "krb5.conf"), filepath.Join(dir, "password")
	require.NoError(t, os.WriteFile(conf, []byte("[libdefaults]\n default_realm = EXAMPLE.COM\n"), 0o600))
	require.NoError(t, os.WriteFile(password, []byte("secret\n"), 0o600))
	o, err := optionsOf(t, "--kerberos-config", conf, "--kerberos-principal", "joe", "--kerberos-password-file", password)
	require.NoError(t, err)
	require.Equal(t, "joe@EXAMPLE.COM", o.Login.String())
}

func TestFlagsThatDoNotFitAreRefused(t *testing.T) {
	for _, c := range []struct {
		want string
		args []string
	}{
		{"cannot be combined", []string{"--kerberos-keytab", "a", "--kerberos-cache", "b"}},
		{"cannot be combined", []string{"--kerberos-host", "a", "--kerberos-canonicalize"}},
		{"--kerberos-principal needs", []string{"--kerberos-principal", "joe"}},
		{"--kerberos-principal needs", []string{"--kerberos-keytab", "a"}},
		{"no such file", []string{"--kerberos", "--kerberos-config", filepath.Join(t.TempDir(), "missing")}},
	} {
		_, err := optionsOf(t, c.args...)
		require.ErrorContains(t, err, c.want, "%v", c.args)
	}
}
