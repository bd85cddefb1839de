// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package sqlfence_test

import (
	"database/sql"
	"testing"
)

func postgres(t *testing.T) *sql.DB {
	t.Skip("PostgreSQL is tested on Unix")
	return nil
}

func mariadb(t *testing.T) *sql.DB {
	t.Skip("MariaDB is tested on Unix")
	return nil
}
