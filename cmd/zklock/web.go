package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/cmd/zklock/internal/web"
)

const webAbout = `
Shows the locks at PATH and below it (default: all) in a browser, live: the busiest
first, and of each the holders, the queue, and a timeline since zklock began to look. All
pages share one watch. While nothing changes, ZooKeeper is only asked, once in a session
timeout, whether each directory is still as it was seen.

It changes nothing, unless --allow-changes is given. Then holders can be asked to let go,
and contenders evicted, by those who have the whole link that zklock prints.

There is no login: who reaches the address sees all that --auth lets zklock see. So it
listens on this machine alone, unless --listen says more.`

// localPage is where the page is, unless it is told.
const localPage = "127.0.0.1:8126"

// webSession is the session timeout that the page asks for: it holds nothing, and how often it asks depends on that.
const webSession = 30 * time.Second

// pageFlags say where the page is, and what may be done there.
type pageFlags struct {
	listen    string
	cert, key string
	changes   bool
}

func (p *pageFlags) flags(f *flags) {
	f.StringVar(&p.listen, "listen", localPage, "`address` of the page")
	f.StringVar(&p.cert, "https-cert", "", "`file` with the page's certificate: it is served by https then")
	f.StringVar(&p.key, "https-key", "", "`file` with its key")
	f.BoolVar(&p.changes, "allow-changes", false, "let those who have the printed link ask holders to let go, and evict contenders")
}

// beside adds the flags of commands that do something else and show the page beside it.
func (p *pageFlags) beside(f *flags, text string) (wanted *bool) {
	f.StringVar(&p.listen, "web-listen", localPage, "`address` of the page that --web shows")
	return f.Bool("web", false, text)
}

// open begins to listen.
func (p *pageFlags) open(std streams, path string) (*web.Server, error) {
	opts := web.Options{Path: path, Listen: p.listen, AllowChanges: p.changes, Log: func(line string) { fmt.Fprintln(std.err, "zklock: "+line) }}
	if p.cert != "" || p.key != "" {
		pair, err := tls.LoadX509KeyPair(p.cert, p.key)
		if err != nil {
			return nil, misuse("--https-cert and --https-key: %w", err)
		}
		opts.Certificate = &pair
	}
	return web.Listen(opts)
}

func webCommand(std streams) *command {
	f := newFlags(std, "web", "[flags] [PATH]", webAbout)
	server := f.server().security(f)
	var p pageFlags
	p.flags(f)
	return &command{f, func(args []string) error {
		positional, err := f.parse(args, 0, 1)
		if err != nil {
			return err
		}
		path := "/"
		if len(positional) == 1 {
			path = positional[0]
		}
		page, err := p.open(std, path)
		if err != nil {
			return err
		}
		defer page.Close()
		server.connected, server.session = page.SetConnected, webSession
		return server.use(func(ctx context.Context, client *zklock.Client) error {
			return show(ctx, std, page, client)
		})
	}}
}

// show serves a page until ctx ends.
func show(ctx context.Context, std streams, page *web.Server, client *zklock.Client) error {
	if err := announce(std, page); err != nil {
		return err
	}
	return serverError(page.Serve(ctx, client))
}

// announce prints where the page is.
func announce(std streams, page *web.Server) error {
	if !page.IsLocal() {
		fmt.Fprintln(std.err, "zklock: whoever reaches this address sees the locks: there is no login")
	}
	_, err := fmt.Fprintf(std.out, "zklock: look at your locks: %s\n", page.Link())
	return err
}
