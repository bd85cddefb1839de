// Command zklock takes ZooKeeper locks from a shell, shows who holds and who waits, and
// demonstrates the library with a server of its own. See `zklock --help`.
package main

import "os"

func main() {
	std := streams{os.Stdin, os.Stdout, os.Stderr}
	os.Exit(std.report(dispatch(os.Args[1:], std)))
}
