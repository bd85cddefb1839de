// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
)

// requests are the verbs with their arguments. CuratorPeer.java and kazoo_peer.py have the same list.
var requests = []string{
	"open",
	"end SESSION",
	"contender SESSION KIND PATH [MORE]",
	"lock CONTENDER",
	"unlock CONTENDER",
	"held CONTENDER",
	"sign CONTENDER",
	"revoked CONTENDER",
	"close CONTENDER",
	"revoke SESSION NODE",
	"leader SESSION KIND PATH",
}

// check returns an error if a request is invalid. words are its verb and arguments.
func check(words []string) error {
	if len(words) == 0 {
		return errors.New("usage: ID VERB [ARGS]")
	}
	i := slices.IndexFunc(requests, func(usage string) bool { return strings.Fields(usage)[0] == words[0] })
	if i < 0 {
		return fmt.Errorf("no such verb: %s", words[0])
	}
	most := len(strings.Fields(requests[i]))
	least := most - strings.Count(requests[i], "[")
	if len(words) < least || len(words) > most {
		return fmt.Errorf("usage: ID %s", requests[i])
	}
	return nil
}

// Serve implements the answering side of the protocol in Go. It calls do concurrently for each valid request from in, until in ends.
func Serve(in io.Reader, out io.Writer, do func(verb string, args []string) (value string, err error)) error {
	var mu sync.Mutex // guards out
	reply := func(id string, words []string) {
		line := answerTo(id, words, do)
		mu.Lock()
		defer mu.Unlock()
		_, _ = io.WriteString(out, line) // if the reader is gone, in ends as well
	}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		id, request, _ := strings.Cut(strings.TrimSpace(lines.Text()), " ")
		// Owned by the process, which ends when in does: ends with the answer. Nothing waits for it.
		go reply(id, strings.Fields(request))
	}
	return lines.Err()
}

// answerTo executes a request and returns the answer.
func answerTo(id string, words []string, do func(verb string, args []string) (string, error)) string {
	err := check(words)
	value := ""
	if err == nil {
		value, err = do(words[0], words[1:])
	}
	if err != nil {
		return id + " error " + strings.ReplaceAll(err.Error(), "\n", " ") + "\n"
	}
	return strings.TrimSuffix(id+" ok "+value, " ") + "\n"
}
