// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/cmd/zklock/internal/cli"
	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
	"github.com/zklock-go/zklock/cmd/zklock/internal/servers"
	"github.com/zklock-go/zklock/cmd/zklock/internal/show"
	"github.com/zklock-go/zklock/internal/bridge"
	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/session"
	"github.com/zklock-go/zklock/operate"
)

// completionTime is how long a person waits for a completion.
const completionTime = time.Second

// completeCommand is what completion scripts call. It fails without a message.
func completeCommand(std cli.Streams) *cli.Command {
	f := cli.NewFlags(std, cli.Asked, "paths PREFIX | nodes PATH PREFIX", "Prints what a shell can complete.")
	server := servers.New(f).Security(f)
	return f.Command(func(args []string) error {
		if len(args) < 2 {
			return outcome.Usage.Of(nil)
		}
		server.Patience, server.Hasty = completionTime, true
		words := func(ctx context.Context, client *zklock.Client) ([]string, error) {
			return pathsFrom(ctx, client, args[1])
		}
		if args[0] == "nodes" {
			words = func(ctx context.Context, client *zklock.Client) ([]string, error) {
				return nodesOf(ctx, client, args[1])
			}
		}
		err := server.Use(func(ctx context.Context, client *zklock.Client) error {
			return server.Ask(ctx, func(ctx context.Context) error {
				found, err := words(ctx, client)
				for _, word := range slices.Sorted(slices.Values(found)) {
					if harmless.MatchString(word) && strings.HasPrefix(word, args[len(args)-1]) {
						fmt.Fprintln(std.Out, word)
					}
				}
				return err
			})
		})
		if err != nil {
			return outcome.Failure.Of(nil)
		}
		return nil
	})
}

// harmless matches words that no shell interprets. Anyone can create a node with another name.
var harmless = regexp.MustCompile(`^[A-Za-z0-9/][A-Za-z0-9/_.@%+,-]*$`)

// pathsFrom returns the paths in the directory that prefix names, for one request.
func pathsFrom(ctx context.Context, client *zklock.Client, prefix string) (paths []string, err error) {
	dir := prefix[:max(0, strings.LastIndexByte(prefix, '/'))]
	c := bridge.ClientOf(client)
	l, err := session.Persist(ctx, c.Requests, func(s *session.Session) (session.Listing, error) {
		return c.Requests.List(ctx, s, node.DirOf(c.Root+dir))
	})
	for _, name := range l.Names {
		path := dir + "/" + name
		if node.CheckPath(path) == nil { // it is no contender, and not zklock's own
			paths = append(paths, path)
		}
	}
	return paths, err
}

// nodesOf returns the names of a lock's contenders, as --node accepts them.
func nodesOf(ctx context.Context, client *zklock.Client, path string) (names []string, err error) {
	q, err := operate.Inspect(ctx, client, path)
	if err != nil {
		return nil, err
	}
	for _, who := range q.Contenders {
		names = append(names, show.Ending(show.Base(who)))
	}
	return names, nil
}
