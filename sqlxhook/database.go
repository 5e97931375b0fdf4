// SPDX-License-Identifier: Apache-2.0

package sqlxhook

import (
	"strings"

	"github.com/jmoiron/sqlx"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/sqltext"
)

// database is the kind of database that a handle sends statements to.
type database uint8

const (
	unknown database = iota
	mysql
	sqlite
	postgres
)

// databaseOf recognises the database by a driver's name. Tracing packages register their
// drivers under names that contain the original name ("otel-mysql").
func databaseOf(driverName string) database {
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

// databaseOf recognises the database of a handle by its driver's name, else by the form of
// its placeholders, else by the configuration.
func (h *Hook) databaseOf(driver string, s style) database {
	if f := databaseOf(driver); f != unknown {
		return f
	}
	if s == "$" {
		return postgres
	}
	return h.database
}

// readings returns the SQL flavors in which a statement is parsed. If the database is
// unknown, all flavors must find the parameters in the same places.
func (d database) readings() []sqltext.Flavor {
	switch d {
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
func (d database) quote(ident string) (string, error) {
	if err := dialect.CheckIdent(ident); err != nil {
		return "", err
	}
	switch d {
	case mysql:
		return dialect.MySQL{}.Quote(ident), nil
	case sqlite, postgres: // both quote with the standard's double quotes
		return dialect.SQLite{}.Quote(ident), nil
	}
	return "", ErrDriver
}

// limits are the largest sizes of one statement.
type limits struct {
	params int
	bytes  int  // of text and arguments; 0 means no limit
	args   bool // the bytes of arguments count, too
}

// limits returns the default limits of the servers, and of several versions the lowest:
// max_allowed_packet of MySQL 5.7, and SQLITE_MAX_SQL_LENGTH, which limits the text alone.
// PostgreSQL accepts a gigabyte.
func (d database) limits() limits {
	switch d {
	case mysql:
		return limits{65535, 4 << 20, true}
	case sqlite:
		return limits{32766, 1_000_000, false}
	case postgres:
		return limits{65535, 0, true}
	}
	return limits{32766, 1_000_000, true}
}
