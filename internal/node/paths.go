// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/zklock-go/zklock/internal/escape"
	"github.com/zklock-go/zklock/internal/outcome"
)

// maxPath keeps requests that contain a path below the size that servers accept.
const maxPath = 32 << 10

// CheckPath returns ErrInvalid with the reason if ZooKeeper or this library does not allow a lock at
// the path, or below it.
func CheckPath(path string) error {
	err := CheckContender(path)
	if err != nil {
		return err
	}
	return checkElement(path, BaseName(path))
}

// CheckContender is CheckPath for the path of a contender's node.
func CheckContender(path string) error {
	bad := func(what string) error { return fmt.Errorf("%w: path %q %s", outcome.ErrInvalid, path, what) }
	switch {
	case path == "":
		return bad("is empty")
	case path[0] != '/':
		return bad("does not start with /")
	case path == "/":
		return bad("is the root")
	case strings.HasSuffix(path, "/"):
		return bad("ends with /")
	case len(path) > maxPath:
		return fmt.Errorf("%w: path %.40q... has %d bytes, limit is %d", outcome.ErrInvalid, path, len(path), maxPath)
	case !utf8.ValidString(path):
		return bad("is not UTF-8")
	}
	if path == "/zookeeper" || strings.HasPrefix(path, "/zookeeper/") {
		return bad("is reserved for ZooKeeper")
	}
	for name := range strings.SplitSeq(path[1:], "/") {
		if name == "" || name == "." || name == ".." {
			return bad("has an element that is empty, . or ..")
		}
		if IsReserved(name) {
			return bad("has an element with a suffix that zklock reserves")
		}
	}
	parent := path[:strings.LastIndexByte(path, '/')]
	for name := range strings.SplitSeq(parent, "/") {
		err := checkElement(path, name)
		if err != nil {
			return err
		}
	}
	for _, r := range path {
		if r <= 0x1f || r >= 0x7f && r <= 0x9f || r >= 0xe000 && r <= 0xf8ff || r >= 0xfff0 {
			return bad("has a character that ZooKeeper does not allow")
		}
	}
	return nil
}

// checkElement returns ErrInvalid if a lock at the parent of an element of path would take the
// element for a contender, and wait for it forever.
func checkElement(path, name string) error {
	_, isContender := ParseEntry(name)
	if isContender {
		return fmt.Errorf("%w: path %q has an element that looks like the node of a contender for a lock", outcome.ErrInvalid, path)
	}
	return nil
}

// Printable returns a path as it is shown in errors, where it may be an invalid one.
func Printable(path string) string { return escape.Short(path, 1000) }

// DirOf returns the path of a node; an empty path means the root.
func DirOf(path string) string {
	if path == "" {
		return "/"
	}
	return path
}

func BaseName(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }
