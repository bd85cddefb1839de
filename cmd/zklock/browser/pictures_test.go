// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/cmd/zklock/internal/fleet"
	"github.com/zklock-go/zklock/cmd/zklock/internal/web"
)

// picture writes what the page looks like.
func (p *tab) picture(name string) {
	data, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	require.NoError(p.t, err)
	require.NoError(p.t, os.WriteFile(filepath.Join(*pictures, name), data, 0o644))
}

// TestPictures draws the documents' pictures. It asserts little, so it only runs when they are asked for.
func TestPictures(t *testing.T) {
	if *pictures == "" {
		t.Skip("draws pictures: only with -pictures DIRECTORY")
	}
	s := openShop(t, false)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	worked := make(chan error, 1)
	// Owned by the test, which waits; ends with ctx.
	go func() {
		worked <- fleet.Run(ctx, "/shop", func(ctx context.Context, label string) (*zklock.Client, error) {
			return connect(ctx, s.Server, label)
		})
	}()
	wide, phone := open(t, 1100, 700, s.link), open(t, 390, 700, s.link)
	time.Sleep(25 * time.Second) // so that there is something to see
	wide.until(`document.querySelector(".cycles section") !== null`)
	wide.picture("web.png")
	phone.press("t")
	for _, p := range []*tab{wide, phone} {
		p.do(chromedp.Navigate(s.link + "#/shop/orders/checkout"))
		p.until(`document.querySelectorAll(".card").length > 3`)
	}
	time.Sleep(2 * time.Second) // cards glide
	wide.picture("web-lock.png")
	phone.picture("web-phone.png")
	require.NoError(t, os.WriteFile(filepath.Join(*pictures, "web.sha256"), []byte(web.Hash()+"\n"), 0o644))
	end()
	require.NoError(t, <-worked)
}
