// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/cmd/zklock/internal/cli"
	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
	"github.com/zklock-go/zklock/cmd/zklock/internal/servers"
	"github.com/zklock-go/zklock/cmd/zklock/internal/web"
	"github.com/zklock-go/zklock/internal/node"
)

const webAbout = `
Shows the locks at and below PATH (default: all) in a browser, live: the busiest first,
and for each lock the holders, the queue, and a timeline since zklock started watching.
All pages share one watch. While nothing changes, each directory is checked once per
session timeout.

It is read-only unless --allow-changes is given. Then anyone with the full link that
zklock prints can ask holders to release their locks, and evict contenders.

There is no login: anyone who can reach the address sees everything zklock can read with
--auth, so it listens on loopback by default. To publish the page, put a reverse proxy
with a login before it, and give its address as --public-url.`

// checkTree rejects a path below which there can be no locks.
func checkTree(f *cli.Flags, path string) error {
	if path == "/" {
		return nil
	}
	if err := node.CheckPath(path); err != nil {
		return outcome.Misuse("%s: %w", f.Name(), err)
	}
	return nil
}

func webCommand(std cli.Streams) *cli.Command {
	f := cli.NewFlags(std, "web", "[flags] [PATH]", webAbout)
	server := servers.New(f).Security(f)
	var p web.Flags
	p.Register(f)
	return f.Command(func(args []string) error {
		positional, err := f.Parse(args, 0, 1)
		if err != nil {
			return err
		}
		path := "/"
		if len(positional) == 1 {
			path = positional[0]
		}
		if err := checkTree(f, path); err != nil {
			return err
		}
		page, err := p.Open(std, path)
		if err != nil {
			return err
		}
		defer page.Close()
		server.Session = web.Session
		return server.Use(func(ctx context.Context, client *zklock.Client) error {
			return page.Show(ctx, std, client, server.Contact.SilentSince)
		})
	})
}
