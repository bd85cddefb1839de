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
<rect class="holds" x="160" width="16" height="11" rx="2"/><text x="182" y="10" data-width="205">works (end of the token above)</text>
<rect class="cut" x="400" width="16" height="11" rx="2"/><text x="422" y="10" data-width="210">partitioned, still holds the lock</text>
<rect class="lost" y="20" width="16" height="11" rx="2"/><text x="22" y="30" data-width="148">knows its lock is lost</text>
<path class="next" transform="translate(168 0)" d="M0 22l-4 7h8z"/><text x="182" y="30" data-width="205">the next holder after a loss</text>
<rect class="dead" x="400" y="20" width="16" height="11" rx="2"/><text x="422" y="30" data-width="56">crashed</text>
<circle class="sold" cx="520" cy="26" r="3"/><text x="530" y="30" data-width="96">sells one item</text>
</g>
`

// variable and definition match the colors of the page's style. The first definition is that of the light theme.
var (
	variable   = regexp.MustCompile(`\.(\w+) \{ (fill|stroke): var\(--(\w+)\)`)
	definition = regexp.MustCompile(`--(\w+): (#\w+)`)
	classOf    = regexp.MustCompile(`class="(\w+)"`)
)

// withAttributes gives each element of a class the color of its style as an attribute as well, for programs that do not know the
// variables of CSS: they ignore such a style.
func withAttributes(style, elements string) string {
	colors := map[string]string{}
	for _, m := range definition.FindAllStringSubmatch(style, -1) {
		if colors[m[1]] == "" {
			colors[m[1]] = m[2]
		}
	}
	attributes := map[string]string{
		"axis": `stroke="` + colors["line"] + `"`, "lane": `stroke="` + colors["line"] + `"`, "ground": `fill="` + colors["ground"] + `"`,
		"token": `fill="` + colors["soft"] + `"`, "time": `fill="` + colors["soft"] + `"`, "explains": `fill="` + colors["dead"] + `" font-weight="600"`,
	}
	for _, m := range variable.FindAllStringSubmatch(style, -1) {
		attributes[m[1]] = m[2] + `="` + colors[m[3]] + `"`
	}
	attributes["dead"] += ` opacity=".25"`
	attributes["sold"] += ` stroke="` + colors["ink"] + `"`
	return classOf.ReplaceAllStringFunc(elements, func(class string) string {
		return class + " " + attributes[classOf.FindStringSubmatch(class)[1]]
	})
}

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
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%[1]d\" height=\"%[2]d\" viewBox=\"0 0 %[1]d %[2]d\" role=\"img\" font-family=\"sans-serif\" font-size=\"11\" fill=\"#1c2330\">\n", width, height+50)
	b.WriteString("<title>A sale of ten items to eight workers with zklock: one crashes, one is partitioned</title>\n<style>")
	b.WriteString(sizes.ReplaceAllString(style[1], ""))
	b.WriteString("  .ground { fill: var(--ground); }\n</style>\n")
	b.WriteString(withAttributes(style[1], `<rect class="ground" width="100%" height="100%"/>`+"\n"+first[3]+fmt.Sprintf(legend, height+8)))
	b.WriteString("</svg>\n")
	return b.String(), nil
}
