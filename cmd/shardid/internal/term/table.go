// SPDX-License-Identifier: Apache-2.0

package term

import (
	"strings"
	"unicode/utf8"
)

// Table collects rows and shows them in aligned columns.
type Table struct {
	style Style
	right []bool
	rows  [][]string
}

// NewTable returns a table with these headings. A heading that starts with ">" aligns its
// column to the right.
func NewTable(style Style, headings ...string) *Table {
	t := &Table{style: style}
	row := make([]string, len(headings))
	for i, h := range headings {
		text, right := strings.CutPrefix(h, ">")
		row[i] = text
		t.right = append(t.right, right)
	}
	t.rows = append(t.rows, row)
	return t
}

// Row adds a row.
func (t *Table) Row(cells ...string) { t.rows = append(t.rows, cells) }

// String returns the headings and the rows.
func (t *Table) String() string {
	widths := t.widths()
	var b strings.Builder
	for i, row := range t.rows {
		line := t.line(row, widths)
		if i == 0 {
			line = t.style.Dim(line)
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

func (t *Table) widths() []int {
	widths := make([]int, len(t.right))
	for _, row := range t.rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	return widths
}

func (t *Table) line(row []string, widths []int) string {
	var b strings.Builder
	for i, cell := range row {
		pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
		if t.right[i] {
			cell, pad = pad+cell, ""
		}
		b.WriteString(cell + pad + "  ")
	}
	return strings.TrimRight(b.String(), " ")
}
