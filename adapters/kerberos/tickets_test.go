// SPDX-License-Identifier: Apache-2.0

package kerberos

import (
	"errors"
	"fmt"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/adapters/kerberos/internal/krb5"
)

func TestRefusalsAreFinalAndOtherErrorsMayPass(t *testing.T) {
	kdc := func(code int32) error {
		return fmt.Errorf("wrapped: %w", &krb5.KDCError{Code: code, Text: "text of the KDC"})
	}
	for _, c := range []struct {
		err   error
		final bool
		hint  string
	}{
		{kdc(krb5.ClientUnknown), true, "does not know the client's principal"},
		{kdc(krb5.ClientExpired), true, "the client's principal has expired"},
		{kdc(krb5.ClientRevoked), true, "locked"},
		{kdc(krb5.PasswordExpired), true, "password has expired"},
		{kdc(krb5.WrongRealm), true, "another realm"},
		{kdc(krb5.WrongKey), true, wrongKey},
		{kdc(krb5.NeverValid), true, clocksDiffer},
		{kdc(krb5.PreauthRequired), true, "not supported"},
		{kdc(77), true, "error 77"},
		{kdc(krb5.TicketExpired), false, "the ticket has expired"},
		{kdc(krb5.ServiceUnavailable), false, "KDC_ERR_SVC_UNAVAILABLE"},
		{kdc(krb5.GenericError), false, "text of the KDC"},
		{krb5.ErrKey, true, wrongKey},
		{krb5.ErrClocks, true, clocksDiffer},
		{krb5.ErrNoKDC, true, "no KDC for this realm"},
		{krb5.ErrNoAnswer, false, "no answer from the KDC"},
		{errRunKinit, false, "run kinit"},
		{krb5.ErrMalformed, false, "malformed"},
	} {
		err := explain(c.err)
		require.ErrorContains(t, err, c.hint)
		require.ErrorIs(t, err, c.err)
		require.Equal(t, c.final, errors.Is(err, zk.ErrAuthFailed), "%v", err)
		require.Equal(t, c.final, isRefusal(c.err), "%v", err)
	}
	require.NoError(t, explain(nil))
}

func TestAPanicIsARefusal(t *testing.T) {
	err := guarded(func() error { return errors.New("some error") })
	require.NotErrorIs(t, err, zk.ErrAuthFailed)
	err = guarded(func() error { panic("some defect") })
	require.ErrorIs(t, err, zk.ErrAuthFailed)
	require.ErrorContains(t, err, "some defect")
}
