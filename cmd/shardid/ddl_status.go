// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/shardid/shardid/cmd/shardid/internal/term"
	"github.com/shardid/shardid/schema/versions"
)

// statusColumns is how many databases have a column of their own in status.
const statusColumns = 8

// statusTable has a line for each version. Where there are many databases, it has one for each
// state of a version instead, because the lines would be wider than a screen.
func statusTable(w io.Writer, m *versions.Matrix) *term.Table {
	if len(m.Databases) > statusColumns {
		return statesTable(w, m)
	}
	table := term.NewTable(term.StyleFor(w), append([]string{">VERSION", "FILE"}, m.Databases...)...)
	for i := range m.Lines {
		row := lineCells(&m.Lines[i])
		for _, db := range m.Databases {
			row = append(row, stateText(m, &m.Lines[i], db))
		}
		table.Row(row...)
	}
	return table
}

func statesTable(w io.Writer, m *versions.Matrix) *term.Table {
	table := term.NewTable(term.StyleFor(w), ">VERSION", "FILE", "STATE", ">DATABASES", "WHICH")
	for i := range m.Lines {
		var states []string
		in := map[string][]string{}
		for _, db := range m.Databases {
			text := stateText(m, &m.Lines[i], db)
			if in[text] == nil {
				states = append(states, text)
			}
			in[text] = append(in[text], db)
		}
		for _, text := range states {
			which := "all"
			if len(states) > 1 {
				which = some(in[text])
			}
			table.Row(append(lineCells(&m.Lines[i]), text, strconv.Itoa(len(in[text])), which)...)
		}
	}
	return table
}

// some are the first names of a list.
func some(names []string) string {
	const most = 5
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:most], ", ") + ", …"
}

func lineCells(line *versions.Line) []string {
	return []string{strconv.FormatInt(line.Version, 10), cmp.Or(line.File, "(no file)")}
}

// stateText is the state of a version in a database.
func stateText(m *versions.Matrix, line *versions.Line, db string) string {
	cell, asked := line.Cells[db]
	switch {
	case !asked && m.Unreachable[db] != "":
		return "unreachable"
	case !asked:
		return "–"
	case cell.State != versions.Applied && cell.State != versions.Pending && line.File != "":
		return fmt.Sprintf("%s %d/%d", cell.State, cell.Done, cell.Steps)
	}
	return string(cell.State)
}
