// SPDX-License-Identifier: Apache-2.0

//go:build unix

package guardian

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/zklock-go/zklock/cmd/zklock/internal/proc"
	"github.com/zklock-go/zklock/cmd/zklock/internal/signals"
)

// slowTree is a tree whose command takes until go to be started.
type slowTree struct {
	start chan struct{}
	got   chan syscall.Signal
}

func (s *slowTree) Run(_ proc.Spec, tell func(proc.Event)) {
	<-s.start
	tell(proc.Event{Started: 1})
}

func (s *slowTree) Empty() bool { return false }

func (s *slowTree) Signal(sig syscall.Signal, _ proc.Reach) (denied []int) {
	s.got <- sig
	return nil
}

func (s *slowTree) Kill() (ending int, denied []int) { return 0, nil }

func TestASignalThatComesBeforeTheCommandIsNotLost(t *testing.T) {
	slow := &slowTree{make(chan struct{}), make(chan syscall.Signal, 1)}
	orders, heard := make(chan order), make(chan struct{}, 8)
	g := guard{tree: slow, notice: func(string) {}, answer: func(r report) {
		if r.Heard {
			heard <- struct{}{}
		}
	}}
	// Owned by the test; ends when the orders do, after patience.
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		g.keep(orders)
	}()
	until := now().plus(time.Hour)
	orders <- order{Until: until, Assignment: &assignment{Session: time.Second}}
	orders <- order{Until: until, Signal: int(syscall.SIGUSR1)}
	<-heard
	close(slow.start)
	assert.Equal(t, syscall.SIGUSR1, <-slow.got)
	close(orders)
	assert.Equal(t, signals.Terminate, <-slow.got)
	<-ended
}

// A command that is ended because of its timeout has the hold for as long as it takes.
func TestTheGuardianEndsACommandThatHasRunForTooLong(t *testing.T) {
	stubborn := &slowTree{make(chan struct{}), make(chan syscall.Signal, 1)}
	close(stubborn.start)
	orders, endings := make(chan order), make(chan reason, 8)
	g := guard{tree: stubborn, notice: func(string) {}, answer: func(r report) {
		if r.Ending != "" {
			endings <- r.Ending
		}
	}}
	// Owned by the test; ends when the orders do, after patience.
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		g.keep(orders)
	}()
	orders <- order{Until: now().plus(time.Hour), Assignment: &assignment{Session: time.Minute, Grace: time.Millisecond, MaxRun: 20 * time.Millisecond}}
	assert.Equal(t, signals.Terminate, <-stubborn.got)
	assert.Equal(t, overran, <-endings)
	orders <- order{Until: now().plus(time.Hour)}
	select {
	case <-ended:
		t.Error("the guardian gave up a process while the lock was kept")
	case <-time.After(2 * patience):
	}
	orders <- order{Until: now()}
	<-ended
}

// A hold may be certain for so short a time when zklock is stopped that it was heard of just before the end begins.
func TestTheGuardianReportsASilenceThatBeginsLate(t *testing.T) {
	stubborn := &slowTree{make(chan struct{}), make(chan syscall.Signal, 1)}
	close(stubborn.start)
	orders, told := make(chan order), make(chan string, 8)
	g := guard{tree: stubborn, notice: func(text string) { told <- text }, answer: func(report) {}}
	ended := make(chan struct{})
	// Owned by the test; ends after the deadline.
	go func() {
		defer close(ended)
		g.keep(orders)
	}()
	const session = time.Second
	orders <- order{Until: now().plus(session / 4), Assignment: &assignment{Session: session, Grace: session / 5}}
	assert.Equal(t, signals.Terminate, <-stubborn.got, "it is warned at once")
	assert.Contains(t, <-told, "zklock does not respond")
	<-ended
}
