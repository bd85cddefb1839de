// SPDX-License-Identifier: Apache-2.0

// Surface prints the names on which programs depend without compiling against the library: the keys of JSON and the names of
// metrics. The tests of the package compare them with names.txt, and the exported names of Go with their reasons.
//
//	go run ./internal/evidence/surface MODULE
package main

import (
	"fmt"
	"log"
	"os"
	"strings"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: surface MODULE")
	}
	names, err := outsideNames(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(strings.Join(names, "\n"))
}
