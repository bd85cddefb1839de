package node

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/plain"
)

// maxPath keeps a request that contains a path below the size that a server accepts.
const maxPath = 32 << 10

// CheckPath returns ErrInvalid with the reason if ZooKeeper's rules, or our own, forbid a path.
func CheckPath(path string) error {
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
		return fmt.Errorf("%w: path %.40q... has %d bytes, the limit is %d", outcome.ErrInvalid, path, len(path), maxPath)
	case !utf8.ValidString(path):
		return bad("is not UTF-8")
	}
	if path == "/zookeeper" || strings.HasPrefix(path, "/zookeeper/") {
		return bad("is in the tree that ZooKeeper keeps for itself")
	}
	for name := range strings.SplitSeq(path[1:], "/") {
		if name == "" || name == "." || name == ".." {
			return bad("has a part that is empty or dots")
		}
		if strings.HasSuffix(name, MarksSuffix) || strings.HasSuffix(name, RecordSuffix) {
			return bad("has a part that is the name of what is kept beside another lock")
		}
	}
	for _, r := range path {
		if r <= 0x1f || r >= 0x7f && r <= 0x9f || r >= 0xe000 && r <= 0xf8ff || r >= 0xfff0 {
			return bad("has a character that ZooKeeper does not take")
		}
	}
	return nil
}

// Printable returns a path as it stands in an error: bad ones are named there as well.
func Printable(path string) string { return plain.Short(path, 1000) }

// DirOf returns the path of a node; an empty one is the root.
func DirOf(path string) string {
	if path == "" {
		return "/"
	}
	return path
}

func BaseName(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }
