// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/cmd/zklock/internal/cli"
	"github.com/zklock-go/zklock/cmd/zklock/internal/fleet"
	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
	"github.com/zklock-go/zklock/cmd/zklock/internal/servers"
	"github.com/zklock-go/zklock/cmd/zklock/internal/web"
	"github.com/zklock-go/zklock/zktest"
)

// fleetDemo is the demo in a browser: workers that use all kinds of locks.
type fleetDemo struct {
	std    cli.Streams
	server *servers.Flags
	page   *web.Flags
	root   string // the directory of its locks
}

// open shows the shop until it is interrupted. Unless theirs is set, it starts an in-process server.
func (s *fleetDemo) open(theirs bool) error {
	ctx, stop := cli.UntilInterrupted()
	defer stop()
	if !theirs {
		server, err := listenOn("127.0.0.1:0", zktest.Options{TickTime: 500 * time.Millisecond})
		if err != nil {
			return err
		}
		defer server.Close()
		s.server.Servers = server.Addr()
	}
	page, err := s.page.Open(s.std, s.root)
	if err != nil {
		return err
	}
	defer page.Close()
	client, err := s.server.Connect(ctx)
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
	err = page.Show(ctx, s.std, client, s.server.Contact.SilentSince)
	cancel()
	work.Wait()
	return errors.Join(err, failed)
}

// hire connects a worker.
func (s *fleetDemo) hire(ctx context.Context, label string) (*zklock.Client, error) {
	worker := *s.server
	worker.Label = label
	return worker.Connect(ctx)
}

// listenOn starts an in-process server.
func listenOn(address string, opts zktest.Options) (*zktest.Server, error) {
	server, err := zktest.New(opts)
	if err != nil {
		return nil, err
	}
	if err := server.Listen(address); err != nil {
		server.Close()
		return nil, outcome.CannotListen(err)
	}
	return server, nil
}
