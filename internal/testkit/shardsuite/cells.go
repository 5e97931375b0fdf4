// SPDX-License-Identifier: Apache-2.0

package shardsuite

import (
	"slices"
	"testing"

	"github.com/shardid/shardid/sharding"
)

// Cell is a cell of the table: the name of its row, and its column.
type Cell struct {
	Statement string
	Column    Column
}

// Column is a column of the table.
type Column string

// The columns.
const (
	One       Column = "key = one slot"
	Many      Column = "IN, OR = m slots"
	None      Column = "no key"
	Broadcast Column = "broadcast table"
	Raw       Column = "raw, Exec"
)

// test is the test of one cell. It opens the shops that it needs.
type test func(t *testing.T, d Databases)

// Run runs the tests of all cells, and the test of equivalence.
func Run(t *testing.T, d Databases) {
	t.Run("LikeWholeTablesOrRefused", func(t *testing.T) { equivalence(t, d) })
	for _, cell := range Cells() {
		t.Run(cell.Statement+"/"+string(cell.Column), func(t *testing.T) { tests()[cell](t, d) })
	}
}

// Cells returns the cells that have a test.
func Cells() []Cell {
	var cells []Cell
	for cell := range tests() {
		cells = append(cells, cell)
	}
	slices.SortFunc(cells, func(a, b Cell) int {
		if a.Statement != b.Statement {
			return compare(a.Statement, b.Statement)
		}
		return compare(string(a.Column), string(b.Column))
	})
	return cells
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// usual uses a shop with the defaults.
func usual(do func(s *shop)) test {
	return func(t *testing.T, d Databases) { do(open(t, d, sharding.Refuse)) }
}

// allowing uses a shop whose reads may go to all shards, and one whose reads may not.
func allowing(refused, allowed func(s *shop)) test {
	return func(t *testing.T, d Databases) {
		refused(open(t, d, sharding.Refuse))
		allowed(open(t, d, sharding.FanOutReads))
	}
}

// spanning uses a shop with the defaults, and one whose transactions may span databases.
func spanning(refused, allowed func(s *shop)) test {
	return func(t *testing.T, d Databases) {
		refused(open(t, d, sharding.Refuse))
		allowed(open(t, d, sharding.Refuse, sharding.Transactions(sharding.BestEffort)))
	}
}

func tests() map[Cell]test {
	all := map[Cell]test{}
	for name, row := range map[string]map[Column]test{
		"SELECT rows":           selects(),
		"COUNT SUM MIN MAX AVG": aggregates(),
		"GROUP BY, DISTINCT":    groups(),
		"Joins, Preload":        joins(),
		"Row, Rows":             rows(),
		"FOR UPDATE":            locks(),
		"INSERT one":            inserts(),
		"INSERT batch":          batches(),
		"upsert":                upserts(),
		"UPDATE, DELETE":        changes(),
		"UPDATE of the key":     keyChanges(),
		"TRUNCATE, DROP":        drops(),
		"DDL, Migrate":          ddl(),
		"transaction":           transactions(),
	} {
		for column, do := range row {
			all[Cell{name, column}] = do
		}
	}
	return all
}
