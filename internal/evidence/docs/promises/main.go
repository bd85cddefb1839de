// SPDX-License-Identifier: Apache-2.0

// Command promises prints which tests back each promise and each assumption of docs.Register. If an ID is given, it
// prints a pattern for "go test -run" that matches the tests of that ID: of P2.1, of all promises of P2, or of A1.
package main

import (
	"fmt"
	"io"
	"log"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/zklock-go/zklock/internal/evidence/docs"
)

func main() {
	register, err := docs.Register(".")
	if err != nil {
		log.Fatalf("run it in the root of the repository: %v", err)
	}
	backings, err := docs.Backings(".")
	if err != nil {
		log.Fatal(err)
	}
	if len(os.Args) < 2 || os.Args[1] == "" {
		list(os.Stdout, docs.Claims(register), backings)
		return
	}
	names := namesOf(os.Args[1], backings)
	if len(names) == 0 {
		log.Fatalf("no test backs %s", os.Args[1])
	}
	fmt.Printf("^(%s)$\n", strings.Join(names, "|"))
}

// list prints each claim with its tests and their directories.
func list(to io.Writer, claims []docs.Claim, backings []docs.Backing) {
	for _, c := range claims {
		fmt.Fprintf(to, "%s  %s\n", c.ID, c.Text)
		if !c.Tested {
			fmt.Fprintln(to, "    not tested")
		}
		for _, b := range backings {
			if slices.Contains(b.IDs, c.ID) {
				fmt.Fprintf(to, "    %s  %s\n", path.Dir(b.File), b.Name)
			}
		}
	}
}

// namesOf returns the names of the tests that back a claim, or all claims of a section.
func namesOf(id string, backings []docs.Backing) (names []string) {
	for _, b := range backings {
		backs := func(i string) bool { return i == id || strings.HasPrefix(i, id+".") }
		if b.Runs() && slices.ContainsFunc(b.IDs, backs) {
			names = append(names, b.Name)
		}
	}
	return names
}
