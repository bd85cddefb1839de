// SPDX-License-Identifier: Apache-2.0

// Command kerberos is zklock with Kerberos: it has all subcommands and flags of zklock, and --kerberos. It is a module of its own,
// because zklock does not depend on a library for Kerberos.
package main

import (
	"os"
	"slices"
	"strings"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/adapters/kerberos"
	"github.com/zklock-go/zklock/cmd/zklock/internal/cli"
	"github.com/zklock-go/zklock/cmd/zklock/internal/command"
	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
	"github.com/zklock-go/zklock/cmd/zklock/internal/servers"
)

func main() {
	servers.Additional = mechanism
	command.Main()
}

// flags are the flags about Kerberos.
type flags struct {
	use, canonicalize                        bool
	principal, keytab, password, cache, host string
	opts                                     kerberos.Options
}

// mechanism is a servers.Mechanism.
func mechanism(f *cli.Flags) func() (zklock.Login, error) {
	k := &flags{}
	f.BoolVar(&k.use, "kerberos", false, "log in with Kerberos; implied by the other --kerberos flags. Without --kerberos-principal, the tickets are those that kinit has got")
	f.StringVar(&k.principal, "kerberos-principal", "", "`name` of the principal that logs in, for example worker/host1.example.com@EXAMPLE.COM")
	f.StringVar(&k.keytab, "kerberos-keytab", "", "`file` with the key of --kerberos-principal")
	f.StringVar(&k.password, "kerberos-password-file", "", "`file` with the password of --kerberos-principal, instead of a keytab")
	f.StringVar(&k.cache, "kerberos-cache", "", "`file` with tickets, as kinit writes it (default: that of KRB5CCNAME, or default_ccache_name in krb5.conf)")
	f.StringVar(&k.opts.Config, "kerberos-config", "", "`file` to use instead of that of KRB5_CONFIG, or /etc/krb5.conf")
	f.StringVar(&k.opts.Service, "kerberos-service", "", "first part of the `name` of the servers' principals (default zookeeper)")
	f.StringVar(&k.host, "kerberos-host", "", "host `name` in the servers' principal, if they share one")
	f.BoolVar(&k.canonicalize, "kerberos-canonicalize", false, "look up the host names in the servers' principals in DNS; only if you trust it")
	return k.login
}

// login returns the login that the flags select, or nil if none of them is given.
func (k *flags) login() (zklock.Login, error) {
	given := func(values ...string) int {
		return len(slices.DeleteFunc(values, func(v string) bool { return v == "" }))
	}
	switch sources := given(k.keytab, k.password, k.cache); {
	case !k.use && !k.canonicalize && sources+given(k.principal, k.host, k.opts.Config, k.opts.Service) == 0:
		return nil, nil
	case sources > 1:
		return nil, outcome.Misuse("--kerberos-keytab, --kerberos-password-file and --kerberos-cache cannot be combined")
	case (k.principal != "") != (k.keytab != "" || k.password != ""):
		return nil, outcome.Misuse("--kerberos-principal needs --kerberos-keytab or --kerberos-password-file, and they need it")
	case k.canonicalize && k.host != "":
		return nil, outcome.Misuse("--kerberos-host and --kerberos-canonicalize cannot be combined")
	case k.canonicalize:
		k.opts.Host = kerberos.Canonical
	case k.host != "":
		k.opts.Host = func(string) (string, error) { return k.host, nil }
	}
	login, err := k.credential()
	if err != nil {
		return nil, outcome.Misuse("--kerberos: %w", err)
	}
	return login, nil
}

// credential returns the login with the keytab, the password or the credential cache.
func (k *flags) credential() (*kerberos.Login, error) {
	switch {
	case k.keytab != "":
		return kerberos.FromKeytab(k.principal, k.keytab, &k.opts)
	case k.password != "":
		password, err := os.ReadFile(k.password)
		if err != nil {
			return nil, err
		}
		return kerberos.FromPassword(k.principal, strings.TrimRight(string(password), "\r\n"), &k.opts)
	}
	return kerberos.FromCache(k.cache, &k.opts)
}
