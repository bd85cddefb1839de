// Command survivors changes one thing after the other in the files that the promises rest on, and
// lists the changes that their tests do not notice.
//
// A survivor is a gap in the tests or a change that makes no difference. survivors.md lists them all,
// with a word on each that was judged; the program keeps these words.
package main

import (
	"flag"
	"log"
	"os"
	"path/filepath"
	"regexp"
)

func main() {
	flag.Parse()
	if *planted > 0 {
		if err := plant(*root, *planted, *seed); err != nil {
			log.Fatal(err)
		}
		return
	}
	pattern := regexp.MustCompile(*only)
	w, err := newWorkshop(*root, pattern)
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(w.dir)
	list, err := readList(filepath.Join(*root, listName))
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range subjects {
		if pattern.MatchString(s.file) {
			found, err := w.survivors(s)
			if err != nil {
				log.Fatal(err)
			}
			list.replace(s.file, len(w.mutations[s.file]), found)
			if err := list.write(filepath.Join(*root, listName)); err != nil {
				log.Fatal(err)
			}
		}
	}
}
