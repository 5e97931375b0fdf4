// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"strings"

	"github.com/shardid/shardid/cmd/shardid/internal/input"
	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
)

// The databases and tables that rows are spread over. There are more slots than
// tables, so that a slot can move to a new table later.
const (
	databases = 2
	tables    = 8 // in all databases together
	slotBits  = 10
)

// MaxRows bounds Config.Rows: beyond it, it is not a demonstration any more.
const MaxRows = 10_000_000

// Config says what to migrate, and where to.
type Config struct {
	// Dir is where Run puts its folder; it is made if it is missing. Defaults to
	// a new temporary directory.
	Dir string

	// File is an existing SQLite database. Defaults to none: Run makes one.
	File string

	// Table is the table of File that is sharded by its key. It is required with
	// File, and must be empty without.
	Table string

	// Child is a table of File and its column that refers to the key of Table, as
	// "order_items.order_id"; its rows go where their parents are. Defaults to
	// none.
	Child string

	// Rows is the number of orders in the database that Run makes, from 1 to
	// MaxRows. It is required without File.
	Rows int

	// Progress is told of each phase. It is required.
	Progress Progress

	// BeforeCheck is called when the migration is over, before what it did is
	// compared. Tests break the shards with it. Defaults to nothing.
	BeforeCheck func(ctx context.Context, router *sharding.Router) error
}

// Progress is told of the phases of Run: Begin and End by the goroutine of Run,
// Add by any.
type Progress interface {
	Begin(phase string, total int64)
	Add(n int64)
	End(did string)
}

func (c Config) validate() error {
	switch {
	case c.File == "" && (c.Table != "" || c.Child != ""):
		return input.Errorf("--table and --child describe a database of yours; name its file with --db")
	case c.File == "" && (c.Rows < 1 || c.Rows > MaxRows):
		return input.Errorf("--rows is %d; give a number from 1 to %d", c.Rows, MaxRows)
	case c.File != "" && c.Table == "":
		return input.Errorf("--db needs --table, the table to be sharded by its key")
	}
	if c.Child == "" {
		return nil
	}
	if table, column := c.child(); table == "" || column == "" {
		return input.Errorf("--child is %q; write the table and its column that refers to the parent, as in order_items.order_id", dialect.RedactDSN(c.Child))
	}
	return nil
}

// child splits Child into the table and the column.
func (c Config) child() (table, column string) {
	table, column, _ = strings.Cut(c.Child, ".")
	return table, column
}

// checkName refuses what cannot be a name in generated SQL and Go tags.
func checkName(what, name string) error {
	if err := dialect.CheckIdent(name); err != nil {
		return input.Errorf("%s %w; the demo cannot use it", what, err)
	}
	return nil
}
