// SPDX-License-Identifier: Apache-2.0

// Package drawing examines the texts of an SVG drawing.
package drawing

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// A Text is a text of a drawing and the room that it takes up.
type Text struct {
	Text                     string
	Left, Right, Top, Bottom float64
}

// Overlaps reports whether some pixels belong to both texts.
func (t Text) Overlaps(other Text) bool {
	return t.Left < other.Right && other.Left < t.Right && t.Top < other.Bottom && other.Top < t.Bottom
}

// Texts returns the texts of a drawing. Each must state how wide it is in a wide font (data-width),
// because its real width depends on the reader's fonts.
func Texts(svg string) ([]Text, error) {
	var all []Text
	at := []offset{{}}
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		switch e := token.(type) {
		case xml.StartElement:
			at = append(at, at[len(at)-1].moved(e))
			if e.Name.Local == "text" {
				t, err := measured(e, at[len(at)-1])
				if err != nil {
					return nil, err
				}
				all = append(all, t)
			}
		case xml.CharData:
			if n := len(all); n > 0 && all[n-1].Text == "" {
				all[n-1].Text = string(e)
			}
		case xml.EndElement:
			at = at[:len(at)-1]
		}
	}
}

// Overlapping returns the pairs of texts that overlap.
func Overlapping(all []Text) (pairs []string) {
	for i, a := range all {
		for _, b := range all[i+1:] {
			if a.Overlaps(b) {
				pairs = append(pairs, fmt.Sprintf("%q and %q", a.Text, b.Text))
			}
		}
	}
	return pairs
}

// offset is where the drawing moves an element to.
type offset struct{ x, y float64 }

func (o offset) moved(e xml.StartElement) offset {
	var x, y float64
	if n, _ := fmt.Sscanf(attribute(e, "transform"), "translate(%g %g)", &x, &y); n == 2 {
		return offset{o.x + x, o.y + y}
	}
	return o
}

// measured returns the room of a text of 11 pixels. An anchor other than the start is an error.
func measured(e xml.StartElement, at offset) (Text, error) {
	width, err := strconv.ParseFloat(attribute(e, "data-width"), 64)
	if err != nil || attribute(e, "text-anchor") != "" {
		return Text{}, fmt.Errorf("a text at (%s, %s) has no data-width, or an anchor", attribute(e, "x"), attribute(e, "y"))
	}
	x, err := strconv.ParseFloat(attribute(e, "x"), 64)
	if err != nil {
		return Text{}, err
	}
	y, err := strconv.ParseFloat(attribute(e, "y"), 64)
	if err != nil {
		return Text{}, err
	}
	x, y = x+at.x, y+at.y
	return Text{Left: x, Right: x + width, Top: y - 9, Bottom: y + 3}, nil
}

func attribute(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}
