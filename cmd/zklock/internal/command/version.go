// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"runtime"

	"github.com/zklock-go/zklock/cmd/zklock/internal/cli"
)

func versionCommand(std cli.Streams) *cli.Command {
	f := cli.NewFlags(std, "version", "", "Prints the version that the Go tool recorded in the binary, like zklock --version.")
	return f.Command(func(args []string) error {
		if _, err := f.Parse(args, 0, 0); err != nil {
			return err
		}
		_, err := fmt.Fprintf(std.Out, "zklock %s %s %s/%s\n", cli.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
		return err
	})
}
