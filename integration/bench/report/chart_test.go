// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/xml"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

var update = flag.Bool("update", false, "write testdata anew")

// node is an element of a picture.
type node struct {
	XMLName xml.Name
	Class   string  `xml:"class,attr"`
	X       float64 `xml:"x,attr"`
	Y       float64 `xml:"y,attr"`
	Width   float64 `xml:"width,attr"`
	Height  float64 `xml:"height,attr"`
	Text    string  `xml:",chardata"`
	Nodes   []node  `xml:",any"`
}

func drawn(t *testing.T, c *chart) node {
	t.Helper()
	var svg node
	if err := xml.Unmarshal([]byte(c.svg(themes["light"])), &svg); err != nil {
		t.Fatal(err)
	}
	return svg
}

// of returns the elements of some classes.
func (n node) of(classes ...string) (all []node) {
	for _, child := range n.Nodes {
		for _, class := range classes {
			if child.Class == class {
				all = append(all, child)
			}
		}
	}
	return all
}

// some is a chart with values of all sizes, and names of all lengths.
func some() *chart {
	c := &chart{file: "some", title: "How much is <some> & more?", notes: []string{"Shorter is better."}, mark: 1}
	c.add("INSERT & SELECT", bar{who: shardid, ours: true, value: 1.25, low: 1, high: 1.5}, bar{who: peer, value: 5})
	c.add("nothing that was measured", bar{who: shardid, value: math.NaN()})
	c.add("", bar{who: "a", value: .01})
	return c
}

func TestBarsAreAsLongAsTheirValues(t *testing.T) {
	bars := drawn(t, some()).of("ours", "others")
	if len(bars) != 3 {
		t.Fatalf("%d bars: %+v", len(bars), bars)
	}
	unit := bars[1].Width / 5
	for i, want := range []float64{1.25, 5, .01} {
		if got := bars[i].Width / unit; math.Abs(got-want) > .01 {
			t.Errorf("bar %d is %.3f long, not %v", i, got, want)
		}
		if bars[i].X != bars[0].X {
			t.Errorf("bar %d begins at %v, not at %v", i, bars[i].X, bars[0].X)
		}
	}
}

func TestADifferenceBelowZeroHasNoLength(t *testing.T) {
	c := &chart{}
	c.add("", bar{who: "a", value: 2}, bar{who: "b", value: -.5, low: -1, high: -.1})
	svg := drawn(t, c)
	if b := svg.of("others")[1]; b.Width != 0 || len(svg.of("half")) != 0 || svg.of("value")[1].Text != "-0.50" {
		t.Errorf("%+v, %+v", b, svg.of("half", "value"))
	}
}

func TestTheAxisBeginsAtZeroAndItsNumbersStandWhereTheyAre(t *testing.T) {
	for _, end := range []float64{.004, .9, 1, 1.53, 3.74, 5.88, 6, 7, 49, 219, 264, 1001} {
		c := &chart{}
		c.add("", bar{who: "a", value: end})
		svg := drawn(t, c)
		axis, b := svg.of("axis"), svg.of("others")[0]
		if len(axis) < 3 || len(axis) > 8 {
			t.Errorf("an axis to %v has %d numbers", end, len(axis))
		}
		if axis[0].Text != "0" || math.Abs(axis[0].X-b.X) > .1 {
			t.Errorf("an axis to %v begins with %s at %v, its bars at %v", end, axis[0].Text, axis[0].X, b.X)
		}
		if last := axis[len(axis)-1]; last.X < b.X+b.Width-.1 {
			t.Errorf("an axis to %v ends at %s", end, last.Text)
		}
	}
}

func TestTextFitsIntoThePictures(t *testing.T) {
	charts := append(whole(t).lead(), some())
	for _, c := range charts {
		svg := drawn(t, c)
		if svg.Width != chartWidth {
			t.Errorf("%s is %v wide", c.file, svg.Width)
		}
		zero := svg.of("ours", "others")[0].X
		for _, text := range svg.of("title", "note", "group", "who", "value", "axis") {
			// Sentences may be in a narrower measure: DejaVu Sans takes this for a mix of letters.
			average := map[string]float64{"title": .61 * titleSize, "group": .62 * textSize, "note": .55 * smallSize, "axis": .62 * smallSize}[text.Class]
			if average == 0 {
				average = .62 * textSize
			}
			width := average * float64(utf8.RuneCountInString(text.Text))
			left, limit := text.X, float64(chartWidth)
			switch text.Class {
			case "who":
				left, limit = text.X-width, zero
			case "axis":
				left = text.X - width/2
			}
			if left < 0 || left+width > limit || text.Y > svg.Height {
				t.Errorf("%s: %q needs %.0f to %.0f of %.0f, at %v of %v", c.file, text.Text, left, left+width, limit, text.Y, svg.Height)
			}
		}
	}
}

func TestNoTwoTextsOfAChartAreOnEachOther(t *testing.T) {
	for _, c := range append(whole(t).lead(), some()) {
		last := 0.0
		for _, text := range drawn(t, c).of("title", "note", "group", "who", "axis") {
			if text.Y-last < smallSize && text.Class != "axis" {
				t.Errorf("%s: %q is at %v, what is above it at %v", c.file, text.Text, text.Y, last)
			}
			last = text.Y
		}
	}
}

// whole are the results of a small run in which everything ran that the charts show.
func whole(t *testing.T) *results {
	t.Helper()
	in, err := os.Open(filepath.Join("testdata", "bench.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	r, err := parse(in)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestTheChartsAreThoseOfTestdata(t *testing.T) {
	dir := t.TempDir()
	if *update {
		dir = "testdata"
	}
	r := whole(t)
	if err := r.writeCharts(dir); err != nil {
		t.Fatal(err)
	}
	charts := r.lead()
	if len(charts) != 4 {
		t.Errorf("%d charts", len(charts))
	}
	for _, c := range charts {
		for theme := range themes {
			got, want := file(t, dir, c.fileIn(theme)), file(t, "testdata", c.fileIn(theme))
			if got != want {
				t.Errorf("%s is another one; look at it, and run: go test ./bench/report -update\n%s", c.fileIn(theme), got)
			}
		}
	}
}

func file(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestThePageBeginsWithTheChartsAndNoGoal(t *testing.T) {
	var out bytes.Buffer
	p := &page{out: &out, results: whole(t), cores: 2}
	if err := p.write(); err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(out.String(), "\n## ")
	for _, want := range []string{
		`srcset="docs/images/bench-statements-dark.svg"`, `src="docs/images/bench-ids-light.svg"`,
		"INSERT of 1000 rows into their shard: shardid 1.10, go-gorm/sharding 1.50;",
		"GORM: create of a row: shardid 1.20, go-gorm/sharding 4.50;",
		"copy 200, copy and compare 125;",
		"1 goroutine: segment 200, snowflake 40, bwmarrin/snowflake 25;",
		"follows 40,000 changes a second, and its switch locked\nthe tables for 25 ms",
	} {
		if !strings.Contains(first, want) {
			t.Errorf("no %q in\n%s", want, first)
		}
	}
	for _, no := range []string{"**no**", "reached", "NaN", "–"} {
		if strings.Contains(first, no) {
			t.Errorf("%q is in\n%s", no, first)
		}
	}
}

func TestWhatWasNotMeasuredHasNoChart(t *testing.T) {
	r, err := parse(strings.NewReader("BenchmarkNext/segment/goroutines=1-2 1 5.0 ns/op\n"))
	if err != nil {
		t.Fatal(err)
	}
	charts := r.lead()
	if len(charts) != 1 || charts[0].file != "ids" || len(charts[0].groups) != 1 {
		t.Errorf("%+v", charts)
	}
}
