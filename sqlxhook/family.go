// SPDX-License-Identifier: Apache-2.0

package sqlxhook

import (
	"strings"

	"github.com/jmoiron/sqlx"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/sqltext"
)

// family is the kind of database a handle leads to.
type family uint8

const (
	unknown family = iota
	mysql
	sqlite
	postgres
)

// familyOf recognises a driver's name. Instrumented drivers are registered
// under names that contain the original's ("otel-mysql").
func familyOf(driverName string) family {
	name := strings.ToLower(driverName)
	switch {
	case strings.Contains(name, "mysql"), strings.Contains(name, "maria"):
		return mysql
	case strings.Contains(name, "sqlite"):
		return sqlite
	case sqlx.BindType(driverName) == sqlx.DOLLAR, strings.Contains(name, "postgres"), strings.Contains(name, "pgx"):
		return postgres
	}
	return unknown
}

// familyOf tells the family of a handle by its driver's name, by the
// placeholders it takes, and otherwise by the configuration.
func (h *Hook) familyOf(driver string, s style) family {
	if f := familyOf(driver); f != unknown {
		return f
	}
	if s == "$" {
		return postgres
	}
	return h.family
}

// readings are the ways the statement may be read. For an unknown family all
// must agree on where the parameters are.
func (f family) readings() []sqltext.Flavor {
	switch f {
	case mysql:
		return []sqltext.Flavor{sqltext.MySQL}
	case sqlite:
		return []sqltext.Flavor{sqltext.SQLite}
	case postgres:
		return []sqltext.Flavor{sqltext.PostgreSQL}
	}
	return []sqltext.Flavor{sqltext.MySQL, sqltext.SQLite}
}

// quote quotes a checked identifier.
func (f family) quote(ident string) (string, error) {
	if err := dialect.CheckIdent(ident); err != nil {
		return "", err
	}
	switch f {
	case mysql:
		return dialect.MySQL{}.Quote(ident), nil
	case sqlite, postgres: // both take the standard's double quotes
		return dialect.SQLite{}.Quote(ident), nil
	}
	return "", ErrDriver
}

// limits are what one statement may have.
type limits struct {
	params int
	bytes  int  // of text and arguments; 0 is no limit
	args   bool // the arguments count
}

// limits returns those of the servers as they are installed, the lowest of
// their versions: max_allowed_packet of MySQL 5.7, and SQLITE_MAX_SQL_LENGTH,
// which is about the text alone. PostgreSQL takes a gigabyte.
func (f family) limits() limits {
	switch f {
	case mysql:
		return limits{65535, 4 << 20, true}
	case sqlite:
		return limits{32766, 1_000_000, false}
	case postgres:
		return limits{65535, 0, true}
	}
	return limits{32766, 1_000_000, true}
}
