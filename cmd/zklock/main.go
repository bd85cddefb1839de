// Command zklock takes ZooKeeper locks from a shell, shows their holders and waiters, and
// demonstrates the library with a server of its own. See `zklock --help`.
package main

import "os"

func main() {
	if len(os.Args) > 1 && os.Args[1] == guardCommand {
		beGuardian(os.Args[2:])
		return
	}
	std := streams{os.Stdin, os.Stdout, os.Stderr}
	err := dispatch(os.Args[1:], std)
	code := std.report(err)
	endIfInterrupted(err)
	os.Exit(code)
}
