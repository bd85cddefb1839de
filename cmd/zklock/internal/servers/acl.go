// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
)

// parseACL parses a list of scheme:id:perms. The id may contain colons.
func parseACL(text string) ([]zk.ACL, error) {
	var all []zk.ACL
	for item := range strings.SplitSeq(text, ",") {
		scheme, rest, ok := strings.Cut(item, ":")
		i := strings.LastIndexByte(rest, ':')
		if !ok || i < 0 {
			return nil, outcome.Misuse("--acl: %q is not scheme:id:perms", item)
		}
		perms, err := parsePerms(rest[i+1:])
		if err != nil {
			return nil, err
		}
		all = append(all, zk.ACL{Scheme: scheme, ID: rest[:i], Perms: perms})
	}
	return all, nil
}

func parsePerms(letters string) (int32, error) {
	bits := map[rune]int32{'c': zk.PermCreate, 'd': zk.PermDelete, 'r': zk.PermRead, 'w': zk.PermWrite, 'a': zk.PermAdmin}
	var perms int32
	for _, l := range letters {
		if bits[l] == 0 {
			return 0, outcome.Misuse("--acl: %q contains a letter other than c, d, r, w, a", letters)
		}
		perms |= bits[l]
	}
	if perms == 0 {
		return 0, outcome.Misuse("--acl: no permission given")
	}
	return perms, nil
}
