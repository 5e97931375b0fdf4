// SPDX-License-Identifier: Apache-2.0

package term

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"
)

func TestTableAlignsByCharactersNotBytes(t *testing.T) {
	table := NewTable(Style{}, "NAME", ">ROWS", "NOTE")
	table.Row("größer", "1", "a")
	table.Row("x", "1,000", "")
	want := "NAME     ROWS  NOTE\n" +
		"größer      1  a\n" +
		"x       1,000\n"
	if got := table.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestNumberGroupsDigits(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 123456: "123,456", 1234567: "1,234,567", -1: "-1", -123: "-123", -1000: "-1,000", -123456: "-123,456"} {
		if got := Number(n); got != want {
			t.Errorf("Number(%d) = %q, want %q", n, got, want)
		}
	}
	if Count(1, "row") != "1 row" || Count(1000, "row") != "1,000 rows" || Count(0, "row") != "0 rows" {
		t.Error(Count(1, "row"), Count(1000, "row"))
	}
}

func TestProgressIsPlainLinesWithoutATerminal(t *testing.T) {
	var b bytes.Buffer
	p := NewProgress(&b)
	p.Begin("copy", 10)
	p.Add(5)
	p.Add(5)
	p.End("10 rows")
	p.Begin("verify", 0)
	p.Abort("rest")
	lines := strings.Split(b.String(), "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[0], "  copy  ") || !strings.HasSuffix(lines[0], " s  10 rows") || lines[1] != "  rest" || strings.ContainsAny(b.String(), "\r\x1b") {
		t.Errorf("%q", b.String())
	}
}

func TestProgressMovesOnATerminalAndLeavesTheResult(t *testing.T) {
	var b bytes.Buffer
	p := &Progress{w: &b, moves: true}
	p.Begin("copy", 200)
	b.Reset()
	p.drawn = p.drawn.Add(-redraw)
	p.Add(50)
	if got := b.String(); !strings.HasPrefix(got, "\r  copy ") || !strings.Contains(got, "━━━━────────────  25 %  50 of 200") || strings.Contains(got, "\n") {
		t.Errorf("%q", got)
	}
	b.Reset()
	p.Add(1)
	if b.Len() != 0 {
		t.Errorf("drawn again at once: %q", b.String())
	}
	p.End("done")
	if got := b.String(); !strings.HasPrefix(got, "\r\x1b[K  copy") || !strings.HasSuffix(got, "done\n") {
		t.Errorf("%q", got)
	}
}

func TestALongPhaseSaysEveryTenSecondsHowLongItStillTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		p := NewProgress(&b)
		p.Begin("compare", 100)
		for range 100 {
			time.Sleep(time.Second)
			p.Add(1)
		}
		lines := strings.Split(b.String(), "\n")
		if len(lines) != 11 || lines[0] != "  compare     10 %  10 of 100, about 1m30s left" {
			t.Errorf("%d lines: %q", len(lines), lines)
		}
	})
}

func TestWorkOfMoreThanFiveSecondsSaysHowLongItStillTakes(t *testing.T) {
	for _, c := range []struct {
		done, total int64
		since       time.Duration
		want        string
	}{
		{0, 200, time.Minute, ""},
		{50, 0, time.Minute, ""},
		{50, 200, 4 * time.Second, ""},
		{50, 200, 10 * time.Second, ", about 30s left"},
		{199, 200, time.Hour, ", about 18s left"},
		{250, 200, time.Hour, ""},
	} {
		if got := Left(c.done, c.total, c.since); got != c.want {
			t.Errorf("%d of %d after %s: %q, not %q", c.done, c.total, c.since, got, c.want)
		}
	}
}

func TestALineOfProgressFitsIntoEightyColumns(t *testing.T) {
	var b bytes.Buffer
	p := &Progress{w: &b, moves: true}
	p.Begin("finalize", 10_000_000)
	p.start = p.start.Add(-time.Minute)
	p.drawn = p.drawn.Add(-redraw)
	b.Reset()
	p.Add(11_000_000) // of estimates the rest may be more than was thought
	p.drawn = p.drawn.Add(-redraw)
	p.Add(-1_100_000)
	for line := range strings.SplitSeq(strings.ReplaceAll(b.String(), "\x1b[K", ""), "\r") {
		if n := utf8.RuneCountInString(line); n > 80 {
			t.Errorf("%d columns: %q", n, line)
		}
	}
	if got := b.String(); !strings.Contains(got, "100 %") || strings.Contains(got, "110 %") || !strings.Contains(got, "99 %  9,900,000 of 10,000,000, about 1s left") {
		t.Errorf("%q", got)
	}
	b.Reset()
	p.End("305,234 rows, some of them new, into 2 databases × 4 tables by orders.id; 12,842 rows changed meanwhile")
	lines := strings.Split(strings.TrimSuffix(strings.ReplaceAll(b.String(), "\r\x1b[K", ""), "\n"), "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[1], strings.Repeat(" ", 23)) {
		t.Errorf("%q", lines)
	}
	for _, line := range lines {
		if n := utf8.RuneCountInString(line); n > 80 {
			t.Errorf("%d columns: %q", n, line)
		}
	}
}

func TestOnlyATerminalIsStyled(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = null.Close() }()
	for _, w := range []io.Writer{null, &bytes.Buffer{}} { // the first is a device, too
		if IsTerminal(w) || StyleFor(w) != (Style{}) {
			t.Errorf("%T counts as a terminal", w)
		}
	}
	if got := (Style{}).Red("x"); got != "x" {
		t.Errorf("%q", got)
	}
	if got := (Style{on: true}).Bold("x"); got != "\x1b[1mx\x1b[0m" {
		t.Errorf("%q", got)
	}
}
