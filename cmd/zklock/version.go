package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
)

func versionCommand(std streams) *command {
	f := newFlags(std, "version", "", "Prints the version, as the Go tool has built it in. So does zklock --version.")
	return &command{f, func(args []string) error {
		if _, err := f.parse(args, 0, 0); err != nil {
			return err
		}
		_, err := fmt.Fprintf(std.out, "zklock %s %s %s/%s\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
		return err
	}}
}

// version returns the module's version, with the revision if it was built from a repository.
func version() string {
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
