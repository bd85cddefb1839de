// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"runtime/debug"
)

// Version returns the module's version. For a build from a repository it adds the revision.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown)"
	}
	v := cmp.Or(info.Main.Version, "(devel)")
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	if revision := settings["vcs.revision"]; v == "(devel)" && revision != "" {
		v += " " + revision[:min(12, len(revision))]
		if settings["vcs.modified"] == "true" {
			v += "+dirty"
		}
	}
	return v
}
