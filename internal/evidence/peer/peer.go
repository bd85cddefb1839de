// Package peer drives lock clients that run in another process, most of them in another language, by a line protocol on
// its standard input and output. integration lets them queue with zklock, and compare measures them.
//
// A request is a line of words, and so is its answer, which comes whenever there is one:
//
//	request  ID VERB [ARGS]
//	answer   ID ok [VALUE]
//	         ID error TEXT
//
// ID is a number that the asking side chooses, another one for each request. These are the requests, and the values of
// their answers:
//
//	open                                SESSION      a new session of the client library
//	end SESSION                                      ends it, or gives that up after a few seconds
//	contender SESSION KIND PATH [MORE]  CONTENDER    a new contender for the lock at PATH
//	lock CONTENDER                      TOKEN        waits for the lock; 0 for a library without tokens
//	unlock CONTENDER                                 gives it back
//	held CONTENDER                      true, false  what the library tells a holder who asks; for mutexes
//	sign CONTENDER                      SIGN         waits for what the library tells its user unasked
//	revoked CONTENDER                                waits until somebody asks the holder to let go
//	close CONTENDER                                  ends the contender, which must not hold
//	revoke SESSION NODE                              asks the holder that has this node to let go
//	leader SESSION KIND PATH            MEMBER       who leads at PATH
//
// SESSION and CONTENDER are numbers that the peer has answered. KIND is one of these:
//
//	plain     a mutex as the library's documentation shows it, with no option set: the one to measure
//	mutex     a mutex that queues with other libraries' (kazoo's is told to see their nodes), and can be revoked (Curator's)
//	read      the two sides of a read-write lock; kazoo's see Curator's nodes
//	write
//	semaphore MORE is how many permits there are; a lock is one of them
//	latch     MORE is the member's id
//	selector  MORE is the member's id
//
// SIGN is what has happened to the lock since the last grant, each sign once: it may be gone (doubt), it is not after all
// (trust), it is gone (loss).
//
// A contender has a thread of its own, because some libraries' locks belong to threads. It is asked to lock, to unlock or
// whether it holds only after the answer to the last such request. All other requests are served side by side.
//
// A line that is no request is answered with an error that says what is wrong with it. A peer that lacks a kind or a verb
// answers that it does. A peer ends when its standard input does; the servers learn of that as of a crash.
package peer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
)

// ErrGone is what every request returns once the peer has ended.
var ErrGone = errors.New("the peer is gone")

// Peer is the asking side of the protocol: a program that somebody else has started. It is safe for many goroutines.
type Peer struct {
	in   io.Writer
	gone chan struct{} // closed when the program's output has ended

	mu      sync.Mutex
	last    int                   // guarded by mu; the ID of the last request
	waiting map[int]chan<- answer // guarded by mu; nil once the program's output has ended
	why     error                 // guarded by mu; how that has ended
}

type answer struct {
	value string
	err   error
}

// New returns the peer that reads requests from in and writes its answers to out. Each request is one Write to in. If out
// ends with an error, requests return that as well as ErrGone.
func New(in io.Writer, out io.Reader) *Peer {
	p := &Peer{in: in, gone: make(chan struct{}), waiting: map[int]chan<- answer{}}
	// Owned by the Peer: ends with the program's output, which the caller ends with the program. Gone waits for it.
	go p.listen(out)
	return p
}

// Gone is closed when the program's output has ended and all requests are answered.
func (p *Peer) Gone() <-chan struct{} { return p.gone }

// Ask sends a request and waits for the value that it is answered with. If ctx ends first, the request goes on in the peer.
func (p *Peer) Ask(ctx context.Context, words ...string) (string, error) {
	for _, word := range words {
		if word == "" || strings.ContainsAny(word, " \t\r\n") {
			return "", fmt.Errorf("%q is not one word", word)
		}
	}
	id, reply, err := p.expect()
	if err != nil {
		return "", err
	}
	if _, err := io.WriteString(p.in, strconv.Itoa(id)+" "+strings.Join(words, " ")+"\n"); err != nil {
		p.take(id)
		return "", fmt.Errorf("%w: %w", ErrGone, err)
	}
	select {
	case a := <-reply:
		return a.value, a.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// expect returns the ID of a new request and the channel that its answer will come from.
func (p *Peer) expect() (int, <-chan answer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting == nil {
		return 0, nil, p.why
	}
	reply := make(chan answer, 1)
	p.last++
	p.waiting[p.last] = reply
	return p.last, reply, nil
}

// take returns where the answer with this ID belongs, and expects it no more.
func (p *Peer) take(id int) chan<- answer {
	p.mu.Lock()
	defer p.mu.Unlock()
	to := p.waiting[id]
	delete(p.waiting, id)
	return to
}

func (p *Peer) listen(out io.Reader) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		id, a, ok := parse(lines.Text())
		if !ok {
			continue // something that a library printed
		}
		if to := p.take(id); to != nil {
			to <- a
		}
	}
	p.end(lines.Err())
}

// parse takes an answer's line apart, and reports whether it is one.
func parse(line string) (id int, a answer, ok bool) {
	number, rest, _ := strings.Cut(line, " ")
	verdict, value, _ := strings.Cut(rest, " ")
	id, err := strconv.Atoi(number)
	switch {
	case err != nil:
		return 0, answer{}, false
	case verdict == "ok":
		return id, answer{value: value}, true
	case verdict == "error":
		return id, answer{err: errors.New(value)}, true
	}
	return 0, answer{}, false
}

// end answers all requests that are still waiting.
func (p *Peer) end(why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.why = ErrGone
	if why != nil {
		p.why = fmt.Errorf("%w: %w", ErrGone, why)
	}
	for _, to := range p.waiting {
		to <- answer{err: p.why}
	}
	p.waiting = nil
	close(p.gone)
}
