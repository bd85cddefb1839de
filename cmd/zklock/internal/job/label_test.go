// SPDX-License-Identifier: Apache-2.0

//go:build unix

package job

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestLabelsDistinguishJobsAndContainNoSecrets(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		want string
		argv []string
	}{
		{"backup", []string{"/usr/local/bin/backup"}},
		{"backup orders", []string{"backup", "orders", "--password", "secret"}},
		{"mysqldump", []string{"mysqldump", "-psecret"}},
		{"curl", []string{"curl", "https://user:secret@host/"}},
		{"sh pg_dump", []string{"sh", "-c", "pg_dump -W secret | gzip"}},
		{"sh", []string{"sh", "-c", "PGPASSWORD=secret pg_dump"}},
		{"bash mysql", []string{"bash", "-lc", "mysql -psecret orders"}},
		{"sh", []string{"sh", "-euc", "PGPASSWORD=secret pg_dump"}},
		{"bash", []string{"bash", "-l", "-c"}},
		{"ssh host", []string{"ssh", "host", "mysql -psecret orders"}},
		{"watch", []string{"watch", "login\tsecret"}},
		{"ruby", []string{"ruby", "-e", "login secret"}},
		{"bash report.sh weekly", []string{"/bin/bash", "-e", "/opt/jobs/report.sh", "weekly"}},
		{"python3 job.py", []string{"python3", "-u", "/opt/job.py", "--key=secret"}},
		{"sh", []string{"sh", "-c", ""}},
		{"sh", []string{"sh"}},
		{strings.Repeat("x", 40), []string{strings.Repeat("x", 50)}},
	} {
		assert.Equal(t, c.want, labelOf(c.argv), "%q", c.argv)
	}
}
