// SPDX-License-Identifier: Apache-2.0

package sqlparse

import "github.com/shardid/shardid/internal/sqltext"

// Family is a family of servers with the same syntax.
type Family uint8

// The families.
const (
	MySQL Family = iota + 1
	MariaDB
	SQLite
	PostgreSQL
)

// Dialect says how a server parses a text.
type Dialect struct {
	Family Family
	// Flavor has the lexical rules; 0 means the default rules of the family. MySQL's sql_mode
	// ANSI_QUOTES and NO_BACKSLASH_ESCAPES clear rules in it.
	Flavor sqltext.Flavor
	// PipesAsConcat is the sql_mode of this name: || concatenates texts.
	PipesAsConcat bool
	// LowNot says that MySQL's sql_mode HIGH_NOT_PRECEDENCE is known to be off: NOT a = b is NOT (a = b). It does not
	// matter to other families.
	LowNot bool
}

// Rules returns the lexical rules.
func (d Dialect) Rules() sqltext.Flavor {
	switch {
	case d.Flavor != 0:
		return d.Flavor
	case d.Family == SQLite:
		return sqltext.SQLite
	case d.Family == PostgreSQL:
		return sqltext.PostgreSQL
	}
	return sqltext.MySQL
}
