// SPDX-License-Identifier: Apache-2.0

package krb5

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Config is what a client needs of krb5.conf.
type Config struct {
	Realm string // the default
	Cache string // the default credential cache, or "" if krb5.conf names none

	realms  map[string][]string // addresses of KDCs
	domains map[string]string   // realms of hosts, and of domains
	types   []int32             // encryption types, the preferred first
	skew    time.Duration
	life    time.Duration // of tickets; zero means the default
	lookup  bool          // KDCs are looked up in DNS
}

// A profile is the content of krb5.conf: the values of each key, by section and path.
type profile map[string][]string

// LoadConfig reads krb5.conf, or several such files, separated as in PATH.
func LoadConfig(paths string) (*Config, error) {
	p := profile{}
	for _, path := range filepath.SplitList(paths) {
		if err := p.load(path, 0); err != nil {
			return nil, err
		}
	}
	return p.config()
}

// maxIncludes limits how deeply files include each other, and maxConfig the size of a file.
const (
	maxIncludes = 10
	maxConfig   = 1 << 20
)

// included matches the names of the files that includedir reads.
var included = regexp.MustCompile(`^([A-Za-z0-9_-]+|[^.].*\.conf)$`)

// load adds the content of a file.
func (p profile) load(path string, depth int) error {
	if depth > maxIncludes {
		return fmt.Errorf("%s: files include each other", path)
	}
	b, err := readFile(path, maxConfig)
	if err != nil {
		return err
	}
	var at []string // the section, and the names of the braces that are open
	for i, line := range strings.Split(string(b), "\n") {
		if comment := strings.IndexAny(line, "#;"); comment >= 0 {
			line = line[:comment]
		}
		line = strings.TrimSpace(line)
		directive, argument, _ := strings.Cut(line, " ")
		argument = strings.TrimSpace(argument)
		name, value, assigns := strings.Cut(line, "=")
		name, value = strings.TrimRight(strings.TrimSpace(name), "*"), strings.TrimSpace(value)
		err := error(nil)
		switch {
		case line == "", directive == "module":
		case directive == "include" && !assigns:
			err = p.load(argument, depth+1)
		case directive == "includedir" && !assigns:
			err = p.loadAll(argument, depth+1)
		case line[0] == '[' && strings.Contains(line, "]"):
			at = []string{line[1:strings.Index(line, "]")]}
		case strings.TrimRight(line, "*") == "}" && len(at) > 1:
			at = at[:len(at)-1]
		case !assigns || len(at) == 0:
			err = fmt.Errorf("line %d is neither a section nor an assignment: %.100q", i+1, line)
		case value == "{":
			at = append(at, name)
		default:
			key := strings.Join(append(slices.Clone(at), name), "\n")
			p[key] = append(p[key], strings.Trim(strings.TrimRight(value, "*"), `"`))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

// loadAll adds the content of the files in a directory.
func (p profile) loadAll(dir string, depth int) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.IsDir() && included.MatchString(e.Name()) {
			if err := p.load(filepath.Join(dir, e.Name()), depth); err != nil {
				return err
			}
		}
	}
	return nil
}

// first returns the first value of a key in [libdefaults], or "".
func (p profile) first(key string) string {
	if all := p["libdefaults\n"+key]; len(all) > 0 {
		return all[0]
	}
	return ""
}

func (p profile) config() (*Config, error) {
	c := &Config{
		Realm: p.first("default_realm"), Cache: expand(p.first("default_ccache_name")), realms: map[string][]string{}, domains: map[string]string{},
		types: typesOf(cmp.Or(p.first("permitted_enctypes"), p.first("default_tkt_enctypes"))), skew: 5 * time.Minute,
	}
	switch strings.ToLower(p.first("dns_lookup_kdc")) {
	case "", "y", "yes", "true", "t", "1", "on":
		c.lookup = true
	}
	for name, to := range map[string]*time.Duration{"clockskew": &c.skew, "ticket_lifetime": &c.life} {
		if value := p.first(name); value != "" {
			d, err := duration(value)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			*to = d
		}
	}
	for key, values := range p {
		path := strings.Split(key, "\n")
		switch {
		case path[0] == "domain_realm" && len(path) == 2:
			c.domains[strings.ToLower(path[1])] = values[0]
		case path[0] == "realms" && len(path) == 3 && path[2] == "kdc":
			for _, v := range values {
				if address := kdcAddress(v); address != "" {
					c.realms[path[1]] = append(c.realms[path[1]], address)
				}
			}
		}
	}
	if len(c.types) == 0 {
		return nil, fmt.Errorf("none of the encryption types is supported, only those of AES are")
	}
	return c, nil
}

// kdcAddress returns the address that a kdc line names, or "" if that KDC is not reached by TCP.
func kdcAddress(line string) string {
	line = strings.TrimPrefix(strings.TrimSpace(line), "tcp/")
	if line == "" || strings.Contains(line, "/") {
		return ""
	}
	if _, _, err := net.SplitHostPort(line); err == nil {
		return line
	}
	return net.JoinHostPort(strings.Trim(line, "[]"), "88")
}

// families are the names of encryption types.
var families = map[string][]int32{
	"default": Encryption, "aes": Encryption,
	"aes256-cts-hmac-sha1-96": {AES256SHA1}, "aes256-cts": {AES256SHA1}, "aes256-sha1": {AES256SHA1},
	"aes128-cts-hmac-sha1-96": {AES128SHA1}, "aes128-cts": {AES128SHA1}, "aes128-sha1": {AES128SHA1},
	"aes256-cts-hmac-sha384-192": {AES256SHA2}, "aes256-sha2": {AES256SHA2},
	"aes128-cts-hmac-sha256-128": {AES128SHA2}, "aes128-sha2": {AES128SHA2},
}

// typesOf parses a list of encryption types. It leaves out the types that are not supported.
func typesOf(list string) (types []int32) {
	for _, name := range strings.FieldsFunc(strings.ToLower(cmp.Or(list, "default")), func(r rune) bool { return r == ' ' || r == ',' || r == '\t' }) {
		remove := strings.HasPrefix(name, "-")
		for _, kind := range families[strings.TrimLeft(name, "+-")] {
			types = slices.DeleteFunc(types, func(k int32) bool { return remove && k == kind })
			if !remove && !slices.Contains(types, kind) {
				types = append(types, kind)
			}
		}
	}
	return types
}

// duration parses 36000, 10:00, 10:00:00, 10h and 1d 2h 3m 4s.
func duration(s string) (d time.Duration, err error) {
	bad := fmt.Errorf("%.50q is not a duration", s)
	s = strings.ReplaceAll(s, " ", "")
	if parts := strings.Split(s, ":"); len(parts) > 1 {
		units := []time.Duration{time.Hour, time.Minute, time.Second}
		if len(parts) > len(units) {
			return 0, bad
		}
		for i, part := range parts {
			n, err := strconv.ParseUint(part, 10, 16)
			if err != nil {
				return 0, bad
			}
			d += time.Duration(n) * units[i]
		}
		return d, nil
	}
	if days, rest, ok := strings.Cut(s, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		if err != nil {
			return 0, bad
		}
		d, s = time.Duration(n)*24*time.Hour, cmp.Or(rest, "0")
	}
	if n, err := strconv.ParseUint(s, 10, 31); err == nil {
		return d + time.Duration(n)*time.Second, nil
	}
	rest, err := time.ParseDuration(s)
	if err != nil || rest < 0 {
		return 0, bad
	}
	return d + rest, nil
}

// expand replaces the parameters of default_ccache_name.
func expand(s string) string {
	if !strings.Contains(s, "%{") {
		return s
	}
	name := ""
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	return strings.NewReplacer("%{uid}", strconv.Itoa(os.Getuid()), "%{euid}", strconv.Itoa(os.Geteuid()), "%{USERID}", strconv.Itoa(os.Getuid()),
		"%{username}", name, "%{TEMP}", os.TempDir(), "%{null}", "").Replace(s)
}

// Serves reports whether KDCs of a realm are known, or can be looked up.
func (c *Config) Serves(realm string) bool { return len(c.realms[realm]) > 0 || c.lookup }

func (c *Config) kdcs(realm string) []string { return slices.Clone(c.realms[realm]) }

// realmOf returns the realm of a host, or "" if it is not known.
func (c *Config) realmOf(host string) string {
	for at := strings.ToLower(host); at != ""; {
		if realm := c.domains[at]; realm != "" {
			return realm
		}
		if at[0] == '.' {
			at = at[1:]
			continue
		}
		dot := strings.IndexByte(at, '.')
		if dot < 0 {
			break
		}
		at = at[dot:]
	}
	return ""
}

func (c *Config) allows(kind int32) bool { return slices.Contains(c.types, kind) }

// kinds returns the encryption types of a request: first those for which the client has a key.
func (c *Config) kinds(first []int32) []int32 {
	all := slices.Clone(c.types)
	slices.SortStableFunc(all, func(a, b int32) int {
		return cmp.Compare(btoi(!slices.Contains(first, a)), btoi(!slices.Contains(first, b)))
	})
	return all
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
