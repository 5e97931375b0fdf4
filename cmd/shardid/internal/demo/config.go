// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"strings"

	"github.com/shardid/shardid/cmd/shardid/internal/input"
	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
)

// Rows are spread over these databases and tables. There are more slots than tables, so
// that a slot can move to a new table later.
const (
	databases = 2
	tables    = 8 // in all databases together
	slotBits  = 10
)

// MaxRows bounds Config.Rows, so that a demonstration does not take too long.
const MaxRows = 10_000_000

// Config says what to migrate, and where to.
type Config struct {
	// Dir is the directory in which Run creates its folder; it is created if it is missing.
	// Defaults to a new temporary directory.
	Dir string

	// File is an existing SQLite database. Defaults to none: Run creates one.
	File string

	// Table is the table of File that is sharded by its key. It is required with
	// File, and must be empty without.
	Table string

	// Child is a table of File and its column that refers to the key of Table, as
	// "order_items.order_id"; its rows go to the shards of their parents. Defaults to none.
	Child string

	// Rows is the number of orders in the database that Run creates, from 1 to MaxRows. It is
	// required without File.
	Rows int

	// Progress gets each phase. It is required.
	Progress Progress

	// BeforeCheck is called after the migration and before the verification. Tests corrupt the
	// shards with it. Defaults to no call.
	BeforeCheck func(ctx context.Context, router *sharding.Router) error
}

// Progress shows the phases of Run. Begin and End are called by the goroutine of Run, Add
// by any.
type Progress interface {
	Begin(phase string, total int64)
	Add(n int64)
	End(did string)
}

func (c Config) validate() error {
	switch {
	case c.File == "" && (c.Table != "" || c.Child != ""):
		return input.Errorf("--table and --child are for your own database; name its file with --db")
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
