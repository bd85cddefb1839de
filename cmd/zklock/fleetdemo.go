package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/cmd/zklock/internal/fleet"
	"github.com/zklock-go/zklock/zktest"
)

// fleetDemo is the demo in a browser: workers who use all kinds of locks.
type fleetDemo struct {
	std    streams
	server *serverFlags
	page   *pageFlags
	root   string // of its locks
}

// open shows the shop until it is interrupted, with a server of its own unless theirs is to be used.
func (s *fleetDemo) open(theirs bool) error {
	ctx, stop := untilInterrupted()
	defer stop()
	if !theirs {
		server, err := listenOn("127.0.0.1:0", zktest.Options{TickTime: 500 * time.Millisecond})
		if err != nil {
			return err
		}
		defer server.Close()
		s.server.servers = server.Addr()
	}
	page, err := s.page.open(s.std, s.root)
	if err != nil {
		return err
	}
	defer page.Close()
	s.server.connected = page.SetConnected
	client, err := s.server.connect(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var failed error
	var work sync.WaitGroup
	// Owned by this call, which waits; ends with ctx.
	work.Go(func() {
		defer cancel()
		failed = fleet.Run(ctx, s.root, s.hire)
	})
	err = show(ctx, s.std, page, client)
	cancel()
	work.Wait()
	return errors.Join(err, failed)
}

// hire connects a worker.
func (s *fleetDemo) hire(ctx context.Context, label string) (*zklock.Client, error) {
	worker := *s.server
	worker.label, worker.connected = label, nil
	return worker.connect(ctx)
}
