// SPDX-License-Identifier: Apache-2.0

// Package peer drives lock clients in other processes, most of them in other languages, through a line protocol on their standard
// input and output. integration queues them together with zklock, and compare measures them.
//
// A request and its answer are lines of words. Answers can come in any order:
//
//	request  ID VERB [ARGS]
//	answer   ID ok [VALUE]
//	         ID error TEXT
//
// ID is a number that the requesting side chooses, different for each request. These are the requests, and the values of their
// answers:
//
//	open                                SESSION      a new session of the client library
//	end SESSION                                      ends the session, with a time limit of a few seconds
//	contender SESSION KIND PATH [MORE]  CONTENDER    a new contender for the lock at PATH
//	lock CONTENDER                      TOKEN        waits for the lock; 0 for a library without tokens
//	unlock CONTENDER                                 releases the lock
//	held CONTENDER                      true, false  whether the library reports the lock as held; for mutexes
//	sign CONTENDER                      SIGN         waits for the library's next notification
//	revoked CONTENDER                                waits until the holder is asked to release
//	close CONTENDER                                  ends the contender, which must not hold the lock
//	revoke SESSION NODE                              asks the holder with this node to release
//	leader SESSION KIND PATH            MEMBER       the leader at PATH
//
// SESSION and CONTENDER are numbers from the peer's answers. KIND is one of these:
//
//	plain     a mutex without options, as in the library's documentation; used for measurements
//	mutex     a mutex that queues with other libraries' mutexes (for kazoo, with an option), and can be revoked (Curator)
//	read      the two sides of a read-write lock; kazoo's recognize Curator's nodes
//	write
//	semaphore MORE is the number of permits; lock acquires one of them
//	latch     MORE is the member's id
//	selector  MORE is the member's id
//
// SIGN is a notification about the lock since the last grant, each one returned once: the lock may be lost (doubt), it is still held
// after all (trust), or it is lost (loss).
//
// Each contender has its own thread, because some libraries' locks belong to threads. A new lock, unlock or held request of a
// contender must wait for the answer to the previous one. All other requests are executed concurrently.
//
// The peer answers an invalid request, or one with a kind or a verb that it does not support, with an error that describes the
// problem. A peer ends when its standard input does, without ending its sessions, as in a crash.
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

// ErrGone is returned by every request after the peer has ended.
var ErrGone = errors.New("the peer has ended")

// Peer is the requesting side of the protocol, for a program that the caller has started. It is safe for concurrent use.
type Peer struct {
	in   io.Writer
	gone chan struct{} // closed when the program's output has ended

	mu      sync.Mutex
	last    int                   // guarded by mu; the ID of the last request
	waiting map[int]chan<- answer // guarded by mu; nil once the program's output has ended
	why     error                 // guarded by mu; the error after the output has ended
}

type answer struct {
	value string
	err   error
}

// New returns a Peer for a program that reads requests from in and writes answers to out. Each request is one Write to in. If out ends
// with an error, requests return an error that wraps both it and ErrGone.
func New(in io.Writer, out io.Reader) *Peer {
	p := &Peer{in: in, gone: make(chan struct{}), waiting: map[int]chan<- answer{}}
	// Owned by the Peer: ends with the program's output, so when the caller ends the program. Gone waits for it.
	go p.listen(out)
	return p
}

// Gone is closed when the program's output has ended and all requests are answered.
func (p *Peer) Gone() <-chan struct{} { return p.gone }

// Ask sends a request and returns the value of its reply. If ctx ends first, the peer continues the request.
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

// expect returns the ID of a new request and the channel for its answer.
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

// take removes the request with this ID and returns the channel for its answer, or nil if there is none.
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

// parse parses an answer. It returns false if the line is not an answer.
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

// end answers all waiting requests with an error.
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
