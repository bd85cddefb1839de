package node

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/outcome"
)

func TestPathsAreCheckedByZooKeepersRules(t *testing.T) {
	longest := "/" + strings.Repeat("a", maxPath-1)
	for _, path := range []string{"/a", "/a/b.c", "/zookeepers", "/.a/..b", "/ü", "/.zklock-delays", longest} {
		require.NoError(t, CheckPath(path), "%.40q", path)
	}
	for _, path := range []string{
		"", "a", "/", "/a/", "//a", "/a//b", "/.", "/a/..", "/zookeeper", "/zookeeper/a", "/\xff", "/a\x1f", "/\x7f", "/\u009f", "/\ue000", "/\uefff", "/\uf000", "/\uf8ff", "/\ufff0", longest + "a",
		"/a.zklock-delay", "/a.zklock-slots", "/a.zklock-slots/b",
	} {
		require.ErrorIs(t, CheckPath(path), outcome.ErrInvalid, "%.40q", path)
	}
}
