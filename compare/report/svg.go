// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"html"
	"math"
	"strings"
	"unicode/utf8"
)

// The pictures are SVG, with colors that can be read on light and dark pages.

const (
	rowHeight = 22
	labelWide = 130
	fontStack = "font-family='ui-sans-serif,system-ui,sans-serif'"
)

var familyColor = map[string]string{
	"PostgreSQL": "#3b76b5", "memcached": "#7b8b4f", "Redis": "#c4473d", "Redlock": "#e08a3c",
	"etcd": "#2a9d8f", "ZooKeeper": "#8d6cab",
}

// drawing collects the elements of one picture.
type drawing struct {
	width, height int
	out           strings.Builder
}

func newDrawing(width, height int, title string) *drawing {
	d := &drawing{width: width, height: height}
	d.text(12, 22, title, "font-size='15' font-weight='600'")
	return d
}

func (d *drawing) text(x, y float64, text, style string) {
	fmt.Fprintf(&d.out, "<text x='%.1f' y='%.1f' %s>%s</text>\n", x, y, style, html.EscapeString(text))
}

func (d *drawing) rect(x, y, w, h float64, style string) {
	fmt.Fprintf(&d.out, "<rect x='%.1f' y='%.1f' width='%.1f' height='%.1f' %s/>\n", x, y, max(w, 0), h, style)
}

func (d *drawing) line(x1, y1, x2, y2 float64, style string) {
	fmt.Fprintf(&d.out, "<line x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f' %s/>\n", x1, y1, x2, y2, style)
}

func (d *drawing) svg() string {
	return fmt.Sprintf("<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %d %d' width='%d' height='%d' %s font-size='12' fill='#222'>\n"+
		"<rect width='100%%' height='100%%' fill='#fdfdfb'/>\n%s</svg>\n", d.width, d.height, d.width, d.height, fontStack, d.out.String())
}

// bar is the figure of one way in a bar chart.
type bar struct {
	label, color string
	value        spread
	note         string // shown instead of the bar if there is no value
	strong       bool
}

// barChart draws bars on a logarithmic scale. Each has a whisker from the lowest round to the highest.
func barChart(title, unit string, bars []bar) string {
	low, high := math.Inf(1), 0.0
	for _, b := range bars {
		if b.value.n > 0 && b.value.low > 0 {
			low, high = min(low, b.value.low), max(high, b.value.high)
		}
	}
	if high == 0 {
		low, high = 1, 10
	}
	from, to := math.Floor(math.Log10(low)), math.Ceil(math.Log10(high))
	if from == to {
		to++
	}
	const width, right, top = 760, 90, 40
	scale := func(v float64) float64 {
		return labelWide + (math.Log10(max(v, math.Pow(10, from)))-from)/(to-from)*(width-labelWide-right)
	}
	d := newDrawing(width, top+len(bars)*rowHeight+36, title)
	bottom := float64(top + len(bars)*rowHeight)
	for e := from; e <= to; e++ {
		x := scale(math.Pow(10, e))
		d.line(x, top, x, bottom, "stroke='#ddd'")
		d.text(x, bottom+16, number(math.Pow(10, e)), "text-anchor='middle' fill='#666'")
	}
	d.text(width-right, bottom+31, unit+", logarithmic", "text-anchor='end' fill='#666'")
	for i, b := range bars {
		y := float64(top + i*rowHeight)
		weight := ""
		if b.strong {
			weight = "font-weight='700'"
		}
		d.text(labelWide-8, y+15, b.label, "text-anchor='end' "+weight)
		if b.value.n == 0 {
			d.text(labelWide+4, y+15, b.note, "fill='#888'")
			continue
		}
		end := scale(b.value.median)
		d.rect(labelWide, y+4, end-labelWide, rowHeight-8, "fill='"+b.color+"' rx='2'")
		mid := y + rowHeight/2
		d.line(scale(b.value.low), mid, scale(b.value.high), mid, "stroke='#222' stroke-width='1.5'")
		d.text(max(end, scale(b.value.high))+6, y+15, number(b.value.median), weight)
	}
	return d.svg()
}

// tile is one cell of a tile chart.
type tile struct {
	text  string
	color string
}

// tileChart draws a table of colored cells, with a row for each way.
func tileChart(title string, columns []string, rows []string, strong string, tiles [][]tile, legend string) string {
	const top = 62
	cellWide := 96
	for _, row := range tiles {
		for _, t := range row {
			cellWide = max(cellWide, 16+7*utf8.RuneCountInString(t.text))
		}
	}
	width := max(labelWide+len(columns)*cellWide+16, 560, 24+len(title)*9, 24+len(legend)*7)
	d := newDrawing(width, top+len(rows)*rowHeight+30, title)
	for c, name := range columns {
		for i, part := range strings.Split(name, "\n") {
			d.text(float64(labelWide+c*cellWide+cellWide/2), float64(40+i*14), part, "text-anchor='middle' fill='#444'")
		}
	}
	for r, name := range rows {
		y := float64(top + r*rowHeight)
		weight := ""
		if name == strong {
			weight = "font-weight='700'"
		}
		d.text(labelWide-8, y+15, name, "text-anchor='end' "+weight)
		for c, t := range tiles[r] {
			x := float64(labelWide + c*cellWide)
			d.rect(x+1, y+1, float64(cellWide-2), rowHeight-2, "fill='"+t.color+"' rx='2'")
			d.text(x+float64(cellWide)/2, y+15, t.text, "text-anchor='middle' "+weight)
		}
	}
	d.text(12, float64(top+len(rows)*rowHeight+20), legend, "fill='#666'")
	return d.svg()
}

// shade returns the color of a value on a logarithmic scale from best (light green) to worst (red).
func shade(v, best, worst float64) string {
	if v <= 0 || best <= 0 || worst <= 0 || best == worst {
		return "#eee"
	}
	at := (math.Log(v) - math.Log(best)) / (math.Log(worst) - math.Log(best))
	at = min(max(at, 0), 1)
	stops := [][3]float64{{190, 226, 188}, {250, 240, 190}, {238, 158, 140}}
	i, part := 0, at*2
	if at > 0.5 {
		i, part = 1, at*2-1
	}
	var rgb [3]int
	for k := range rgb {
		rgb[k] = int(stops[i][k] + (stops[i+1][k]-stops[i][k])*part)
	}
	return fmt.Sprintf("#%02x%02x%02x", rgb[0], rgb[1], rgb[2])
}

// series is one line of a line chart.
type series struct {
	label, color, dash string
	points             []spread
}

// panel is one of several line charts that share their axes.
type panel struct {
	title string
	lines []series
}

// linePanels draws small line charts next to each other. Both axes are logarithmic, and each line's name is at its end.
func linePanels(title, xUnit, yUnit string, xs []int, panels []panel) string {
	const wide, high, left, top, nameWide = 215, 260, 52, 70, 100
	low, highest := math.Inf(1), 0.0
	for _, p := range panels {
		for _, l := range p.lines {
			for _, v := range l.points {
				if v.n > 0 && v.median > 0 {
					low, highest = min(low, v.median), max(highest, v.median)
				}
			}
		}
	}
	if highest == 0 {
		low, highest = 1, 10
	}
	from, to := math.Floor(math.Log10(low)), math.Ceil(math.Log10(highest))
	if from == to {
		to++
	}
	columns := min(len(panels), 2)
	rows := (len(panels) + columns - 1) / columns
	d := newDrawing(left+columns*(wide+nameWide+left), top+rows*(high+60), title)
	d.text(12, 42, yUnit+" (vertical) by "+xUnit+" (horizontal), both logarithmic; a line ends where nothing was granted in the window", "fill='#666'")
	firstX, lastX := math.Log10(float64(xs[0])), math.Log10(float64(xs[len(xs)-1]))
	for i, p := range panels {
		x0, y0 := float64(left+(i%columns)*(wide+nameWide+left)), float64(top+(i/columns)*(high+60))
		px := func(x int) float64 {
			if firstX == lastX {
				return x0 + wide/2
			}
			return x0 + (math.Log10(float64(x))-firstX)/(lastX-firstX)*wide
		}
		py := func(v float64) float64 { return y0 + high - (math.Log10(v)-from)/(to-from)*high }
		d.text(x0, y0-8, p.title, "font-weight='600'")
		for e := from; e <= to; e++ {
			d.line(x0, py(math.Pow(10, e)), x0+wide, py(math.Pow(10, e)), "stroke='#ddd'")
			d.text(x0-6, py(math.Pow(10, e))+4, number(math.Pow(10, e)), "text-anchor='end' fill='#666'")
		}
		for _, x := range xs {
			d.text(px(x), y0+high+18, fmt.Sprint(x), "text-anchor='middle' fill='#666'")
		}
		d.lines(p.lines, xs, px, py)
	}
	return d.svg()
}

func (d *drawing) lines(lines []series, xs []int, px func(int) float64, py func(float64) float64) {
	taken := []float64{}
	for _, l := range lines {
		var path []string
		var endX, endY float64
		for i, v := range l.points {
			if v.n == 0 || v.median <= 0 {
				continue
			}
			endX, endY = px(xs[i]), py(v.median)
			path = append(path, fmt.Sprintf("%.1f,%.1f", endX, endY))
			fmt.Fprintf(&d.out, "<circle cx='%.1f' cy='%.1f' r='3' fill='%s'/>\n", endX, endY, l.color)
		}
		if len(path) == 0 {
			continue
		}
		fmt.Fprintf(&d.out, "<polyline points='%s' fill='none' stroke='%s' stroke-width='2' %s/>\n", strings.Join(path, " "), l.color, l.dash)
		// Move the name down until it does not overlap another one.
		y := endY + 4
		for moved := true; moved; {
			moved = false
			for _, t := range taken {
				if math.Abs(t-y) < 13 {
					y, moved = t+13, true
				}
			}
		}
		taken = append(taken, y)
		d.text(endX+8, y, l.label, "fill='"+l.color+"'")
	}
}

// number formats a figure with three significant digits and no exponent.
func number(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v >= 1000:
		scale := math.Pow(10, math.Floor(math.Log10(v))-2)
		return thousands(int(math.Round(v/scale) * scale))
	case v >= 99.5:
		return fmt.Sprintf("%.0f", v)
	case v >= 9.95:
		return trim(fmt.Sprintf("%.1f", v))
	case v >= 0.995:
		return trim(fmt.Sprintf("%.2f", v))
	default:
		digits := 2 - int(math.Floor(math.Log10(v)))
		return trim(fmt.Sprintf("%.*f", digits, v))
	}
}

func trim(text string) string { return strings.TrimSuffix(strings.TrimRight(text, "0"), ".") }

func thousands(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
