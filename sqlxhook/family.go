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

// familyOf tells the family of a handle by what it says itself, by the
// placeholders it takes, and otherwise by the configuration.
func (h *Hook) familyOf(e Execer, s style) family {
	if d, ok := e.(interface{ DriverName() string }); ok {
		if f := familyOf(d.DriverName()); f != unknown {
			return f
		}
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

// guardReadings adds the readings that a server's sql_mode can switch to.
func (f family) guardReadings() []sqltext.Flavor {
	all := f.readings()
	if f == mysql || f == unknown {
		all = append(all, sqltext.MySQL&^sqltext.BackslashEscapes)
	}
	return all
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

// maxParams is the largest number of parameters of one statement.
func (f family) maxParams() int {
	if f == mysql || f == postgres {
		return 65535
	}
	return 32766 // SQLite's, the lowest of the three
}

// style is what stands before a placeholder's number: "$", "@p", ":arg"; ""
// means the plain "?".
type style string

// styleOf asks the handle, as *sqlx.Conn does not tell its driver's name.
func styleOf(e Execer) style {
	s := e.Rebind("?")
	if s == "?" {
		return ""
	}
	return style(strings.TrimSuffix(s, "1"))
}
