// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
)

func TestAnACLForOnesOwnCredentialsNeedsSome(t *testing.T) {
	t.Setenv(EnvAuth, "")
	s := &Flags{acl: "auth::cdrwa", Patience: time.Second}
	_, err := s.Options()
	require.Error(t, err)
	assert.True(t, outcome.Usage.Is(err), err)
	s.auth = []string{"digest:user:password"}
	_, err = s.Options()
	assert.NoError(t, err)
	_, err = (&Flags{acl: "auth::cdrwa", cert: "file", Patience: time.Second}).Options()
	assert.NoError(t, err, "a certificate is a credential")
}
