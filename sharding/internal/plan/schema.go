package plan

import (
	"strings"

	"github.com/shardid/shardid/sharding/internal/merge"
)

// Schema is what the databases say of tables, by their logical names in lower
// case. A table that is missing is one whose columns nobody has read.
type Schema map[string]Table

// Table is what the databases say of one table.
type Table struct {
	Columns map[string]Column // by names in lower case
	// Unique are the columns of each unique key, the primary key among them, in
	// lower case.
	Unique [][]string
}

// Column is what a database makes of the values of a column.
type Column struct {
	Holds Holding
	// Type is how the database compares values of the column when it sorts. Its Kind
	// is 0 where that is not known.
	Type merge.Type
	// Numbered: the database makes a number where none is given or, on MySQL and
	// MariaDB, where 0 is.
	Numbered bool
	// Computed: the database makes every value, and takes none.
	Computed bool
}

// Holding is what a column holds, as far as it decides which values are equal.
type Holding uint8

// What columns hold.
const (
	Other    Holding = iota // unknown to the planner: it proves nothing
	Integers                // whole numbers
	Bytes                   // texts that are equal when their bytes are
	Folded                  // texts of which the collation takes several for one
	Times
)

func (s Schema) table(name string) (Table, bool) {
	t, ok := s[strings.ToLower(name)]
	return t, ok
}
