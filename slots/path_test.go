// SPDX-License-Identifier: Apache-2.0

package slots

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
)

// The paths are those of running fleets: hosts with another version must find the same ones.
func TestPathsOfJobs(t *testing.T) {
	for name, want := range map[string]string{
		"report":                 "/cron/report",
		"eu/report":              "/cron/eu%2Freport",
		"eu%2Freport":            "/cron/eu%252Freport",
		"main.report":            "/cron/main.report",
		"report.zklock-slots":    "/cron/report%2Ezklock-slots",
		"report.zklock-delay":    "/cron/report%2Ezklock-delay",
		"report.zklock-permits":  "/cron/report%2Ezklock-permits",
		"report-lock-0000000001": "/cron/report-lock-000000000%31",
		".":                      "/cron/%2E",
		"..":                     "/cron/%2E%2E",
		"a b":                    "/cron/a%20b",
		"\x00":                   "/cron/%00",
		"":                       "/cron/",
	} {
		assert.Equal(t, want, Path("/cron", name), "%q", name)
	}
}

// FuzzPath has the library accept each path, and no two names share one.
func FuzzPath(f *testing.F) {
	f.Add("eu/report", "eu%2Freport")
	f.Add("x.zklock-slots", "x%2Ezklock-slots")
	f.Add("x-lock-0000000001", "x-lock-000000000%31")
	f.Add("..", "%2E%2E")
	f.Add("\xff", "\ufffd")
	c := new(zklock.Client)
	f.Fuzz(func(t *testing.T, a, b string) {
		if a == "" || b == "" {
			return
		}
		require.NoError(t, Due(c, Path("/d", a), time.Unix(0, 0)).check())
		require.Equal(t, a == b, Path("/d", a) == Path("/d", b))
	})
}
