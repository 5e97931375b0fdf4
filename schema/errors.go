// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"errors"
	"fmt"
)

// Errors that this package wraps; test for them with errors.Is.
var (
	// ErrNoDatabase: the connection has no current database. Returned by
	// everything that looks at tables, on MySQL and MariaDB.
	ErrNoDatabase = errors.New("schema: no database is selected; name one at the end of the DSN's address, as in …/shop")

	// ErrNoSchema: the connection's search_path names no schema that exists.
	// Returned by everything that looks at tables, on PostgreSQL.
	ErrNoSchema = errors.New("schema: search_path names no schema that exists; set it in the DSN, or for the role or database")

	// ErrNoTable: the database has no base table of this name; views do not
	// count. Returned by NextID.
	ErrNoTable = errors.New("schema: no such table; check the spelling and which database the DSN names")

	// ErrNoIntegerKey: the table has no such column, the column's type is not an
	// integer, or, in SQLite, it holds values that are not integers. Returned by
	// NextID.
	ErrNoIntegerKey = errors.New("schema: no such integer column; name the table's integer key")

	// ErrKeyExhausted: no id is left above the highest one in use, because ids
	// are int64. Returned by NextID.
	ErrKeyExhausted = errors.New("schema: no id left: the column holds or counts up to the largest int64; move the outlying rows to lower ids first")

	// ErrNoCounter: the user may not read the sequence that numbers a column, so
	// its next value is unknown. Returned by Inspect and NextID, on PostgreSQL.
	ErrNoCounter = errors.New("schema: no right to read the sequence of a column; GRANT SELECT ON SEQUENCE to this user")

	// ErrSeed: an argument is out of range; nothing was written. Returned by
	// Seed.
	ErrSeed = errors.New("schema: cannot seed")
)

// ColumnError says that an existing table has the name of one of shardid's tables and
// cannot be used as such. Apply returns it and leaves the table as it is.
type ColumnError struct {
	Table  string // "leaf_alloc", say
	Column string // or columns, separated by commas
	Need   string // what the column must be

	// Missing: there is no such column, or the user may not see it. MySQL and MariaDB
	// hide columns from users without a privilege on them.
	Missing bool
}

// Error names the table, the column and what to do.
func (e *ColumnError) Error() string {
	if e.Missing {
		return fmt.Sprintf("schema: table %s exists, but its column %s does not, or this user may not see it; add it, grant SELECT on it, or rename that table and run Apply again",
			e.Table, e.Column)
	}
	return fmt.Sprintf("schema: table %s exists, but its column %s is not %s; alter it, or rename that table and run Apply again",
		e.Table, e.Column, e.Need)
}
