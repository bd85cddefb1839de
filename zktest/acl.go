// SPDX-License-Identifier: Apache-2.0

package zktest

import (
	"crypto/sha1"
	"encoding/base64"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// The permission bits of an ACL entry.
const (
	PermRead   int32 = 1
	PermWrite  int32 = 2
	PermCreate int32 = 4
	PermDelete int32 = 8
	PermAdmin  int32 = 16
	PermAll    int32 = 31
)

// ACL is one entry of a node's ACL.
type ACL struct {
	Perms      int32
	Scheme, ID string
}

var openACL = []ACL{{PermAll, "world", "anyone"}}

// identity is one of the identities of a connection, such as its address or a digest.
type identity struct{ scheme, id string }

// digestID returns the digest scheme's id for "user:password".
func digestID(credentials string) string {
	user, _, _ := strings.Cut(credentials, ":")
	sum := sha1.Sum([]byte(credentials))
	return user + ":" + base64.StdEncoding.EncodeToString(sum[:])
}

// superuser is the identity that passes every ACL. The server itself and Options.Super have it.
var superuser = []identity{{scheme: "super"}}

// allowed reports whether one of ids has one of the permissions in perms.
func allowed(acl []ACL, perms int32, ids []identity) bool {
	if len(acl) == 0 || slices.Contains(ids, superuser[0]) {
		return true
	}
	for _, a := range acl {
		if a.Perms&perms != 0 && a.covers(ids) {
			return true
		}
	}
	return false
}

func (a ACL) covers(ids []identity) bool {
	if a.Scheme == "world" && a.ID == "anyone" {
		return true
	}
	return slices.ContainsFunc(ids, func(id identity) bool {
		if id.scheme != a.Scheme {
			return false
		}
		return id.id == a.ID || a.Scheme == "ip" && ipCovers(a.ID, id.id)
	})
}

// ipCovers reports whether an address is in the range "address/bits".
func ipCovers(pattern, address string) bool {
	prefix, ok := parseIPPattern(pattern)
	addr, err := netip.ParseAddr(address)
	return ok && err == nil && prefix.Contains(addr)
}

func parseIPPattern(pattern string) (netip.Prefix, bool) {
	text, bitsText, hasBits := strings.Cut(pattern, "/")
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Prefix{}, false
	}
	bits := addr.BitLen()
	if hasBits {
		bits, err = strconv.Atoi(bitsText)
		if err != nil {
			return netip.Prefix{}, false
		}
	}
	prefix := netip.PrefixFrom(addr, bits)
	return prefix, prefix.IsValid()
}

// fixACL validates an ACL sent by a client and replaces the scheme "auth" with the
// client's own ids. ok is false if the ACL is empty or contains an unsupported scheme.
func fixACL(list []ACL, ids []identity, sasl bool) ([]ACL, bool) {
	var fixed []ACL
	for _, a := range list {
		switch {
		case a.Scheme == "auth":
			own := expandAuth(a.Perms, ids)
			if len(own) == 0 {
				return nil, false
			}
			fixed = append(fixed, own...)
		case a.Scheme == "sasl" && !sasl:
			return nil, false
		case validID(a.Scheme, a.ID):
			fixed = append(fixed, a)
		default:
			return nil, false
		}
	}
	return dedup(fixed), len(fixed) > 0
}

// dedup removes repeated entries, as ZooKeeper does, and keeps the order.
func dedup(list []ACL) []ACL {
	var unique []ACL
	for _, a := range list {
		if !slices.Contains(unique, a) {
			unique = append(unique, a)
		}
	}
	return unique
}

// expandAuth returns an entry for each id that was authenticated with a credential,
// which excludes addresses.
func expandAuth(perms int32, ids []identity) []ACL {
	var list []ACL
	for _, id := range ids {
		if id.scheme == "digest" || id.scheme == "sasl" {
			list = append(list, ACL{perms, id.scheme, id.id})
		}
	}
	return list
}

func validID(scheme, id string) bool {
	switch scheme {
	case "world":
		return id == "anyone"
	case "sasl":
		return id != ""
	case "digest":
		return strings.Count(id, ":") == 1 && !strings.HasSuffix(id, ":")
	case "ip":
		_, ok := parseIPPattern(id)
		return ok
	}
	return false
}

// masked returns acl without the digests' hashes, for connections without PermAdmin.
func masked(acl []ACL) []ACL {
	list := slices.Clone(acl)
	for i, a := range list {
		if a.Scheme == "digest" {
			user, _, _ := strings.Cut(a.ID, ":")
			list[i].ID = user + ":x"
		}
	}
	return list
}
