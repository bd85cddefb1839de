// SPDX-License-Identifier: Apache-2.0

package node

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/outcome"
)

func TestPathsAreCheckedByZooKeepersRules(t *testing.T) {
	longest := "/" + strings.Repeat("a", maxPath-1)
	for _, path := range []string{"/a", "/a/b.c", "/zookeepers", "/.a/..b", "/ü", "/\uf900", "/\uffef", "/.zklock-delays", "/a-lock-000000000", "/a-lock-00000000001", "/lock-2147483648", "/a-0000000000", longest} {
		require.NoError(t, CheckPath(path), "%.40q", path)
	}
	for _, path := range []string{
		"", "a", "/", "/a/", "//a", "/a//b", "/.", "/a/..", "/zookeeper", "/zookeeper/a", "/\xff", "/a\x1f", "/\x7f", "/\u009f", "/\ue000", "/\uefff", "/\uf000", "/\uf8ff", "/\ufff0", longest + "a",
		"/a.zklock-delay", "/a.zklock-slots", "/a.zklock-slots/b", "/a/leases/resized.zklock-permits",
		"/jobs/nightly-lock-0000000000", "/jobs/nightly-lock-1700000000/a", "/lock-0000000000", "/a/x__lock__0000000001", "/a-lock--000000001", "/a-latch-0000000002",
	} {
		require.ErrorIs(t, CheckPath(path), outcome.ErrInvalid, "%.40q", path)
	}
}

func TestANameLikeAContendersNodeIsNotALocksPath(t *testing.T) {
	for _, path := range []string{"/a/_c_1-lock-0000000000", "/lock-0000000000"} {
		require.ErrorIs(t, CheckPath(path), outcome.ErrInvalid)
		require.NoError(t, CheckContender(path))
		require.ErrorIs(t, CheckContender(path+"/x-lock-0000000000"), outcome.ErrInvalid)
	}
}
