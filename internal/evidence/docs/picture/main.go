// SPDX-License-Identifier: Apache-2.0

// Command picture draws docs/demo.svg, the README's picture of "zklock demo": it runs the
// demo and takes the timeline of the sale with a lock out of the page that the demo writes.
package main

import (
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: go run ./internal/evidence/docs/picture docs/demo.svg")
	}
	if err := run(os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func run(to string) error {
	dir, err := os.MkdirTemp("", "picture")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "demo.html")
	demo := exec.Command("go", "run", "./cmd/zklock", "demo", "--html", file)
	demo.Stderr = os.Stderr
	if err := demo.Run(); err != nil {
		return fmt.Errorf("zklock demo: %w", err)
	}
	page, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	picture, err := draw(string(page))
	if err != nil {
		return err
	}
	return os.WriteFile(to, []byte(picture), 0o644)
}

var (
	stylesheet = regexp.MustCompile(`(?s)<style>(.*?)</style>`)
	timeline   = regexp.MustCompile(`(?s)<svg viewBox="0 0 (\d+) (\d+)"[^>]*>\n(.*?)</svg>`)
)

// sizes are the page's, which a picture does not have.
var sizes = regexp.MustCompile(`width: 100%; min-width: \d+px; height: auto; `)

// legend explains the colors, which the page does in HTML. The texts state their widths, as those of
// the page's drawing do.
const legend = `<g transform="translate(84 %d)">
<rect class="waits" width="16" height="11" rx="2"/><text x="22" y="10" data-width="124">waits for the lock</text>
<rect class="holds" x="150" width="16" height="11" rx="2"/><text x="172" y="10" data-width="140">works (token above)</text>
<rect class="cut" x="344" width="16" height="11" rx="2"/><text x="366" y="10" data-width="182">cut off, still holds the lock</text>
<rect class="lost" x="564" width="16" height="11" rx="2"/><text x="586" y="10" data-width="148">knows its lock is lost</text>
<rect class="dead" x="752" width="16" height="11" rx="2"/><text x="774" y="10" data-width="56">crashed</text>
<circle class="sold" cx="852" cy="6" r="3"/><text x="862" y="10" data-width="96">sells one item</text>
</g>
`

// draw returns the page's first timeline, that of the sale with a lock, as a picture that
// needs nothing else.
func draw(page string) (string, error) {
	style := stylesheet.FindStringSubmatch(page)
	first := timeline.FindStringSubmatch(page)
	if style == nil || first == nil {
		return "", errors.New("the demo's page has no timeline")
	}
	var width, height int
	fmt.Sscan(first[1]+" "+first[2], &width, &height)
	var b strings.Builder
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%[1]d\" height=\"%[2]d\" viewBox=\"0 0 %[1]d %[2]d\" role=\"img\">\n", width, height+30)
	b.WriteString("<title>A sale of ten items to eight workers with zklock: one crashes, one is cut off</title>\n<style>")
	b.WriteString(sizes.ReplaceAllString(style[1], ""))
	b.WriteString("</style>\n<rect width=\"100%\" height=\"100%\" style=\"fill: var(--ground)\"/>\n")
	b.WriteString(first[3])
	fmt.Fprintf(&b, legend, height+8)
	b.WriteString("</svg>\n")
	return b.String(), nil
}
