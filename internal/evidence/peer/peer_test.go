// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// play returns a peer whose program is a function. The program's input and output end with the test or when quit is called.
func play(t *testing.T, program func(in io.Reader, out io.Writer) error) (p *Peer, quit func(error)) {
	in, requests := io.Pipe()
	answers, out := io.Pipe()
	// Owned by the test: ends with its input, or when the peer's Gone is closed.
	go func() { out.CloseWithError(program(in, out)) }()
	p = New(requests, answers)
	quit = func(why error) {
		requests.CloseWithError(why)
		out.CloseWithError(why)
		<-p.Gone()
	}
	t.Cleanup(func() { quit(nil) })
	return p, quit
}

// serving returns a peer that answers requests with do.
func serving(t *testing.T, do func(verb string, args []string) (string, error)) (*Peer, func(error)) {
	return play(t, func(in io.Reader, out io.Writer) error { return Serve(in, out, do) })
}

// TestEachCallIsOneRequest checks the request of each method.
func TestEachCallIsOneRequest(t *testing.T) {
	ctx := t.Context()
	asked := make(chan string, 1)
	values := map[string]string{"open": "7", "contender": "8", "lock": "12", "held": "true", "sign": "doubt", "leader": "me"}
	p, _ := serving(t, func(verb string, args []string) (string, error) {
		asked <- strings.Join(append([]string{verb}, args...), " ")
		return values[verb], nil
	})
	asks := func(request string, err error) {
		t.Helper()
		require.NoError(t, err)
		require.Equal(t, request, <-asked)
	}
	s, err := p.Open(ctx)
	asks("open", err)
	c, err := s.Contender(ctx, "semaphore", "/a", "2")
	asks("contender 7 semaphore /a 2", err)
	token, err := c.Lock(ctx)
	asks("lock 8", err)
	assert.EqualValues(t, 12, token)
	held, err := c.Held(ctx)
	asks("held 8", err)
	assert.True(t, held)
	sign, err := c.Sign(ctx)
	asks("sign 8", err)
	assert.Equal(t, "doubt", sign)
	asks("revoked 8", c.Revoked(ctx))
	asks("unlock 8", c.Unlock(ctx))
	asks("close 8", c.Close(ctx))
	asks("revoke 7 /a/n-1", s.Revoke(ctx, "/a/n-1"))
	leader, err := s.Leader(ctx, "latch", "/a")
	asks("leader 7 latch /a", err)
	assert.Equal(t, "me", leader)
	asks("end 7", s.End(ctx))
}

// TestEveryProgramHasEveryRequest checks that the protocol's description and all programs have each request.
func TestEveryProgramHasEveryRequest(t *testing.T) {
	for name, quote := range map[string]string{"peer.go": "%s ", Curator: `"%s"`, Kazoo: `"%s"`} {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		for _, usage := range requests {
			assert.Contains(t, string(text), fmt.Sprintf(quote, usage), name)
		}
	}
}

func TestInvalidRequestsAreRefused(t *testing.T) {
	for line, want := range map[string]string{
		"":                      " error usage: ID VERB [ARGS]",
		"5":                     "5 error usage: ID VERB [ARGS]",
		"5 dance":               "5 error no such verb: dance",
		"5 lock":                "5 error usage: ID lock CONTENDER",
		"5 lock 1 2":            "5 error usage: ID lock CONTENDER",
		"5 contender 1 mutex":   "5 error usage: ID contender SESSION KIND PATH [MORE]",
		"5  open ":              "5 ok done",
		"5 contender 1 mutex /": "5 ok done",
		"5 contender 1 a /a 2":  "5 ok done",
	} {
		answers, out := io.Pipe()
		done := make(chan error, 1)
		// Owned by the test, which receives its result: ends after one line.
		go func() {
			done <- Serve(strings.NewReader(line+"\n"), out, func(string, []string) (string, error) { return "done", nil })
		}()
		buf := make([]byte, 100)
		n, err := answers.Read(buf)
		require.NoError(t, err)
		assert.Equal(t, want+"\n", string(buf[:n]), "%q", line)
		require.NoError(t, <-done)
	}
}

func TestAnAnswerFindsItsRequest(t *testing.T) {
	release := make(chan struct{})
	p, _ := serving(t, func(verb string, args []string) (string, error) {
		if verb == "lock" {
			<-release
		}
		return args[0], nil
	})
	first := make(chan string, 1)
	// Owned by the test, which receives its answer: ends with that.
	go func() {
		value, _ := p.Ask(t.Context(), "lock", "1")
		first <- value
	}()
	value, err := p.Ask(t.Context(), "unlock", "2")
	require.NoError(t, err)
	assert.Equal(t, "2", value)
	close(release)
	assert.Equal(t, "1", <-first)
}

func TestAnErrorIsOneLine(t *testing.T) {
	p, _ := serving(t, func(string, []string) (string, error) { return "", errors.New("two\nlines") })
	_, err := p.Open(t.Context())
	assert.EqualError(t, err, "two lines")
}

// TestOtherOutputIsNotAnAnswer uses a program that also prints output as a library might.
func TestOtherOutputIsNotAnAnswer(t *testing.T) {
	p, _ := play(t, func(in io.Reader, out io.Writer) error {
		buf := make([]byte, 100)
		if _, err := in.Read(buf); err != nil {
			return err
		}
		_, err := io.WriteString(out, "WARN slow disk\n1 warning\n9 ok never asked\n1 ok 3\n")
		return err
	})
	value, err := p.Ask(t.Context(), "open")
	require.NoError(t, err)
	assert.Equal(t, "3", value)
}

func TestARequestIsOneLineOfWords(t *testing.T) {
	p, _ := serving(t, func(string, []string) (string, error) { return "", nil })
	for _, word := range []string{"", "/a b", "/a\n2 open"} {
		_, err := p.Ask(t.Context(), "leader", "1", "latch", word)
		assert.ErrorContains(t, err, "is not one word", "%q", word)
	}
}

func TestAWaitEndsWithItsContext(t *testing.T) {
	release := make(chan struct{})
	p, _ := serving(t, func(verb string, _ []string) (string, error) {
		if verb == "lock" {
			<-release
		}
		return "", nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := p.Ask(ctx, "lock", "1")
	require.ErrorIs(t, err, context.Canceled)
	close(release)
	_, err = p.Ask(t.Context(), "unlock", "1") // an answer without a waiter does not block others
	require.NoError(t, err)
}

// TestTheEndOfAPeerAnswersEveryRequest ends the program with a reason while a request is under way.
func TestTheEndOfAPeerAnswersEveryRequest(t *testing.T) {
	running, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	p, quit := serving(t, func(string, []string) (string, error) {
		close(running)
		<-release
		return "", nil
	})
	got := make(chan error, 1)
	// Owned by the test, which receives its answer: ends with the program.
	go func() {
		_, err := p.Open(t.Context())
		got <- err
	}()
	<-running
	broken := errors.New("out of memory")
	quit(broken)
	err := <-got
	require.ErrorIs(t, err, ErrGone)
	require.ErrorIs(t, err, broken)
	_, err = p.Open(t.Context())
	require.ErrorIs(t, err, ErrGone)
}
