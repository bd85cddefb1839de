// SPDX-License-Identifier: Apache-2.0

package session

import (
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
)

// A transaction without any operation need not reach the quorum.
func TestAProofSendsARequestWithoutNodesToCheck(t *testing.T) {
	require.Equal(t, []any{&zk.CheckVersionRequest{Path: "/", Version: -1}}, checks(nil))
}
