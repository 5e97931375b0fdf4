// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"html"
	"iter"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// chart is a picture of bars whose lengths are in proportion to their values.
type chart struct {
	file   string // of the pictures: bench-FILE-light.svg and bench-FILE-dark.svg
	title  string
	notes  []string // lines below the title: what is counted, and which way is better
	mark   float64  // the value of a line for comparison; 0 draws none
	groups []group
}

// group is some bars with a name above them, which may be empty.
type group struct {
	name string
	bars []bar
}

// bar is a value and the middle half of its rounds.
type bar struct {
	who              string
	ours             bool
	value, low, high float64
}

// colours of a picture, which has no background of its own.
type colours struct{ ink, faint, grid, ours, others string }

// themes are those of README's pictures.
var themes = map[string]colours{
	"light": {ink: "#1f2328", faint: "#57606a", grid: "#d0d7de", ours: "#0969da", others: "#afb8c1"},
	"dark":  {ink: "#e6edf3", faint: "#8b949e", grid: "#30363d", ours: "#58a6ff", others: "#6e7681"},
}

// Two pictures of this width fit side by side on GitHub's page, and one fills a phone's screen.
const chartWidth = 410

// Sizes in the units of the picture.
const (
	margin     = 4
	titleSize  = 15
	textSize   = 12
	smallSize  = 11
	lineHeight = 15
	barHeight  = 13
	barStep    = 19
	groupStep  = 8
	gap        = 6 // between a bar and the text beside it
)

// empty reports whether the chart has no measured bar.
func (c *chart) empty() bool { return len(c.groups) == 0 }

// add adds the bars that were measured, below a name.
func (c *chart) add(name string, bars ...bar) {
	bars = slices.DeleteFunc(bars, func(b bar) bool { return math.IsNaN(b.value) })
	if len(bars) > 0 {
		c.groups = append(c.groups, group{name, bars})
	}
}

// scale maps values to positions in a picture.
type scale struct {
	zero, perUnit float64 // the position of 0, and the length of 1
	step, end     float64 // of the axis
}

func (s scale) at(v float64) float64 { return s.zero + v*s.perUnit }

// scale leaves space for the longest name on the left, and for the longest value on the
// right of a bar that fills the axis.
func (c *chart) scale() scale {
	names, values, end := 0.0, 0.0, c.mark
	for _, g := range c.groups {
		for _, b := range g.bars {
			names = max(names, textWidth(b.who, textSize))
			values = max(values, textWidth(number(b.value), textSize))
			end = max(end, b.value, b.high)
		}
	}
	s := scale{zero: margin + names + gap, step: step(end)}
	s.end = s.step * math.Ceil(end/s.step)
	s.perUnit = (chartWidth - margin - values - gap - s.zero) / s.end
	return s
}

// step is the distance between an axis' numbers, of which there are three to seven.
func step(end float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(end)))
	for _, s := range []float64{power / 5, power / 2, power} {
		if end/s <= 6 {
			return s
		}
	}
	return 2 * power
}

// textWidth is at least the width of a text in the fonts of the pictures, of which DejaVu
// Sans, the usual one on Linux, is the widest.
func textWidth(text string, size float64) float64 {
	return .62 * size * float64(utf8.RuneCountInString(text))
}

// svg draws the chart.
func (c *chart) svg(in colours) string {
	d := &drawing{scale: c.scale(), y: margin + titleSize}
	d.text(margin, "title", c.title)
	for _, note := range c.notes {
		d.y += lineHeight
		d.text(margin, "note", note)
	}
	d.y += groupStep
	for _, g := range c.groups {
		d.group(g, c.mark)
	}
	d.numbers()
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %.0f" width="%[1]d" height="%.0[2]f" role="img" aria-labelledby="title">
<title id="title">%s</title>
`, chartWidth, d.y+3*margin, html.EscapeString(c.title)) + in.style() + d.out.String() + "</svg>\n"
}

func (in colours) style() string {
	return fmt.Sprintf(`<style>
text { font: %dpx -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: %s }
.title { font-size: %dpx; font-weight: 600 }
.group { font-weight: 600 }
.note, .axis { font-size: %dpx; fill: %s }
.who { text-anchor: end }
.axis { text-anchor: middle }
`, textSize, in.ink, titleSize, smallSize, in.faint) + fmt.Sprintf(`.grid { stroke: %s }
.mark { stroke: %s; stroke-dasharray: 3 2 }
.ours { fill: %s }
.others { fill: %s }
.half { stroke: %s }
</style>
`, in.grid, in.faint, in.ours, in.others, in.ink)
}

// drawing is the unfinished picture, down to y.
type drawing struct {
	scale

	out strings.Builder
	y   float64
}

func (d *drawing) text(x float64, class, text string) {
	fmt.Fprintf(&d.out, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">%s</text>\n", x, d.y, class, html.EscapeString(text))
}

func (d *drawing) group(g group, mark float64) {
	d.y += groupStep
	if g.name != "" {
		d.y += lineHeight
		d.text(margin, "group", g.name)
		d.y += gap
	}
	d.grid(barStep*float64(len(g.bars)), mark)
	for _, b := range g.bars {
		d.bar(b)
	}
}

// bar draws a name, the bar and its value; a line in it is the middle half of the rounds,
// unless these were all the same. Differences below zero, which noise may give, have no length.
func (d *drawing) bar(b bar) {
	class := "others"
	if b.ours {
		class = "ours"
	}
	length, low, high := max(b.value, 0), max(b.low, 0), max(b.high, 0)
	fmt.Fprintf(&d.out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.2f\" height=\"%d\" class=\"%s\"/>\n", d.zero, d.y, length*d.perUnit, barHeight, class)
	middle := d.y + barHeight/2.0
	if high > low {
		fmt.Fprintf(&d.out, "<path d=\"M%.1f %.1fH%.1f\" class=\"half\"/>\n", d.at(low), middle, d.at(high))
	}
	top := d.y
	d.y = middle + textSize*.35
	d.text(d.zero-gap, "who", b.who)
	d.text(d.at(max(length, high))+gap, "value", number(b.value))
	d.y = top + barStep
}

// grid draws the lines behind bars of some height together.
func (d *drawing) grid(height, mark float64) {
	line := func(v float64, class string) {
		fmt.Fprintf(&d.out, "<path d=\"M%.1f %.1fv%.1f\" class=\"%s\"/>\n", d.at(v), d.y-gap/2, height, class)
	}
	for v := range d.ticks() {
		if v != mark || v == 0 {
			line(v, "grid")
		}
	}
	if mark > 0 {
		line(mark, "mark")
	}
}

// numbers writes the numbers of the axis.
func (d *drawing) numbers() {
	d.y += smallSize
	for v := range d.ticks() {
		d.text(d.at(v), "axis", fmt.Sprintf("%.4g", v))
	}
}

// ticks are the values at which the axis has a line and a number.
func (s scale) ticks() iter.Seq[float64] {
	return func(yield func(float64) bool) {
		for i := 0.0; i*s.step <= s.end+s.step/2; i++ {
			if !yield(i * s.step) {
				return
			}
		}
	}
}
